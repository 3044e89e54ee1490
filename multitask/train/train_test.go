package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

// smallModel is a tiny encoder from scratch with a group of two tasks (one label, a tag a word) and a group of one.
func smallModel(t testing.TB, freeze string, dropout float64) *multitask.Model {
	t.Helper()
	params := nn.NewParams(3)
	return smallModelOf(t, params, params.In("encoder"), freeze, dropout)
}

// smallModelOf is smallModel with its parameters in params, and the encoder's in encoderParams.
func smallModelOf(t testing.TB, params, encoderParams nn.Params, freeze string, dropout float64) *multitask.Model {
	t.Helper()
	return modelOf(t, "{layers: 2, width: 12, heads: 2, feed_forward: 16, max_positions: 32}", params, encoderParams,
		freeze, dropout)
}

// modelOf is a model of two groups on an encoder of a width of 12.
func modelOf(t testing.TB, encoderOptions string, params, encoderParams nn.Params, freeze string, dropout float64,
) *multitask.Model {
	t.Helper()
	choice, err := encoders.Registry().FromString("transformer", encoderOptions)
	if err != nil {
		t.Fatal(err)
	}
	encoder, err := choice.Build(encoders.Env{Vocabulary: smallVocabulary, MaxLength: 32, Dropout: dropout,
		DropoutSet: true, Freeze: freeze, Params: encoderParams})
	if err != nil {
		t.Fatal(err)
	}
	m := &multitask.Model{Encoder: encoder, Params: params}
	fused, err := fusion.Registry().FromString("attention", "scale: residual")
	if err != nil {
		t.Fatal(err)
	}
	if m.Fusion, err = fused.Build(fusion.Env{Tasks: []string{"topic", "tags", "mood"}, Width: 12,
		Params: params.In("fusion")}); err != nil {
		t.Fatal(err)
	}
	m.Groups = []multitask.Group{
		{Name: "topic", Tasks: []multitask.Task{smallTask(t, m, "topic", "classification", dropout),
			smallTask(t, m, "tags", "tagging", dropout)}},
		{Name: "mood", Tasks: []multitask.Task{smallTask(t, m, "mood", "sentiment", dropout)}},
	}
	return m
}

const smallVocabulary = 20

var smallLabels = corpus.NewLabels([]string{"a", "b", "c"})

func smallTask(t testing.TB, m *multitask.Model, name, kind string, dropout float64) multitask.Task {
	t.Helper()
	return smallTaskOf(t, m, name, kind, 12, dropout)
}

// smallTaskOf is a task with a linear head on states of a width.
func smallTaskOf(t testing.TB, m *multitask.Model, name, kind string, width int, dropout float64) multitask.Task {
	t.Helper()
	return taskWith(t, m, name, kind, width, dropout, "linear", "")
}

// taskWith is a task with a head of a type and its options on states of a width.
func taskWith(t testing.TB, m *multitask.Model, name, kind string, width int, dropout float64, of, options string,
) multitask.Task {
	t.Helper()
	part, err := tasks.Registry().FromString(kind, "")
	if err != nil {
		t.Fatal(err)
	}
	task, err := part.Build(tasks.Env{Name: name, Heads: []string{name}})
	if err != nil {
		t.Fatal(err)
	}
	choice, err := heads.Registry().FromString(of, options)
	if err != nil {
		t.Fatal(err)
	}
	head, err := choice.Build(heads.Env{
		Task: name, Name: name, Output: task.Output(), Labels: smallLabels.Names(), Width: width, Dropout: dropout,
		Params: m.Params.In("heads").In(name).In(name),
	})
	if err != nil {
		t.Fatal(err)
	}
	return multitask.Task{Name: name, Type: task, Heads: []multitask.Head{{Name: name, Head: head,
		Labels: smallLabels, Weight: 1}}}
}

