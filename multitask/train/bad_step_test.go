package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// spoilt is a head whose loss is multiplied for batches that hold one of some targets.
type spoilt struct {
	heads.Head
	by      float32
	targets map[corpus.Target]bool
}

func (s spoilt) Loss(p *nn.Pass, l heads.Logits, gold []corpus.Target) *nn.Node {
	node := s.Head.Loss(p, l, gold)
	if node == nil || !slices.ContainsFunc(gold, func(t corpus.Target) bool { return s.targets[t] }) {
		return node
	}
	return nn.Operation{
		Name:    "times",
		Forward: func(in [][]float32, out []float32) { out[0] = s.by * in[0][0] },
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			if dIn[0] != nil {
				dIn[0][0] += s.by * dOut[0]
			}
		},
	}.Apply(node)
}

// spoil makes the loss of the head mood by times as large on some of its training texts.
func spoil(m *multitask.Model, data []multitask.Data, by float64, texts ...int) {
	bad := spoilt{m.Groups[2].Tasks[0].Heads[0].Head, float32(by), map[corpus.Target]bool{}}
	for i, e := range data[2].Train {
		e.Place = corpus.Place{File: "mood.csv", Line: i + 2}
		e.Text = fmt.Sprintf("text %d %s", i, strings.Repeat("a", 40))
		if slices.Contains(texts, i) {
			bad.targets[e.Targets[0]] = true
		}
	}
	m.Groups[2].Tasks[0].Heads[0].Head = bad
}

// skipping is a plan that leaves out the updates of steps with bad losses.
func skipping() Plan {
	plan := smallPlan()
	plan.Epochs, plan.LossLimit, plan.SkipBadSteps, plan.NeverEvaluate = 4, 1000, true, true
	return plan
}

func TestABadLossNamesTaskAndTexts(t *testing.T) {
	for by, want := range map[float64]string{
		math.NaN():   `: task "mood": the loss of head "mood" is NaN, on 1 of 4 texts: mood.csv:5 "text 3 `,
		math.Inf(1):  `: task "mood": the loss of head "mood" is +Inf, on 1 of 4 texts: mood.csv:5 "text 3 `,
		math.Inf(-1): `: task "mood": the loss of head "mood" is -Inf, on 1 of 4 texts: mood.csv:5 "text 3 `,
	} {
		m, data := threeGroups(t, "none", 12)
		spoil(m, data, by, 3)
		training, err := New(m, data, smallPlan())
		if err != nil {
			t.Fatal(err)
		}
		before := training.state.Step
		for err == nil && !training.Done() {
			before = training.state.Step
			_, err = training.Step(context.Background())
		}
		start := fmt.Sprintf("step %d", before+1)
		var bad *multitask.BadStep
		if !errors.As(err, &bad) || !strings.HasPrefix(err.Error(), start+want) ||
			!strings.HasSuffix(err.Error(), `a…"; training.on_bad_loss: skip leaves the updates of such steps out`) {
			t.Errorf("loss times %v: %v, want %s%s", by, err, start, want)
		}
	}
}

func TestABadStepIsLeftOut(t *testing.T) {
	m, data := threeGroups(t, "none", 12)
	spoil(m, data, math.NaN(), 3, 7)
	training, err := New(m, data, skipping())
	if err != nil {
		t.Fatal(err)
	}
	skipped := 0
	for !training.Done() {
		before := mustSnapshot(t, training)
		step := advance(t, training).(Step)
		after := mustSnapshot(t, training)
		if step.Bad != nil {
			skipped++
			if !reflect.DeepEqual(before.Kinds, after.Kinds) {
				t.Errorf("step %d is left out and changes parameters or the optimizer's state", step.Number)
			}
			if step.Bad.Head != (multitask.HeadName{Task: "mood",
				Head: "mood"}) || !step.Bad.Alone || len(step.Bad.Texts) > 2 {
				t.Errorf("step %d: %v", step.Number, step.Bad)
			}
		} else if reflect.DeepEqual(before.Kinds, after.Kinds) {
			t.Errorf("step %d changes nothing", step.Number)
		}
		if step.Skipped != skipped {
			t.Errorf("step %d: %d steps are left out, want %d", step.Number, step.Skipped, skipped)
		}
	}
	if skipped < 4 || skipped > 8 { // the two texts are in one or two batches of each of four epochs
		t.Errorf("%d steps are left out", skipped)
	}
}

