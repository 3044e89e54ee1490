package train

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/collective/collectivetest"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
)

// balanced is smallModel, a weight of its head of tags, and a plan with a weighting.
func balanced(t *testing.T, freeze, weighting string, weight float64) (*multitask.Model, Plan) {
	t.Helper()
	m, plan := smallModel(t, freeze, 0.1), smallPlan()
	m.Groups[0].Tasks[1].Heads[0].Weight = weight
	choice, err := weightings.Registry().FromString(weighting, "")
	if err != nil {
		t.Fatal(err)
	}
	if plan.Weighting, err = choice.Build(weightings.EnvOf(m, 1)); err != nil {
		t.Fatal(err)
	}
	return m, plan
}

// runToEnd runs a training and returns its warnings, each with the number of steps that were reported before.
func runToEnd(t *testing.T, training *Training) []string {
	t.Helper()
	steps, warnings := 0, []string{}
	err := training.Complete(context.Background(), func(event Event) error {
		switch v := event.(type) {
		case Step:
			steps++
		case Warning:
			warnings = append(warnings, fmt.Sprintf("%d: %s", steps, v.Text))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return warnings
}

// A factor of a loss is one of its gradient.
func TestAHeadThatDominatesTheOthersGivesAWarning(t *testing.T) {
	for _, test := range []struct {
		name, weighting, freeze string
		weight                  float64
		steps                   int
		want, steady            string // the beginning and the middle of the only warning; "" for none
	}{
		{"equal weights", "fixed", "none", 1, 0, "", ""},
		{"a large weight", "fixed", "none", 100, 0, "9: ", "(mean of 10 steps)"},
		{"a small weight", "fixed", "none", 0.001, 0, "", ""},
		{"a short training", "fixed", "none", 100, 4, "3: ", "(mean of 4 steps)"},
		{"gradients by task", "pcgrad", "none", 100, 0, "9: ", "(mean of 10 steps)"},
		{"a weighting that learns", "uncertainty", "none", 100, 0, "9: ", "(mean of 10 steps)"},
		{"a frozen encoder", "fixed", "all", 100, 0, "", ""},
		{"a weight of 0", "fixed", "none", 0, 0, "", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			m, plan := balanced(t, test.freeze, test.weighting, test.weight)
			plan.MaxSteps = test.steps
			training, err := New(m, smallData(m, 40), plan)
			if err != nil {
				t.Fatal(err)
			}
			defer training.Close()
			got := runToEnd(t, training)
			if test.want == "" {
				if len(got) > 0 {
					t.Errorf("warnings %q, want none", got)
				}
				return
			}
			want := test.want + `task "tags": head "tags": its gradient at the shared states is `
			if len(got) != 1 || !strings.HasPrefix(got[0], want) || !strings.Contains(got[0], test.steady) {
				t.Errorf("warnings %q, want one that begins with %q and has %q", got, want, test.steady)
			}
		})
	}
}

// The model learns the same bits whether or not gradients are measured, and only the first steps are measured.
func TestMeasuringGradientsChangesNothing(t *testing.T) {
	for _, weighting := range []string{"fixed", "pcgrad"} {
		for _, model := range []func(*testing.T) *multitask.Model{
			func(t *testing.T) *multitask.Model { return smallModel(t, "none", 0.1) },
			func(t *testing.T) *multitask.Model { return residentModel(t, 0.1) },
		} {
			var runs []map[string][]float32
			for _, measures := range []bool{true, false} {
				m := model(t)
				_, plan := balanced(t, "none", weighting, 1)
				plan.Accumulate, plan.MaxSteps = 2, 14
				training, err := New(m, smallData(m, 20), plan)
				if err != nil {
					t.Fatal(err)
				}
				if !measures {
					training.balance = nil
				}
				runToEnd(t, training)
				if measures {
					checkMeasured(t, training.balance)
				}
				training.Close()
				runs = append(runs, everyValue(m))
			}
			for name, measured := range runs[0] {
				if !slices.Equal(measured, runs[1][name]) {
					t.Errorf("weighting %s: %s differs where gradients are measured", weighting, name)
				}
			}
		}
	}
}

// checkMeasured reports what a balance of smallModel's heads lacks after a training.
func checkMeasured(t *testing.T, b *balance) {
	t.Helper()
	if b.Steps != balanceSteps || len(b.Norms) != 3 {
		t.Errorf("%d steps of %d heads are measured, want %d of 3", b.Steps, len(b.Norms), balanceSteps)
	}
	for _, n := range b.Norms {
		if n.Steps < 1 || n.Steps > balanceSteps || !(n.Sum > 0) {
			t.Errorf("%v: norms of %d steps add up to %v, want up to %d above 0", n.Head, n.Steps, n.Sum, balanceSteps)
		}
	}
}

// The measured norm is that of the gradient that the encoder receives from a batch with one head, here by a learning
// rate of 0 in each of the steps: three times the weight is three times the norm.
func TestNormsAreThoseThatTheEncoderReceives(t *testing.T) {
	var norms []float64
	for _, weight := range []float64{1, 3} {
		m, plan := smallModel(t, "none", 0), smallPlan()
		plan.Rate = 0
		m.Groups[1].Tasks[0].Heads[0].Weight = weight
		encoder := &receiving{Encoder: m.Encoder}
		m.Encoder = encoder
		training := stepping(t, m, plan, balanceSteps)
		data, sum := smallData(m, 40)[1].Train, 0.0
		for n := range balanceSteps {
			if _, err := training.Update([]Batch{{1, data[4*n : 4*n+2]}, {1, data[4*n+2 : 4*n+4]}}); err != nil {
				t.Fatal(err)
			}
			sum += math.Sqrt(encoder.square)
			encoder.square = 0
		}
		got := training.balance.Norms[0].Sum
		if !(math.Abs(got/sum-1) < 1e-6) {
			t.Errorf("weight %v: the norms add up to %v, want the %v of what the encoder receives", weight, got, sum)
		}
		norms = append(norms, got)
	}
	if !(math.Abs(norms[1]/norms[0]-3) < 1e-5) {
		t.Errorf("norms %v, want the second to be three times the first", norms)
	}
}

// receiving adds up the squares of what it receives.
type receiving struct {
	encoders.Encoder
	square float64
}

func (r *receiving) Describe() encoders.Description {
	d := r.Encoder.Describe()
	d.Backward = r.backward
	return d
}

func (r *receiving) backward(p *nn.Pass, at [][]float32, into nn.Gradients) {
	for _, d := range at {
		for _, v := range d {
			r.square += float64(v) * float64(v)
		}
	}
	r.Encoder.Describe().Backward(p, at, into)
}

// Heads of detached states pass no gradient: none of them is compared.
func TestAHeadWithoutAGradientIsNotCompared(t *testing.T) {
	losses := []multitask.Loss{
		{Task: "a", Head: "a", Weight: 1}, {Task: "b", Head: "b", Weight: 2}, {Task: "c", Head: "c", Weight: 1},
	}
	for _, test := range []struct {
		squares []float64
		want    string // what the warning has; "": no warning
	}{
		{[]float64{100, 0, 0}, ""},
		{[]float64{100, 1, 0}, "weight: 0.1 "},
		{[]float64{100, 2, 1}, ""},
		{[]float64{0, 0, 0}, ""},
		{[]float64{1, 99, 0}, ""},
		{[]float64{1, 101, 1}, "weight: 0.2 "}, // the head has 2
		{[]float64{1, 100, 100}, ""},
	} {
		b := &balance{}
		b.add(losses, test.squares)
		got := b.warnings(1, 1)
		if (len(got) == 1) != (test.want != "") || len(got) == 1 && !strings.Contains(got[0].Text, test.want) {
			t.Errorf("squares %v: warnings %q, want one with %q", test.squares, got, test.want)
		}
		if again := b.warnings(1, 1); len(again) != 0 {
			t.Errorf("squares %v: warnings %q once more", test.squares, again)
		}
	}
}

// A training that goes on from a snapshot has the measures from before it, and repeats no warning.
func TestATrainingThatGoesOnMeasuresAsOneThatWasNotInterrupted(t *testing.T) {
	start := func() *Training {
		m, plan := balanced(t, "none", "fixed", 100)
		training, err := New(m, smallData(m, 40), plan)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(training.Close)
		return training
	}
	for done, want := range map[int]int{4: 1, 9: 1, 10: 0, 15: 0} {
		whole := start()
		for range done {
			advance(t, whole)
			whole.Warnings()
		}
		again := start()
		mustRestore(t, again, written(t, mustSnapshot(t, whole)))
		got := runToEnd(t, again)
		if len(got) != want || want > 0 && !strings.Contains(got[0], "(mean of 10 steps)") {
			t.Errorf("after %d steps: warnings %q, want %d of 10 steps", done, got, want)
		}
	}
}

// Two ranks have parts of the batches of each group.
func TestTwoRanksMeasureAsOneProcessDoes(t *testing.T) {
	start := func(group *collective.Group) *Training {
		m, plan := balanced(t, "none", "fixed", 100)
		plan.Ranks, plan.Shards = group, 2
		return stepping(t, m, plan, balanceSteps)
	}
	trainings := []*Training{start(nil)}
	for _, transport := range collectivetest.Local(2) {
		group, err := collective.New(transport)
		if err != nil {
			t.Fatal(err)
		}
		trainings = append(trainings, start(group))
	}
	var all sync.WaitGroup
	for _, training := range trainings {
		all.Go(func() {
			data := smallData(training.model.Model, 40)
			for n := range balanceSteps {
				batches := []Batch{{0, data[0].Train[4*n : 4*n+4]}, {1, data[1].Train[4*n : 4*n+4]}}
				if _, err := training.Update(batches); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	whole := trainings[0]
	checkMeasured(t, whole.balance)
	want := whole.Warnings()
	if len(want) != 1 {
		t.Fatalf("one process has the warnings %q, want one", want)
	}
	for _, training := range trainings[1:] {
		if !slices.Equal(training.balance.Norms, whole.balance.Norms) {
			t.Errorf("a rank measures %v, one process %v", training.balance.Norms, whole.balance.Norms)
		}
		if got := training.Warnings(); !slices.Equal(got, want) {
			t.Errorf("a rank has the warnings %q, want %q", got, want)
		}
	}
}
