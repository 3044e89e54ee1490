package predict

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/multitask"
)

// onModel prepares tasks on a pretrained encoder of the shared models.
func onModel(t *testing.T, model, tasks string, files map[string]string, sets ...string) trained {
	t.Helper()
	t.Setenv("JENGA_MODELS", filepath.Join(shared.Dir(t), "models"))
	t.Chdir(t.TempDir())
	for name, text := range files {
		sample.Write(t, name, text)
	}
	sample.Write(t, "exp.yaml", "model: {base_model: "+model+"}\ntokenizer: {max_length: 64}\ntasks:\n"+tasks)
	e, err := config.Read(t.Context(), "exp.yaml", sets)
	if err != nil {
		t.Fatal(err)
	}
	run, err := ready(e, config.Train)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// moodFile has two labels.
const moodFile = `{"text": "play it", "label": "no", "labels": ["a"], "value": 1}` + "\n" +
	`{"text": "buy it", "label": "yes", "labels": ["b"], "value": 2}` + "\n"

// testdata/explain is what scripts/fixtures/explain.py computes with transformers and PyTorch.
func TestExplanationsAreThoseOfTransformersAndPyTorch(t *testing.T) {
	for _, model := range []string{"minilm-l6", "distil-l6"} {
		file, err := safetensors.Open(filepath.Join("testdata", "explain", model+".safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		want := map[string][]float32{}
		for _, name := range []string{"attention", "logit", "gradient_input", "integrated_gradients", "baseline"} {
			if want[name], err = file.Floats(name); err != nil {
				t.Fatal(err)
			}
		}
		file.Close()
		t.Run(model, func(t *testing.T) {
			run := onModel(t, model, "  - {name: mood, type: classification, data: {train: mood.jsonl}, heads: "+
				"[{name: mood, pool: mean}]}\n", map[string]string{"mood.jsonl": moodFile})
			for _, w := range multitask.HeadParams(run.Model.Params, "mood", "mood").All() {
				for i := range w.Data { // weight [D 2] and bias [2]
					w.Data[i] = float32(math.Sin(7*float64(i/2) + 3*float64(i%2) + 1))
					if strings.HasSuffix(w.Name, "bias") {
						w.Data[i] = float32(i) / 2
					}
				}
			}
			e := &corpus.Example{Text: "play the new song by adele"}
			o := ExplainOptions{Attention: true, Gradients: true, Steps: 40}
			x, err := run.asked(t).Explain(t.Context(), o, e)
			if err != nil {
				t.Fatal(err)
			}
			w := x.Readings[0].Windows[0]
			var maps []float32
			for _, layer := range w.Attention {
				for _, head := range layer {
					maps = append(maps, slices.Concat(head...)...)
				}
			}
			attention := farthestOf(t, maps, want["attention"])
			answer := w.Answers["mood"]["mood"][0]
			if answer.Label != "yes" { // the fixture's logit is that of label 1
				t.Fatalf("the answer is %q", answer.Label)
			}
			logit := farthestOf(t, []float64{answer.Logit, *answer.Baseline},
				[]float32{want["logit"][0], want["baseline"][0]})
			product := farthestOf(t, answer.GradientInput, want["gradient_input"]) / largestOf(want["gradient_input"])
			integrated := farthestOf(t, answer.IntegratedGradients, want["integrated_gradients"]) /
				largestOf(want["integrated_gradients"])
			text := fmt.Sprintf("attention %.2g, logits %.2g, relative to the largest gradient × input %.2g, "+
				"integrated gradients %.2g", attention, logit, product, integrated)
			if !(attention <= 1e-5 && logit <= 1e-4 && product <= 1e-4 && integrated <= 1e-4) {
				t.Errorf("differences: %s", text)
			}
			t.Log(text)
		})
	}
}

// farthestOf returns the largest difference of two lists of equal length.
func farthestOf[F float32 | float64](t *testing.T, got []F, want []float32) (d float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d numbers, want %d", len(got), len(want))
	}
	for i := range got {
		d = max(d, math.Abs(float64(got[i])-float64(want[i])))
	}
	return d
}

func largestOf(x []float32) (largest float64) {
	for _, v := range x {
		largest = max(largest, math.Abs(float64(v)))
	}
	return largest
}

func TestIntegratedGradientsOnAPretrainedEncoderAddUp(t *testing.T) {
	shared.SkipUnlessLong(t)
	run := onModel(t, "minilm-l6", `
  - {name: mood, type: classification, data: {train: mood.jsonl}, heads: [{name: linear, pool: mean},
      {name: focus, type: focus, lstm_hidden: 32}, {name: mlp, type: mlp}]}
  - {name: many, type: multi_label, data: {same_as: mood}}
  - {name: value, type: regression, data: {same_as: mood}}
  - {name: names, type: ner, data: {train: names.jsonl}, heads: [{name: crf, type: crf}]}
  - {name: alike, type: similarity, data: {train: pairs.jsonl}}
  - {name: who, type: question_answering, data: {train: who.jsonl}}
`, map[string]string{
		"mood.jsonl":  moodFile,
		"names.jsonl": `{"words": ["play", "adele"], "tags": ["B-act", "B-name"]}` + "\n",
		"pairs.jsonl": `{"text": "play it", "pair": "buy it", "value": 0.5}` + "\n",
		"who.jsonl":   `{"question": "who", "context": "adele", "answers": ["adele"]}` + "\n",
	})
	for _, w := range run.Model.Params.In("heads").All() {
		for k := range w.Data {
			w.Data[k] *= 4
		}
	}
	heads := map[string]bool{}
	for _, e := range []corpus.Example{{Text: "play adele"},
		{Text: "who sings", Pair: "adele does", Paired: true}} {
		o := ExplainOptions{Gradients: true, Steps: 300}
		if e.Paired {
			o.Tasks = []string{"alike", "who"}
		}
		x, err := run.asked(t).Explain(t.Context(), o, &e)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range eachAnswer(x, func(r Reading, name string, in []Attribution) {
			checkAddsUp(t, r, name, in)
		}) {
			heads[name] = true
		}
	}
	if len(heads) != 8 {
		t.Errorf("integrated gradients of %v, want 8 heads", heads)
	}
}
