package cli

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/predict"
)

// taggedWords are sentences in several scripts, a word and its tags a line.
const taggedWords = `-DOCSTART- X O

Zoë X B-a
👩‍👩‍👧 Y I-a
école X O

أغنية X B-b
لفيروز Y I-b

मुंबई X B-a
में Y O
我想听 X O
`

// trainTags trains a model on a file of tagged words in a folder of its own. Each word is a token; it reads two words
// of a text.
func trainTags(t *testing.T, task, name, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, ".", name, text)
	writeFile(t, ".", "experiment.yaml", `
project_name: tags
model:
  encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}
tokenizer: {type: words, max_length: 4, train: {vocab_size: 200}}
tasks:
  - {name: t, type: `+task+`, data: {train: `+name+`}}
training: {learning_rate: 1.0e-2, batch_size: 8, num_epochs: 2}
`)
	if status, _, log := call("", "train"); status != 0 {
		t.Fatal(log)
	}
}

// tagsIn returns the tags in the column of a file's sentences.
func tagsIn(t *testing.T, name, column string) [][]string {
	t.Helper()
	records, err := corpus.Open(name, corpus.Format{})
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for _, r := range records {
		tags, _, err := r.Strings(column)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tags)
	}
	return all
}

// predictedTags returns the tags that are predicted for a file, null as "missing".
func predictedTags(t *testing.T, name, missing string) [][]string {
	t.Helper()
	status, out, log := call("", "predict", "runs/tags", name)
	if status != 0 {
		t.Fatal(log)
	}
	var all [][]string
	for _, line := range linesOf(t, out) {
		var tags []string
		for _, tag := range line["tasks"].(map[string]any)["t"].(map[string]any)["t"].(map[string]any)["tags"].([]any) {
			name, ok := tag.(string)
			if !ok {
				name = missing
			}
			tags = append(tags, name)
		}
		all = append(all, tags)
	}
	return all
}

func TestPredictionsAsConllAreDataWithTheSameTags(t *testing.T) {
	trainTags(t, "ner", "a.conll", taggedWords)
	writeFile(t, ".", "tab.conll", "\ufeff"+strings.ReplaceAll(taggedWords, " ", "\t")+"\n\n")
	for _, in := range []string{"a.conll", "tab.conll"} {
		status, _, log := call("", "predict", "runs/tags", in, "--format", "conll", "--out", "out.conll")
		if status != 0 {
			t.Fatal(log)
		}
		if got, want := tagsIn(t, "out.conll", "tags"), predictedTags(t, in, "O"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the file has %q, predicted are %q", in, got, want)
		}
		// all but the last column stays
		got, want := readFile(t, "out.conll"), strings.TrimPrefix(readFile(t, in), "\ufeff")
		if got, want := firstColumns(got), firstColumns(want); got != want {
			t.Errorf("%s: %s, want the columns of %s", in, got, want)
		}
	}

	// texts without columns
	status, out, log := call("Zoë مرحبا!\n", "predict", "runs/tags", "--format", "conll", "--keep", "none")
	if lines := strings.Split(out, "\n"); status != 0 || len(lines) != 5 || !strings.HasPrefix(lines[0], "Zoë\t") ||
		!strings.HasPrefix(lines[1], "مرحبا\t") || !strings.HasPrefix(lines[2], "!\t") || lines[3] != "" {
		t.Errorf("plain text: %d, %q, %s", status, out, log)
	}
	status, out, log = call(`{"words": ["a\tb"]}`, "predict", "runs/tags", "--format", "conll")
	if status != exitMistake || out != "" || !strings.Contains(log, "conll cannot hold") {
		t.Errorf("a word with a tab: %d, %q, %s", status, out, log)
	}
}

// firstColumns returns the lines of a text without their last column and without empty lines at the end.
func firstColumns(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		if at := strings.LastIndexAny(line, " \t"); at >= 0 {
			line = line[:at]
		}
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	return strings.Join(lines, "\n")
}

