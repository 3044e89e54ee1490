package train

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// weightingTrace is testdata/weightings.json, which scripts/fixtures/weightings.py writes by PyTorch: its doc comment
// says of what.
type weightingTrace struct {
	Steps               []stepOfTexts
	Weights             map[string]float64
	Start               map[string][]float32
	Uncertainty, PCGrad struct {
		Trace []struct {
			Loss, Norm float64
			Losses     map[string]float64 // mean, by task
			LogVar     map[string]float64 // before the step
			Orders     [][]int
		}
		End map[string][]float32
	}
	Surgery struct {
		Gradients [][]float64
		Cases     []struct {
			Orders [][]int
			Total  []float64
		}
	}
}

// stepOfTexts is the batches of a step of a fixture.
type stepOfTexts []struct {
	Group int
	Texts []struct {
		IDs   []int32
		Label int // -1: none
		Tags  []int
	}
}

func readWeightingTrace(t *testing.T) (w weightingTrace) {
	t.Helper()
	readFixture(t, "weightings.json", &w)
	return w
}

func readFixture(t *testing.T, name string, into any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatal(err)
	}
}

// model is the fixture's, with its parameters.
func (w weightingTrace) model(t *testing.T) *multitask.Model {
	t.Helper()
	m := biLSTM(t)
	task := func(name, kind string) multitask.Task {
		task := smallTaskOf(t, m, name, kind, 10, 0)
		task.Heads[0].Weight = w.Weights[name]
		return task
	}
	m.Groups = []multitask.Group{
		{Name: "topic", Tasks: []multitask.Task{task("topic", "classification"), task("tags", "tagging")}},
		{Name: "mood", Tasks: []multitask.Task{task("mood", "sentiment")}},
	}
	setParams(t, m, w.Start)
	return m
}

// biLSTM is a model of the fixture's encoder, whose states have a width of 10, without groups.
func biLSTM(t *testing.T) *multitask.Model {
	t.Helper()
	params := nn.NewParams(1)
	choice, err := encoders.Registry().FromString("bilstm", "{embedding: 6, layers: 1, hidden: 5}")
	if err != nil {
		t.Fatal(err)
	}
	env := encoders.Env{Vocabulary: smallVocabulary, DropoutSet: true, Params: params.In("encoder")}
	encoder, err := choice.Build(env)
	if err != nil {
		t.Fatal(err)
	}
	return &multitask.Model{Encoder: encoder, Fusion: fusion.NewNone(), Params: params}
}

// setParams sets the parameters that learn to those of a fixture.
func setParams(t *testing.T, m *multitask.Model, start map[string][]float32) {
	t.Helper()
	for _, p := range m.Params.All() {
		if p.Learns() && (copy(p.Data, start[p.Name]) != len(p.Data) || len(p.Data) == 0) {
			t.Fatalf("the fixture has no %s", p.Name)
		}
	}
}

// batches are those of a step.
func (w weightingTrace) batches(step int) []Batch {
	var all []Batch
	for _, b := range w.Steps[step] {
		batch := Batch{Group: b.Group}
		for _, text := range b.Texts {
			e := exampleOf(text.IDs)
			e.Targets = []corpus.Target{nil}
			if text.Label >= 0 {
				e.Targets[0] = labelTarget(text.Label)
			}
			if b.Group == 0 {
				e.Targets = append(e.Targets, tagsTarget(text.Tags))
			}
			batch.Examples = append(batch.Examples, e)
		}
		all = append(all, batch)
	}
	return all
}

// exampleOf is a text of tokens, each a word but for the first and the last, without targets.
func exampleOf(ids []int32) *corpus.Example {
	e := &corpus.Example{}
	encoded := corpus.Encoding{IDs: ids, Words: []int32{-1}, Segments: make([]int8, len(ids)),
		Offsets: make([]corpus.Span, len(ids))}
	for i := range len(ids) - 2 {
		encoded.Words = append(encoded.Words, int32(i))
		e.Words = append(e.Words, corpus.Span{Start: i, End: i + 1})
	}
	encoded.Words = append(encoded.Words, -1)
	e.Windows = []corpus.Encoding{encoded}
	return e
}

func labelTarget(id int) *outputs.LabelTarget {
	return &outputs.LabelTarget{Label: smallLabels.Names()[id], ID: id}
}

func tagsTarget(ids []int) *outputs.TagsTarget {
	target := &outputs.TagsTarget{IDs: ids}
	for _, id := range ids {
		target.Tags = append(target.Tags, smallLabels.Names()[id])
	}
	return target
}

