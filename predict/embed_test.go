package predict

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

func TestARunsEncoderOpensWithTheTrainedWeights(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	run, _ := trainSmall(t, sample.Small(t, ""), folder)
	for _, test := range []struct {
		freeze string
		learns bool
	}{{"none", true}, {"all", false}} {
		params := nn.NewParams(0)
		encoder, tokenizer, err := OpenEncoder(t.Context(), filepath.Join(folder, runfolder.LastDir),
			encoders.Env{Freeze: test.freeze, Params: params.In("encoder")})
		if err != nil {
			t.Fatal(err)
		}
		if ok := encoder.Describe().Backward != nil; !ok || tokenizer.Size() != run.Data.Tokenizer.Size() {
			t.Errorf("a trainable encoder: %v, with %d tokens; want one with %d", ok, tokenizer.Size(),
				run.Data.Tokenizer.Size())
		}
		trained := run.Model.Params.In("encoder").All()
		for i, w := range params.All() {
			if w.Name != trained[i].Name || !slices.Equal(w.Data, trained[i].Data) || w.Frozen == test.learns {
				t.Errorf("freeze %s: %s is frozen: %v, or differs from the run's last", test.freeze, w.Name, w.Frozen)
			}
		}
	}
	if _, _, err := OpenEncoder(t.Context(), "nowhere", encoders.Env{}); err == nil ||
		!strings.HasPrefix(err.Error(), "nowhere: no run, no folder") {
		t.Errorf("error %v, want one that lists what was searched", err)
	}
}

func TestARunOpensWhenItsBaseModelIsGone(t *testing.T) {
	path := sample.Small(t, "")
	first, second := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, first, "training.num_epochs=1",
		"model.encoder={type: bilstm, embedding: 8, layers: 1, hidden: 8}")

	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(first, runfolder.BestDir, runfolder.EncoderDir)
	based := strings.Replace(string(text),
		"encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32, max_positions: 64}",
		"base_model: "+base, 1)
	sample.Write(t, path, strings.Replace(based, ", train: {vocab_size: 200}", "", 1))
	run, _ := trainSmall(t, path, second, "training.num_epochs=1")
	if got := run.Data.Experiment.Model.Encoder.Type; got != "bilstm" {
		t.Fatalf("the base model is opened as %s, want bilstm", got)
	}
	if err := os.RemoveAll(first); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenRun(t.Context(), second); err != nil {
		t.Errorf("Open: %v", err)
	}
	if _, _, err := OpenEncoder(t.Context(), second, encoders.Env{Freeze: "all",
		Params: nn.NewParams(0).In("encoder")}); err != nil {
		t.Errorf("OpenEncoder: %v", err)
	}
}

func TestAnEmbedderWarnsOfTruncatedTexts(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	m, err := OpenEmbedder(t.Context(), folder, 4, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, step := range []struct {
		text string
		want []string
	}{
		{"the", nil},
		{"the card was charged twice", []string{"warning: 1 of 2 texts has more than 4 tokens and is truncated: " +
			"a larger argument max-length avoids it, up to the encoder's limit"}},
	} {
		if _, err := m.States([]*corpus.Example{{Text: step.text}}); err != nil {
			t.Fatal(err)
		}
		if got := m.Warnings(); !slices.Equal(plugin.Lines(got), step.want) {
			t.Errorf("warnings %q, want %q", got, step.want)
		}
	}
}

func TestTheWarningOfOneTextIsInTheSingular(t *testing.T) {
	got := dataset.Truncated(1, plugin.Count(1, "text"), corpus.Windowing{MaxLength: 4})
	const want = "1 of 1 text has more than 4 tokens and is truncated: a larger tokenizer.max_length, or " +
		"long: windows, avoids it"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
