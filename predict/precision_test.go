package predict

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/nn"
)

func TestARunTrainedInBF16PredictsOnEveryProcessor(t *testing.T) {
	path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
	e, err := config.Read(t.Context(), path, []string{"training.num_epochs=10"})
	if err != nil {
		t.Fatal(err)
	}
	e.Training.BFloat16 = true // which Read rejects if the processor lacks it
	_, done := trainTo(t, e, folder)
	if done.Value < 0.7 {
		t.Errorf("%s is %v: little was learned", done.Metric, done.Value)
	}
	text, err := os.ReadFile(filepath.Join(folder, runfolder.ExperimentFile))
	if err != nil || !strings.Contains(string(text), "precision: bf16") {
		t.Errorf("%v; the run's experiment.yaml does not have precision: bf16\n%s", err, text)
	}

	run, err := OpenRun(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Read(t.Context(), config.Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	metrics, err := run.Evaluate(t.Context(), config.Dev, func(int, int) {})
	if err != nil {
		t.Fatal(err)
	}
	value := report.Metrics(metrics)[done.Metric]
	if value != done.Value {
		t.Errorf("evaluated at %v; in training at %v", value, done.Value)
	}
}

func TestPredictionsInAPrecisionBelowFloat32(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder)
	run, err := OpenRun(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	defer run.Close()
	if err := run.Read(t.Context(), config.Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	texts := []string{"the card came_late", "a window hangs", "the invoice", "a menu crashes_at_start, again and again"}
	predict := func(texts ...string) (lines []string) {
		var examples []*corpus.Example
		for _, text := range texts {
			examples = append(examples, &corpus.Example{Text: text})
		}
		predictions, err := run.answer(t, Form{Top: 2}, examples)
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range predictions {
			lines = append(lines, jsonOf(t, p))
		}
		return lines
	}
	exact := predict(texts...)
	for _, precision := range []nn.Precision{nn.BFloat16, nn.Int8} {
		run.Model.Precision = precision // SetPrecision rejects it where it is slow
		all := predict(texts...)
		if slices.Equal(all, exact) {
			t.Errorf("%v: the predictions are those of float32", precision)
		}
		for i, text := range texts {
			if alone := predict(text)[0]; alone != all[i] {
				t.Errorf("%v: alone %s, in a batch %s", precision, alone, all[i])
			}
		}
		metrics, err := run.Evaluate(t.Context(), config.Dev, func(int, int) {})
		if err != nil {
			t.Fatal(err)
		}
		if v := report.Metrics(metrics)["eval_overall"]; v < 0.9 {
			t.Errorf("%v: eval_overall = %v, want at least 0.9: the experiment is easy", precision, v)
		}
	}
}

func TestPrecisionOfAnEmbedder(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	embedder, err := OpenEmbedder(t.Context(), folder, 0, "")
	if err != nil {
		t.Fatal(err)
	}
	defer embedder.Close()
	states := func() []float32 {
		all, err := embedder.States([]*corpus.Example{{Text: "the card came late"}})
		if err != nil {
			t.Fatal(err)
		}
		return slices.Concat(all[0]...)
	}
	exact := states()
	if err := embedder.SetPrecision(nn.Int8); err != nil {
		if want := nn.Int8.Check(); want == nil || err.Error() != want.Error() {
			t.Error(err)
		}
		return
	}
	rounded := states()
	if len(rounded) != len(exact) || slices.Equal(rounded, exact) {
		t.Errorf("the states are %v in int8, %v in float32", rounded, exact)
	}
	for i, v := range rounded {
		if math.Abs(float64(v-exact[i])) > 0.2 { // of states whose root mean square is about 1
			t.Errorf("state %d is %v in int8, %v in float32", i, v, exact[i])
		}
	}
}

func TestEncodersOfFloat32Alone(t *testing.T) {
	tasks := "  - {name: team, type: classification, data: {train: a.jsonl, dev: a.jsonl}}\n"
	_, run := trainedRun(t, tasks, map[string]string{"a.jsonl": `{"text": "a b", "label": "x"}` + "\n" +
		`{"text": "c", "label": "y"}` + "\n"}, "model.encoder={type: bilstm, embedding: 8, hidden: 4}",
		"training.num_epochs=1")
	want := "the encoder computes in float32 alone; a transformer with safetensors weights is required"
	if err := run.SetPrecision(nn.Int8); err == nil || err.Error() != want {
		t.Errorf("error is %v, want %s", err, want)
	}
	if err := run.SetPrecision(nn.Float32); err != nil {
		t.Error(err)
	}
}