func TestPredictionsAsConlluKeepTheOtherLines(t *testing.T) {
	const text = "# sent_id = 1\n1-2\tزالدار\t_\t_\t_\t_\t_\t_\t_\t_\n1\tز\tz\tDET\tA\t_\t2\tdet\t_\t_\n" +
		"2\tالدار\td\tNOUN\tB\t_\t0\troot\t_\tSpaceAfter=No\n\n# sent_id = 2\n" +
		"1\tend\tend\tVERB\tC\t_\t0\troot\t_\t_\n\n"
	trainTags(t, "tagging", "a.conllu", text)
	status, out, log := call("", "predict", "runs/tags", "a.conllu", "--format", "conllu")
	predicted := predictedTags(t, "a.conllu", "_")
	want := text
	for i, tag := range []string{"DET\tA", "NOUN\tB", "VERB\tC"} {
		of := append(append([]string{}, predicted[0]...), predicted[1]...)[i]
		want = strings.Replace(want, "\t"+tag, "\t"+of+tag[len(tag)-2:], 1)
	}
	if status != 0 || out != want {
		t.Errorf("%d, %s\n%s, want\n%s", status, log, out, want)
	}

	status, out, log = call("end\n", "predict", "runs/tags", "--format", "conllu")
	if cells := strings.Split(out, "\t"); status != 0 || len(cells) != 10 || cells[1] != "end" || cells[9] != "_\n\n" {
		t.Errorf("a text: %d, %q %s", status, out, log)
	}
}

func TestConllNeedsTagsOfWords(t *testing.T) {
	trainMails(t)
	status, out, log := call("the card\n", "predict", "runs/mails", "--format", "conll")
	const want = "--format conll: no task predicts a tag for each word; want jsonl or csv"
	if status != exitMistake || out != "" || !strings.Contains(log, want) {
		t.Errorf("%d, %s%s, want %s", status, out, log, want)
	}
}

func TestConllOfAnotherEncodingIsAnError(t *testing.T) {
	trainTags(t, "ner", "a.conll", "Zoe B-a\nhere O\n\nEcole B-b\nthere O\n")
	experiment := readFile(t, "runs/tags/experiment.yaml")
	for _, test := range []struct {
		encoding string
		refused  bool
	}{
		{"cp1252", true}, {"Windows-1252", true}, {"latin1", true}, {"ISO_8859-1:1987", true}, {"utf-16", true},
		{"utf-16be", true}, {"utf-8", false}, {"csUTF8", false}, {"UTF8", false},
	} {
		writeFile(t, ".", "runs/tags/experiment.yaml",
			strings.Replace(experiment, "split_words: ", "encoding: "+test.encoding+"\n      split_words: ", 1))
		const want = "--format conll: it copies the lines of the input, whose encoding is "
		status, out, log := call("", "predict", "runs/tags", "a.conll", "--format", "conll")
		if refused := status == exitMistake && out == "" && strings.Contains(log, want+test.encoding); refused !=
			test.refused || !refused && status != 0 {
			t.Errorf("%s: %d, %s%s, refused %v, want %v", test.encoding, status, out, log, refused, test.refused)
		}
	}
}

func TestConlluKeepsTheSentencesThatCannotBeRead(t *testing.T) {
	t.Chdir(t.TempDir())
	const word = "\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"
	writeFile(t, ".", "a.conllu", "# text = a b\n1\ta"+word+"2\tb"+word+"\n1\tc"+word+"\n")
	targets := []predict.TargetColumn{{Task: "t", Head: "t", Column: "tags", PerWord: true}}
	var out, log strings.Builder
	s, done, err := newSentences("conllu", textInput{file: "a.conllu"}, targets, &log)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	tags := map[string]map[string]any{"t": {"t": []string{"VERB"}}}
	for _, result := range []any{
		errorLine{predict.Line{Number: 2, Err: errors.New("line 2: no text")}},
		predicted{Prediction: predict.Prediction{Line: 5, Data: tags}},
	} {
		if err := s.write(&out, result); err != nil {
			t.Fatal(err)
		}
	}
	none, verb := strings.Replace(word, "NOUN", "_", 1), strings.Replace(word, "NOUN", "VERB", 1)
	want := "# text = a b\n1\ta" + none + "2\tb" + none + "\n1\tc" + verb + "\n"
	if out.String() != want || log.String() != "line 2: no text\n" {
		t.Errorf("%s\n%s, want\n%s", log.String(), out.String(), want)
	}
}