// Nothing of a loss that is NaN stays in a weighting or a sampler, so that the training goes on.
func TestEveryWeightingAndSamplerGoesOnAfterABadStep(t *testing.T) {
	for _, name := range weightings.Registry().Names() {
		t.Run("weighting "+name, func(t *testing.T) {
			checkSkipping(t, func(m *multitask.Model, p *Plan) {
				p.Weighting = registered(weightings.Registry(), name, "", weightings.EnvOf(m, 1))
				p.Sampler = registered(samplers.Registry(), "uniform", "", samplers.EnvOf(m,
					p.Weighting.ComparesTasks()))
			})
		})
	}
	for _, name := range samplers.Registry().Names() {
		t.Run("sampler "+name, func(t *testing.T) {
			checkSkipping(t, func(m *multitask.Model, p *Plan) {
				p.Sampler, p.Accumulate = registered(samplers.Registry(), name, "", samplers.EnvOf(m, false)), 2
			})
		})
	}
}

// checkSkipping trains on a text whose loss is NaN, and again from a snapshot.
func checkSkipping(t *testing.T, change func(m *multitask.Model, p *Plan)) {
	start := func() *Training {
		m, data := threeGroups(t, "none", 12)
		spoil(m, data, math.NaN(), 3)
		plan := skipping()
		plan.NeverEvaluate = false
		for g := range data {
			data[g].Dev = data[g].Train[:2]
		}
		change(m, &plan)
		training, err := New(m, data, plan)
		if err != nil {
			t.Fatal(err)
		}
		return training
	}

	// all steps are finite but for some that are left out
	whole := start()
	skipped, n := 0, 0
	var middle *snapshots.Snapshot
	for !whole.Done() {
		if n++; n == 10 {
			middle = mustSnapshot(t, whole)
		}
		step, ok := advance(t, whole).(Step)
		switch {
		case !ok:
		case step.Bad != nil:
			skipped++
		case !floats.IsFinite(step.Loss):
			t.Fatalf("step %d: loss %v", step.Number, step.Loss)
		}
	}
	if skipped == 0 {
		t.Error("no step is left out")
	}

	// a training that goes on leaves the same steps out
	rest := start()
	if err := restoreSame(rest, middle); err != nil {
		t.Fatal(err)
	}
	if _, end := toEnd(t, rest); !reflect.DeepEqual(end, values(whole.model.Model)) {
		t.Error("a training that goes on from a snapshot has other parameters")
	}
}

func TestALossThatExplodes(t *testing.T) {
	for _, c := range []struct {
		limit float64
		bad   bool
	}{{1000, true}, {0, false}, {1e9, false}} {
		m, data := threeGroups(t, "none", 12)
		spoil(m, data, 1, 3)
		plan := skipping()
		plan.Epochs, plan.LossLimit = 12, c.limit
		training, err := New(m, data, plan)
		if err != nil {
			t.Fatal(err)
		}
		for training.state.Epoch < 10 { // more than 20 steps of each head
			advance(t, training)
		}
		m.Groups[2].Tasks[0].Heads[0].Head = spoilt{
			m.Groups[2].Tasks[0].Heads[0].Head, 1e5, map[corpus.Target]bool{data[2].Train[3].Targets[0]: true},
		}
		var bad *multitask.BadStep
		for !training.Done() {
			if step := advance(t, training).(Step); step.Bad != nil {
				bad = step.Bad
			}
		}
		if (bad != nil) != c.bad {
			t.Errorf("limit %v: %v", c.limit, bad)
		}
		if bad != nil && (!strings.Contains(bad.Error(), "times its usual") || bad.Usual <= 0 ||
			!slices.Equal(bad.Texts, data[2].Train[3:4])) {
			t.Errorf("limit %v: %v", c.limit, bad)
		}
	}
}

