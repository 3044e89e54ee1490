package predict

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/plugin"
)

const wordsExperiment = `
model: {encoder: {type: bilstm, embedding: 3, layers: 1, hidden: 4}}
tokenizer: {type: words, vectors: glove.txt, train: {vocab_size: 100}}
tasks:
  - {name: mood, type: classification, data: {train: a.jsonl, dev: a.jsonl}}
training: {num_epochs: 1}
`

// wordsRun prepares an experiment on whole words, with changes to its text.
func wordsRun(t *testing.T, replace ...string) (trained, error) {
	t.Helper()
	t.Chdir(t.TempDir())
	text := strings.NewReplacer(replace...).Replace(wordsExperiment)
	for name, data := range map[string]string{
		"exp.yaml":  text,
		"a.jsonl":   `{"text": "so good", "label": "good"}` + "\n" + `{"text": "so bad", "label": "bad"}` + "\n",
		"glove.txt": "so 1 2 3\nfine 4 5 6\nGood 7 8 9\n",
	} {
		if err := os.WriteFile(name, []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	e, err := config.Read(t.Context(), "exp.yaml", nil)
	if err != nil {
		return trained{}, err
	}
	return ready(e, config.Train, config.Dev)
}

func TestEmbeddingsAreInitialisedWithTheVectorsOfWords(t *testing.T) {
	run, err := wordsRun(t)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(plugin.Lines(run.Warnings),
		func(r string) bool { return strings.Contains(r, "2 of the vocabulary's 9 tokens have vectors") }) {
		t.Errorf("warnings %q", run.Warnings)
	}
	words := run.Model.Encoder.Describe().WordEmbeddings
	for id := range run.Data.Tokenizer.Size() {
		row := words.Data[3*id : 3*id+3]
		switch run.Data.Tokenizer.Token(int32(id)) {
		case "so":
			if !slices.Equal(row, []float32{1, 2, 3}) {
				t.Errorf("the initial embedding of so is %v", row)
			}
		case "fine": // only in the file of vectors
			if !slices.Equal(row, []float32{4, 5, 6}) {
				t.Errorf("the initial embedding of fine is %v", row)
			}
		case "good": // the file has only Good
			if slices.Equal(row, []float32{7, 8, 9}) || slices.Equal(row, []float32{0, 0, 0}) {
				t.Errorf("the initial embedding of good is %v", row)
			}
		}
	}

	if _, err := run.Train(context.Background(), "run", ignore); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove("glove.txt"); err != nil { // the run folder has the embeddings
		t.Fatal(err)
	}
	opened, err := OpenRun(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := opened.answer(t, Form{}, []*corpus.Example{{Text: "so fine, nothing worse"}}); err != nil {
		t.Error(err)
	}
}

func TestVectorsThatDoNotFit(t *testing.T) {
	for _, c := range []struct {
		name    string
		replace []string
		want    string
	}{
		{"another width", []string{"embedding: 3", "embedding: 5"},
			"exp.yaml:3:35: tokenizer: vectors: they have 3 numbers, the encoder's embeddings 5; want the same width"},
		{"pieces of words", []string{"type: words, ", ""},
			"exp.yaml:3:22: tokenizer: vectors: unexpected with type: wordpiece; vectors are of whole words, want " +
				"type: words"},
		{"no file", []string{"glove.txt", "globe.txt"}, "exp.yaml:3:35: tokenizer: globe.txt: no such file"},
		{"no vectors", []string{"glove.txt", "a.jsonl"}, "exp.yaml:3:35: tokenizer: vectors: they have 4 numbers"},
		{"another type", []string{"type: words", "type: wurds"}, "exp.yaml:3:19: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := wordsRun(t, c.replace...); err == nil || !strings.HasPrefix(err.Error(), c.want) {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}