// smallData has n learnable examples for each group: a text's label is the kind of its first word, a word's tag its
// kind.
func smallData(m *multitask.Model, n int) []multitask.Data {
	r := rand.New(rand.NewPCG(1, 2))
	data := make([]multitask.Data, len(m.Groups))
	for g := range m.Groups {
		for range n {
			e := &corpus.Example{}
			words := 1 + r.IntN(6)
			var tags []string
			var text corpus.Encoding
			text.IDs = append(text.IDs, 0)
			text.Words = append(text.Words, -1)
			for w := range words {
				id := 2 + r.IntN(smallVocabulary-2)
				text.IDs = append(text.IDs, int32(id))
				text.Words = append(text.Words, int32(w))
				e.Words = append(e.Words, corpus.Span{Start: w, End: w + 1})
				tags = append(tags, smallLabels.Names()[id%3])
			}
			text.IDs = append(text.IDs, 1)
			text.Words = append(text.Words, -1)
			text.Segments = make([]int8, words+2)
			text.Offsets = make([]corpus.Span, words+2)
			e.Windows = []corpus.Encoding{text}
			e.Targets = []corpus.Target{
				&outputs.LabelTarget{Label: tags[0], ID: smallLabels.ID(tags[0])},
				&outputs.TagsTarget{Tags: tags, IDs: smallLabels.IDs(tags)},
			}[:len(m.Groups[g].Heads())]
			data[g].Train = append(data[g].Train, e)
		}
		data[g].Dev = data[g].Train
	}
	return data
}

// stepping is a training of so many steps on batches that the test chooses.
func stepping(t *testing.T, m *multitask.Model, plan Plan, steps int) *Training {
	t.Helper()
	plan.MaxSteps = steps
	training, err := New(m, nil, plan)
	if err != nil {
		t.Fatal(err)
	}
	return training
}

func smallPlan() Plan {
	return Plan{
		Options: multitask.Options{
			Epochs: 2, BatchSize: 4, Accumulate: 1, Rate: 3e-3, WeightDecay: 0.01, ClipNorm: 1,
		},
		Seed: 5, Sampler: inTurns("proportional", 1), Weighting: weightings.Weighting{},
	}
}

// values lists a copy of all parameters.
func values(m *multitask.Model) map[string][]float32 {
	all := map[string][]float32{}
	for _, w := range m.Params.All() {
		all[w.Name] = slices.Clone(w.Data)
	}
	return all
}