func (w weightingTrace) training(t *testing.T, weighting func(m *multitask.Model) weightings.Weighting) *Training {
	t.Helper()
	m := w.model(t)
	plan := Plan{Options: multitask.Options{Rate: 1e-2, WeightDecay: 0.01, WarmupSteps: 5, ClipNorm: 0.5}, Seed: 1,
		Weighting: weighting(m)}
	return stepping(t, m, plan, len(w.Steps))
}

const traceBound = 1e-5

func near(t *testing.T, step int, what string, got, want float64) {
	t.Helper()
	if !(math.Abs(got-want) <= traceBound*max(1, math.Abs(want))) {
		t.Errorf("step %d: %s %.8f, want %.8f", step+1, what, got, want)
	}
}

func nearEnd(t *testing.T, m *multitask.Model, want map[string][]float32) {
	t.Helper()
	for _, p := range m.Params.All() {
		if !p.Learns() {
			continue
		}
		for i, v := range p.Data {
			if d := math.Abs(float64(v - want[p.Name][i])); !(d <= traceBound) {
				t.Fatalf("%s[%d] is %v after all steps, want %v", p.Name, i, v, want[p.Name][i])
			}
		}
	}
}

func TestUncertaintyFollowsPyTorch(t *testing.T) {
	w := readWeightingTrace(t)
	training := w.training(t, uncertainty)
	for n, want := range w.Uncertainty.Trace {
		step, err := training.Update(w.batches(n))
		if err != nil {
			t.Fatal(err)
		}
		near(t, n, "loss", step.Loss, want.Loss)
		near(t, n, "gradient", step.GradientNorm, want.Norm)
		for _, l := range step.Losses {
			mean, labelled := want.Losses[l.Task]
			if labelled != (l.Units > 0) {
				t.Fatalf("step %d: %v units of %s", n+1, l.Units, l.Task)
			}
			if labelled {
				near(t, n, "loss of "+l.Task, l.Mean(), mean)
				near(t, n, "factor of "+l.Task, l.Factor, 0.5*math.Exp(-want.LogVar[l.Task])*w.Weights[l.Task])
			}
		}
	}
	nearEnd(t, training.model.Model, w.Uncertainty.End)
}

func TestPCGradFollowsPyTorch(t *testing.T) {
	w := readWeightingTrace(t)
	n := 0
	training := w.training(t, func(*multitask.Model) weightings.Weighting {
		part := pcgrad() // with the orders that the fixture has
		part.Combine = func(_ multitask.State, _ []string, dots [][]float64) []float64 {
			orders := w.PCGrad.Trace[n].Orders
			return weightings.Project(dots, func(task int) []int { return orders[task] })
		}
		return part
	})
	for ; n < len(w.Steps); n++ {
		want := w.PCGrad.Trace[n]
		step, err := training.Update(w.batches(n))
		if err != nil {
			t.Fatal(err)
		}
		near(t, n, "loss", step.Loss, want.Loss)
		near(t, n, "gradient", step.GradientNorm, want.Norm)
	}
	nearEnd(t, training.model.Model, w.PCGrad.End)
}

func TestProjectionIsItsAlgorithm(t *testing.T) {
	w := readWeightingTrace(t).Surgery
	dots := make([][]float64, len(w.Gradients))
	for i, a := range w.Gradients {
		for _, b := range w.Gradients {
			sum := 0.0
			for k := range a {
				sum += a[k] * b[k]
			}
			dots[i] = append(dots[i], sum)
		}
	}
	for _, c := range w.Cases {
		factors := weightings.Project(dots, func(task int) []int { return c.Orders[task] })
		for k, want := range c.Total {
			got := 0.0
			for i, factor := range factors {
				got += factor * w.Gradients[i][k]
			}
			if !(math.Abs(got-want) <= 1e-12) {
				t.Errorf("orders %v: component %d is %v, want %v", c.Orders, k, got, want)
			}
		}
	}
}

func TestPCGradOrdersAreAFunctionOfTheSeed(t *testing.T) {
	trained := func(seed uint64) map[string][]float32 {
		m, data := threeGroups(t, "none", 12)
		plan := smallPlan()
		plan.Seed, plan.Weighting, plan.Sampler = seed, pcgrad(),
			inTurns("round_robin", 3)
		steps, _ := train(t, m, data, plan)
		if len(steps) != 6 || len(steps[0].Losses) != 3 {
			t.Fatalf("%d steps of %d losses", len(steps), len(steps[0].Losses))
		}
		return values(m)
	}
	if first := trained(1); !reflect.DeepEqual(trained(1), first) || reflect.DeepEqual(trained(2), first) {
		t.Error("two runs with one seed differ, or with two seeds do not")
	}
}

