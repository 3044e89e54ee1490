package train

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/weightings"

	_ "github.com/jenga-nlp/jenga/encoders/transformer"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// The losses of 30 steps are PyTorch's, written by scripts/fixtures/trace.py: its doc comment says of what.
func TestStepsFollowPyTorch(t *testing.T) {
	if testing.Short() {
		t.Skip("30 steps of a real encoder")
	}
	dir := shared.Dir(t)
	var want map[string][]float64
	readFixture(t, "trace.json", &want)
	for _, scale := range []string{"none", "exact", "length", "residual"} {
		t.Run(scale, func(t *testing.T) {
			if scale != "none" {
				shared.SkipUnlessLong(t)
			}
			followTrace(t, dir, scale, want[scale])
		})
	}
}

func followTrace(t *testing.T, dir, scale string, want []float64) {
	const batchSize, width = 16, 384
	labels := corpus.NewLabels([]string{"0", "1", "2", "3", "4", "5"})
	examples := traceExamples(t, dir, labels, len(want)*batchSize)
	model := traceModel(t, dir, scale, labels)

	plan := Plan{
		Options:   multitask.Options{Rate: 1e-4, WeightDecay: 0.01, WarmupSteps: 10, ClipNorm: 1},
		Weighting: weightings.Weighting{},
	}
	training := stepping(t, model, plan, len(want))
	worst := 0.0
	for n := range want {
		step, err := training.Update([]Batch{{0, examples[n*batchSize : (n+1)*batchSize]}})
		if err != nil {
			t.Fatal(err)
		}
		d := math.Abs(step.Loss - want[n])
		worst = max(worst, d)
		if !(d <= 1e-4) {
			t.Errorf("loss of step %d = %.6f, want %.6f", n+1, step.Loss, want[n])
		}
	}
	t.Logf("largest difference of a loss: %.2g", worst)
}

// traceExamples are the first n questions of TREC in file order.
func traceExamples(t *testing.T, dir string, labels *corpus.Labels, n int) []*corpus.Example {
	tokenizer, err := corpus.OpenTokenizer(filepath.Join(dir, "models", "minilm-l6"))
	if err != nil {
		t.Fatal(err)
	}
	records, err := corpus.Open(t.Context(), filepath.Join(dir, "data", "trec6", "TREC.train.all"), corpus.Format{
		Type: "csv", NoHeader: true, Delimiter: " ", Columns: []string{"label", "text"}, Encoding: "latin1",
	})
	if err != nil {
		t.Fatal(err)
	}
	var examples []*corpus.Example
	for _, record := range records[:n] {
		e, err := record.Example()
		if err != nil {
			t.Fatal(err)
		}
		label, _, err := record.String("label")
		if err != nil {
			t.Fatal(err)
		}
		e.Targets = []corpus.Target{&outputs.LabelTarget{Label: label, ID: labels.ID(label)}}
		e.Windows = []corpus.Encoding{tokenizer.Encode(&e, 0)}
		examples = append(examples, &e)
	}
	return examples
}

func traceModel(t *testing.T, dir, scale string, labels *corpus.Labels) *multitask.Model {
	params := nn.NewParams(1)
	registry := encoders.Registry()
	encoder, err := registry.Build("transformer", defaults(registry.FromString("transformer", "")),
		encoders.Env{
			Model: filepath.Join(dir, "models", "minilm-l6"), DropoutSet: true, Freeze: "none",
			Params: params.In("encoder"),
		})
	if err != nil {
		t.Fatal(err)
	}
	choice, err := fusion.Registry().FromString("attention", "scale: "+scale)
	if scale == "none" {
		choice, err = fusion.Registry().FromString("none", "")
	}
	if err != nil {
		t.Fatal(err)
	}
	width := encoder.Describe().Width
	fused, err := choice.Build(fusion.Env{Tasks: []string{"trec"}, Width: width, Params: params.In("fusion")})
	if err != nil {
		t.Fatal(err)
	}
	head, err := heads.Registry().Build("linear", defaults(heads.Registry().FromString("linear", "")), heads.Env{
		Task: "trec", Name: "trec", Output: outputs.Label, Labels: labels.Names(), Width: width,
		Params: params.In("heads").In("trec").In("trec"),
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range params.All() {
		if s, ok := traceStarts[w.Name]; ok {
			traceStart(w.Data, s.salt, s.from)
		}
	}
	return &multitask.Model{Encoder: encoder, Fusion: fused, Params: params,
		Groups: []multitask.Group{{Name: "trec", Tasks: []multitask.Task{{
			Name: "trec", Heads: []multitask.Head{{Name: "trec", Head: head, Labels: labels, Weight: 1}},
		}}}}}
}

func defaults[S, P any](c plugin.Choice[S, P], _ error) any { return c.Options }

// traceStart fills w with the numbers that the script's start gives for a salt, beginning at number from.
func traceStart(w []float32, salt, from uint64) {
	for k := range w {
		u := ((uint64(k)+from)*2654435761 + salt) % (1 << 32)
		w[k] = float32((float64(u)/(1<<32) - 0.5) * 0.07)
	}
}

// traceStarts are the script's, by the names that its parameters have here; biases start at zero on both sides.
var traceStarts = map[string]struct{ salt, from uint64 }{
	"heads.trec.trec.score.weight": {1, 0},
	"fusion.tasks.trec":            {2, 0},
	"fusion.states.weight":         {3, 0},
	"fusion.task.weight":           {3, 384 * 384},
	"fusion.score.weight":          {4, 0},
}