func train(t *testing.T, m *multitask.Model, data []multitask.Data, plan Plan) (steps []Step,
	evaluations []Evaluation) {
	t.Helper()
	err := trainOn(context.Background(), m, data, plan, func(event Event) error {
		switch v := event.(type) {
		case Step:
			steps = append(steps, v)
		case Evaluation:
			evaluations = append(evaluations, v)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return steps, evaluations
}

func TestTrainLearnsAllTasks(t *testing.T) {
	m := smallModel(t, "none", 0)
	plan := smallPlan()
	plan.Epochs = 25
	steps, evaluations := train(t, m, smallData(m, 60), plan)
	if got, want := len(steps), 25*30; got != want {
		t.Errorf("%d steps, want %d: 15 batches of each group an epoch", got, want)
	}
	if got, want := len(evaluations), 25; got != want {
		t.Errorf("%d evaluations, want one an epoch, %d", got, want)
	}
	for _, g := range evaluations[len(evaluations)-1].Groups {
		for _, task := range g.Tasks {
			if got := task.Heads[0].Metrics[0].Value; got < 0.95 {
				t.Errorf("task %q: %s %.3f after training, want at least 0.95", task.Task,
					task.Heads[0].Metrics[0].Name, got)
			}
		}
	}
}

func TestSameSeedGivesSameBits(t *testing.T) {
	var runs []map[string][]float32
	for range 2 {
		m := smallModel(t, "none", 0.1)
		train(t, m, smallData(m, 20), smallPlan())
		runs = append(runs, values(m))
	}
	for name, first := range runs[0] {
		if !slices.Equal(first, runs[1][name]) {
			t.Errorf("%s differs between two runs", name)
		}
	}
}

func TestAccumulationIsTheMeanOverAllLabelledUnits(t *testing.T) {
	whole, parts := smallModel(t, "none", 0), smallModel(t, "none", 0)
	data := smallData(whole, 8)
	for i := range 3 { // unequal parts: texts without a label
		data[0].Train[i].Targets = make([]corpus.Target, 2)
	}
	plan := smallPlan()
	plan.Accumulate = 2
	all := data[0].Train
	step1, err := stepping(t, whole, plan, 10).Update([]Batch{{0, all}})
	if err != nil {
		t.Fatal(err)
	}
	step2, err := stepping(t, parts, plan, 10).Update([]Batch{{0, all[:4]}, {0, all[4:]}})
	if err != nil {
		t.Fatal(err)
	}
	if !(math.Abs(step1.Loss-step2.Loss) <= 1e-6) || step1.Loss == 0 {
		t.Errorf("loss in two parts %v, at once %v", step2.Loss, step1.Loss)
	}
	if !(math.Abs(step1.GradientNorm-step2.GradientNorm) <= 1e-5*step1.GradientNorm) {
		t.Errorf("gradient norm in two parts %v, at once %v", step2.GradientNorm, step1.GradientNorm)
	}
}

func TestParametersOutsideAStepAreNotChanged(t *testing.T) {
	m := smallModel(t, "none", 0)
	before := values(m)
	if _, err := stepping(t, m, smallPlan(), 10).Update([]Batch{{0, smallData(m, 4)[0].Train}}); err != nil {
		t.Fatal(err)
	}
	after := values(m)
	for _, name := range []string{"heads.mood.mood.score.weight", "fusion.tasks.mood"} {
		if !slices.Equal(before[name], after[name]) {
			t.Errorf("%s changed in a step of other tasks", name)
		}
	}
	for _, name := range []string{"heads.tags.tags.score.weight", "fusion.tasks.topic"} {
		if slices.Equal(before[name], after[name]) {
			t.Errorf("%s did not change in a step of its task", name)
		}
	}
}

func TestFrozenEncoderIsEncodedOnceAndStaysAsItIs(t *testing.T) {
	m := smallModel(t, "all", 0.1)
	data := smallData(m, 12)
	counted := &counting{Encoder: m.Encoder}
	m.Encoder = counted
	before := values(m)
	plan := smallPlan()
	plan.CacheMemory = inMemory
	train(t, m, data, plan)
	if got, want := counted.texts, 24; got != want {
		t.Errorf("%d texts were encoded in two epochs and two evaluations, want each of %d once", got, want)
	}
	for _, w := range m.Params.In("encoder").All() {
		if !slices.Equal(before[w.Name], w.Data) {
			t.Errorf("%s changed", w.Name)
		}
	}
}

// counting counts the texts that an encoder is given.
type counting struct {
	encoders.Encoder
	texts int
}

func (c *counting) Encode(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
	c.texts += tokens.Rows.Texts()
	return c.Encoder.Encode(p, tokens, mode)
}

func TestNothingLabelledIsNoError(t *testing.T) {
	m := smallModel(t, "none", 0)
	data := smallData(m, 4)
	for _, d := range data {
		for _, e := range d.Train {
			for h := range e.Targets {
				e.Targets[h] = nil
			}
		}
	}
	before := values(m)
	steps, evaluations := train(t, m, data, smallPlan())
	if steps[0].Loss != 0 || len(evaluations) == 0 {
		t.Errorf("loss %v, %d evaluations", steps[0].Loss, len(evaluations))
	}
	for name, w := range values(m) {
		if !slices.Equal(before[name], w) {
			t.Errorf("%s changed", name)
		}
	}
}

func TestObserveEndsTraining(t *testing.T) {
	broken := fmt.Errorf("broken")
	for _, test := range []struct{ give, want error }{{ErrStop, nil}, {broken, broken}} {
		m := smallModel(t, "none", 0)
		n := 0
		err := trainOn(context.Background(), m, smallData(m, 8), smallPlan(), func(Event) error { n++; return test.give })
		if err != test.want || n != 1 {
			t.Errorf("Train = %v after %d events, want %v after 1", err, n, test.want)
		}
	}
}

func TestAnyPlanIsCarriedOutOrRefused(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Plan)
		steps  int // 0: refused
	}{
		{"batches without bounds", func(p *Plan) { p.BatchSize, p.BatchTokens = math.MaxInt, math.MaxInt }, 4},
		{"one update of all batches", func(p *Plan) { p.Accumulate = math.MaxInt }, 1},
		{"an update over the end of an epoch", func(p *Plan) { p.Accumulate = 3 }, 3},
		{"more epochs than can be counted", func(p *Plan) { p.Epochs = math.MaxInt }, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, plan := smallModel(t, "none", 0), smallPlan()
			test.change(&plan)
			steps := 0
			err := trainOn(context.Background(), m, smallData(m, 8), plan, func(event Event) error {
				if _, ok := event.(Step); ok {
					steps++
				}
				return nil
			})
			if steps != test.steps || (err == nil) != (test.steps > 0) {
				t.Errorf("%d steps, %v, want %d", steps, err, test.steps)
			}
		})
	}
}