func TestTheLossOfABadStepHasSixDigits(t *testing.T) {
	bad := &multitask.BadStep{What: "loss", Head: multitask.HeadName{Task: "a", Head: "b"},
		Loss: 1.2345678901234e25, Usual: 0.5, Of: 4}
	const want = `task "a": the loss of head "b" is 1.23457e+25, which is 2.47e+25 times its usual 0.5 among 4 texts`
	if got := bad.Reason(); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestTooManyBadStepsInARowEndTheTraining(t *testing.T) {
	m, data := threeGroups(t, "none", 12)
	w := m.Params.In("encoder").All()[0].Data
	for i := range w {
		w[i] = float32(math.NaN())
	}
	training, err := New(m, data, skipping())
	if err != nil {
		t.Fatal(err)
	}
	steps := 0
	for err == nil {
		_, err = training.Step(context.Background())
		steps++
	}
	var bad *multitask.BadStep
	if !errors.As(err, &bad) || steps != 10 || !strings.Contains(err.Error(), "last of 10 steps in a row") ||
		!strings.Contains(err.Error(), "on each of 4 texts") {
		t.Errorf("after %d steps: %v", steps, err)
	}
}

// endless is a head whose loss is infinite where the first id of a target is one of some.
type endless struct {
	heads.Head
	ids []int32
}

func (e endless) Loss(p *nn.Pass, l heads.Logits, gold []corpus.Target) *nn.Node {
	bad := slices.ContainsFunc(gold, func(t corpus.Target) bool {
		return slices.Contains(e.ids, t.(*outputs.HiddenTarget).IDs[0])
	})
	node := e.Head.Loss(p, l, gold)
	if node == nil || !bad {
		return node
	}
	return nn.Operation{
		Name:    "infinite",
		Forward: func(_ [][]float32, out []float32) { out[0] = float32(math.Inf(1)) },
	}.Apply(node)
}

// A text that is tried alone hides the tokens that it hid in its batch.
func TestABadLossOfHiddenTokensNamesItsTexts(t *testing.T) {
	m, data := hidingModel(t, "none")
	head := &m.Groups[0].Tasks[0].Heads[0]
	head.Head = endless{head.Head, []int32{2 + 5, 2 + 7}} // texts 5 and 7 repeat these tokens
	for i, e := range data.Train {
		e.Place = corpus.Place{File: "texts.txt", Line: i + 1}
	}
	training := stepping(t, m, smallPlan(), 2)
	_, err := training.Update([]Batch{{0, data.Train[:12]}})
	var bad *multitask.BadStep
	if !errors.As(err, &bad) {
		t.Fatalf("Update = %v, want a bad step", err)
	}
	if got := bad.Places(len(bad.Texts)); !bad.Alone || bad.Of != 12 || len(got) != 2 ||
		!strings.HasPrefix(got[0], "texts.txt:6") || !strings.HasPrefix(got[1], "texts.txt:8") {
		t.Errorf("%v: texts %q of %d, want those of lines 6 and 8 of 12", err, got, bad.Of)
	}
}

func TestTheLastOfTooManyBadStepsInARowAdvisesALowerRate(t *testing.T) {
	g := newGuard([]multitask.HeadName{{Task: "a", Head: "b"}}, 1000, true)
	var err error
	for range mostInRow {
		err = g.skip(&multitask.BadStep{What: "loss", Remedy: multitask.SkipSteps})
	}
	var bad *multitask.BadStep
	if !errors.As(err, &bad) || bad.Remedy != multitask.LowerRate ||
		!strings.HasSuffix(err.Error(), "a lower training.learning_rate may help") {
		t.Errorf("skip = %v, want a lower rate", err)
	}
}

func TestAGradientThatIsNotFiniteIsABadStep(t *testing.T) {
	m, data := threeGroups(t, "none", 12)
	spoil(m, data, 1, 0)
	training := stepping(t, m, smallPlan(), 2)
	loss := spoiltGradient{m.Groups[2].Tasks[0].Heads[0].Head}
	m.Groups[2].Tasks[0].Heads[0].Head = loss
	_, err := training.Update([]Batch{{2, data[2].Train[:5]}})
	want := `step 1: the gradient is not finite among 5 texts: mood.csv:2 "text 0 `
	if err == nil || !strings.HasPrefix(err.Error(), want) ||
		!strings.HasSuffix(err.Error(), "and 2 more; no update came before it: it follows from the texts, "+
			"their targets and the initial weights") {
		t.Errorf("Update = %v, want %s", err, want)
	}
}

// spoiltGradient is a head with a finite loss whose gradient is infinite.
type spoiltGradient struct{ heads.Head }

func (s spoiltGradient) Loss(p *nn.Pass, l heads.Logits, gold []corpus.Target) *nn.Node {
	return nn.Operation{
		Name:    "the same",
		Forward: func(in [][]float32, out []float32) { out[0] = in[0][0] },
		Backward: func(_ [][]float32, _, _ []float32, dIn [][]float32) {
			if dIn[0] != nil {
				dIn[0][0] = float32(math.Inf(1))
			}
		},
	}.Apply(s.Head.Loss(p, l, gold))
}
