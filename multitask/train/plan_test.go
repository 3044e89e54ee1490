package train

import (
	"math"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
)

// oneTask is a model of the task mood alone, and n examples of it.
func oneTask(t *testing.T, dropout float64, n int) (*multitask.Model, []multitask.Data) {
	t.Helper()
	m := smallModel(t, "none", dropout)
	m.Groups = m.Groups[1:]
	return m, smallData(m, n)
}

// still is a plan by which hardly anything is learned.
func still() Plan {
	plan := smallPlan()
	plan.Rate, plan.WeightDecay, plan.ClipNorm = 1e-30, 0, 0
	return plan
}

func TestAHeadsWeightWeighsItsLossAndGradient(t *testing.T) {
	first := func(weight float64) Step {
		m, data := oneTask(t, 0, 4)
		m.Groups[0].Tasks[0].Heads[0].Weight = weight
		steps, _ := train(t, m, data, still())
		return steps[0]
	}
	one, three := first(1), first(3)
	if !(math.Abs(three.Loss/one.Loss-3) <= 1e-4) || !(math.Abs(three.GradientNorm/one.GradientNorm-3) <= 1e-4) {
		t.Errorf("with weight 3 loss %v and gradient %v, with 1 %v and %v", three.Loss, three.GradientNorm, one.Loss,
			one.GradientNorm)
	}
}

func TestEvaluationsFollowThePlan(t *testing.T) {
	for every, want := range map[int][]int{0: {5, 10}, 4: {4, 8, 10}} {
		m, data := oneTask(t, 0, 20)
		plan := still()
		plan.EvaluateEvery = every
		_, evaluations := train(t, m, data, plan)
		var at []int
		for _, e := range evaluations {
			at = append(at, e.Step)
		}
		if !slices.Equal(at, want) {
			t.Errorf("every %d steps: evaluations after steps %v, want %v", every, at, want)
		}
	}
}

func TestTheRateRisesThroughItsWarmup(t *testing.T) {
	for _, plan := range []multitask.Options{{WarmupRatio: 0.4}, {WarmupSteps: 4}, {WarmupSteps: 4, WarmupRatio: 0.9}} {
		m, data := oneTask(t, 0, 20)
		asked := still()
		asked.WarmupRatio, asked.WarmupSteps = plan.WarmupRatio, plan.WarmupSteps
		steps, _ := train(t, m, data, asked)
		for i, step := range steps[:4] {
			if i > 0 && !(step.Rate > steps[i-1].Rate) || steps[4].Rate > step.Rate && i == 3 {
				t.Errorf("ratio %v, steps %d: rate %v in step %d, then %v", plan.WarmupRatio, plan.WarmupSteps,
					step.Rate, i+1, steps[i+1].Rate)
			}
		}
	}
}

func TestWeightsDecay(t *testing.T) {
	norm := func(decay float64) float64 {
		m, data := oneTask(t, 0, 20)
		plan := smallPlan()
		plan.WeightDecay = decay
		train(t, m, data, plan)
		sum := 0.0
		for _, w := range m.Params.In("heads").In("mood").All() {
			if len(w.Shape) == 2 {
				for _, v := range w.Data {
					sum += float64(v) * float64(v)
				}
			}
		}
		return sum
	}
	if decayed, free := norm(20), norm(0); !(decayed < 0.9*free) {
		t.Errorf("the squares of the head's weights sum to %v with decay, to %v without", decayed, free)
	}
}

func TestEachStepHidesOtherFeatures(t *testing.T) {
	losses := func(dropout float64) (first, second float64) {
		m, data := oneTask(t, dropout, 1) // which each step sees
		steps, _ := train(t, m, data, still())
		return steps[0].Loss, steps[1].Loss
	}
	if a, b := losses(0); !(math.Abs(a-b) <= 1e-5) {
		t.Errorf("without dropout losses %v and %v of the same example", a, b)
	}
	if a, b := losses(0.5); !(math.Abs(a-b) > 1e-4) {
		t.Errorf("with dropout losses %v and %v: the masks are the same", a, b)
	}
}

func TestEachEpochHasAnotherOrder(t *testing.T) {
	m, data := oneTask(t, 0, 40)
	steps, _ := train(t, m, data, still())
	var tokens [2][]int
	for i, step := range steps {
		tokens[i/10] = append(tokens[i/10], step.Tokens)
	}
	if slices.Equal(tokens[0], tokens[1]) {
		t.Errorf("the batches of both epochs have %v tokens", tokens[0])
	}
}

func TestMaxStepsOverridesEpochs(t *testing.T) {
	for _, c := range []struct {
		max, accumulate int
		epochs          float64
	}{{3, 1, 0.6}, {12, 1, 2.4}, {7, 2, 2.8}, {1, math.MaxInt, 2}} { // 5 batches an epoch, 2 epochs
		m, data := oneTask(t, 0, 20)
		plan := still()
		plan.MaxSteps, plan.Accumulate = c.max, c.accumulate
		steps, evaluations := train(t, m, data, plan)
		last := steps[len(steps)-1]
		if len(steps) != c.max || last.Of != c.max || last.Epoch != c.epochs {
			t.Errorf("max %d: %d steps, the last %d of %d after %v epochs; want %v epochs",
				c.max, len(steps), last.Number, last.Of, last.Epoch, c.epochs)
		}
		if c.max > 1 && last.Rate != 0 || evaluations[len(evaluations)-1].Step != c.max {
			t.Errorf("max %d: the last rate is %v, the last evaluation after step %d; want 0 and the last",
				c.max, last.Rate, evaluations[len(evaluations)-1].Step)
		}
	}
	m, data := oneTask(t, 0, 20)
	plan := still()
	plan.MaxSteps, plan.Accumulate, plan.Epochs = math.MaxInt, 2, math.MaxInt
	want := "training.max_steps: 9223372036854775807 updates of 2 batches overflow an integer; want fewer updates"
	if _, err := New(m, data, plan); err == nil || err.Error() != want {
		t.Errorf("New = %v, want %s", err, want)
	}
}

// The number of evaluations is that of the steps after which one is due.
func TestTheNumberOfEvaluationsIsThatOfTheStepsWhereOneIsDue(t *testing.T) {
	for _, every := range []int{0, 1, 3, 100} {
		for _, never := range []bool{false, true} {
			plan := Plan{EvaluateEvery: every, NeverEvaluate: never}
			for perEpoch := 1; perEpoch <= 9; perEpoch++ {
				for _, of := range [][2]int{{1, 1}, {1, 2}, {2, 1}, {2, 3}, {5, 1}, {7, 2}} {
					for batches := 1; batches <= 40; batches++ {
						n := length{PerEpoch: perEpoch, Rounds: of[0], Groups: of[1], Batches: batches}
						n.Steps = divideUp(batches, n.Rounds*n.Groups)
						want := 0
						for step := 1; step <= n.Steps; step++ {
							if plan.due(step, min(step*n.Rounds*n.Groups, n.Batches), n) {
								want++
							}
						}
						if got := plan.evaluations(n); got != want {
							t.Fatalf("every %d, %+v: %d evaluations, want %d", every, n, got, want)
						}
					}
				}
			}
		}
	}
}