func TestARunOfOneStepLearns(t *testing.T) {
	m, plan := smallModel(t, "none", 0), smallPlan()
	plan.Accumulate = math.MaxInt
	for _, warmup := range []float64{0, 0.1} {
		plan.WarmupRatio = warmup
		before := values(m)
		train(t, m, smallData(m, 8), plan)
		if reflect.DeepEqual(values(m), before) {
			t.Errorf("with a warm-up of %v nothing moved", warmup)
		}
	}
}

func TestClipNormZeroNeverClips(t *testing.T) {
	var trained []map[string][]float32
	for _, norm := range []float64{0, 1e9} {
		m, plan := smallModel(t, "none", 0), smallPlan()
		plan.ClipNorm = norm
		train(t, m, smallData(m, 8), plan)
		trained = append(trained, values(m))
	}
	for name, want := range trained[1] {
		if !slices.Equal(trained[0][name], want) {
			t.Errorf("%s is not what a norm that is never reached leaves", name)
		}
	}
}

func TestALossOfNaNIsAnError(t *testing.T) {
	m := smallModel(t, "none", 0)
	m.Params.In("heads").In("tags").All()[0].Data[0] = float32(math.Inf(1))
	_, err := multitask.Cached{Model: m}.Evaluate(context.Background(), &m.Groups[0], smallData(m, 8)[0].Dev, 4, 0, nil)
	const want = `task "tags": the loss of head "tags" is NaN among 8 texts: "", "", "" and 5 more`
	if err == nil || err.Error() != want {
		t.Errorf("Evaluate = %v, want %s", err, want)
	}
	var bad *multitask.BadStep
	if !errors.As(err, &bad) || bad.Head != (multitask.HeadName{Task: "tags", Head: "tags"}) || len(bad.Texts) != 8 {
		t.Errorf("the error has the BadStep %+v", bad)
	}
}

// trainOn fits the model to the data, data[g] for group g. It reports each Step, Evaluation and Warning to observe,
// which may read the model and end training by an error: ErrStop ends it without an error. A cancelled context ends it
// too.
func trainOn(ctx context.Context, m *multitask.Model, data []multitask.Data, plan Plan,
	observe func(event Event) error) error {
	t, err := New(m, data, plan)
	if err != nil {
		return err
	}
	defer t.Close()
	return t.Complete(ctx, observe)
}