func TestGradientsOfTasksNeedParametersThatTheyShare(t *testing.T) {
	plan := smallPlan()
	plan.Weighting = pcgrad()

	// attention fusion has some
	m := smallModel(t, "all", 0)
	if _, err := New(m, smallData(m, 8), plan); err != nil {
		t.Error(err)
	}
	if bytes := taskGradients(plan, m); bytes != 3*4*(12*12+12*12+12+12+1) {
		t.Errorf("gradients by task take %d bytes", bytes)
	}

	m = readWeightingTrace(t).model(t)
	for _, w := range m.Params.In("encoder").All() {
		w.Frozen = true
	}
	plan.MaxSteps = 1
	if _, err := New(m, nil, plan); err == nil ||
		!strings.Contains(err.Error(), "none of those learns; want a model.freeze") {
		t.Errorf("New = %v", err)
	}
}

// scripted records the losses that a weighting receives.
type scripted struct {
	factor              float64
	seen, before, after [][]multitask.Loss
	observed            int
}

func (s *scripted) weighting() weightings.Weighting {
	return weightings.Weighting{WeighLosses: s.weigh, Observe: s.observe, Review: s.review, Type: "scripted"}
}

func (s *scripted) weigh(_ multitask.State, losses []multitask.Loss) []float64 {
	s.seen = append(s.seen, slices.Clone(losses))
	factors := make([]float64, len(losses))
	for i := range factors {
		factors[i] = s.factor
	}
	return factors
}

func (s *scripted) observe(multitask.State, []multitask.Loss) { s.observed++ }

func (s *scripted) review(_ multitask.State, before, after []multitask.Loss) {
	s.before, s.after = append(s.before, slices.Clone(before)), append(s.after, slices.Clone(after))
}

func TestAWeightingReceivesLossesBeforeAndAfterTheUpdate(t *testing.T) {
	for _, accumulate := range []int{1, 2} {
		m, data := threeGroups(t, "none", 12) // with dropout, which is the same in all forward passes of a step
		weighting := &scripted{factor: 2}
		plan := smallPlan()
		plan.Accumulate, plan.ClipNorm = accumulate, 0
		plan.Weighting = weighting.weighting()
		steps, _ := train(t, m, data, plan)
		if len(weighting.seen) != len(steps) || weighting.observed != len(steps) || len(weighting.after) != len(steps) {
			t.Fatalf("%d steps, losses seen %d, %d and %d times",
				len(steps), len(weighting.seen), weighting.observed, len(weighting.after))
		}
		fell := 0
		for n, step := range steps {
			for i, l := range step.Losses {
				if seen := weighting.seen[n][i]; seen.Sum != l.Sum || seen.Units != l.Units || l.Factor != 2 {
					t.Fatalf("step %d: loss %+v, seen before as %+v", n+1, l, seen)
				}
				if l.Units > 0 && weighting.after[n][i].Sum < weighting.before[n][i].Sum {
					fell++
				}
			}
		}
		if fell < len(steps)*2/3 {
			t.Errorf("in %d steps the loss of the same batches fell %d times", len(steps), fell)
		}

		// the same bytes as with factors that are known before
		again, data := threeGroups(t, "none", 12)
		for g := range again.Groups {
			again.Groups[g].Tasks[0].Heads[0].Weight = 2
		}
		plan.Weighting = weightings.Weighting{}
		train(t, again, data, plan)
		if !reflect.DeepEqual(values(again), values(m)) {
			t.Errorf("accumulation of %d: other bytes than with factors that do not depend on losses", accumulate)
		}
	}
}

// A sampler that draws random numbers after each step leaves those of the weighting.
func TestASamplerObservesWithItsOwnRandomNumbers(t *testing.T) {
	factors := func(observe func(multitask.State, []multitask.Loss)) (all []float64) {
		m := smallModel(t, "none", 0)
		plan := smallPlan()
		weighted("rlw", "")(m, &plan)
		plan.Sampler.Observe = observe
		training := stepping(t, m, plan, 3)
		for range 3 {
			step, err := training.Update([]Batch{{1, smallData(m, 2)[1].Train}})
			if err != nil {
				t.Fatal(err)
			}
			for _, l := range step.Losses {
				all = append(all, l.Factor)
			}
		}
		return all
	}
	want := factors(nil)
	got := factors(func(s multitask.State, _ []multitask.Loss) { s.Rand.Float64() })
	if !slices.Equal(got, want) {
		t.Errorf("factors %v, want %v", got, want)
	}
}
