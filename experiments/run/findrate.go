package run

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// RateTest is a learning rate range test (Smith 2017, "Cyclical Learning Rates for Training Neural Networks", section
// 3.3): the rate grows exponentially from step to step, until the loss diverges.
type RateTest struct {
	From, To float64 // rates of the first and the last step
	Steps    int     // at least 2
}

// growth is the curve of the rate of a test, as a fraction of the last one.
type growth struct{ first float64 }

// At implements nn.Curve.
func (g growth) At(done, of int) float64 { return math.Pow(g.first, float64(of-done)/float64(of-1)) }

var _ nn.Curve = growth{}

// FindRate runs a test with the run's data, optimizer and rates of layers and heads, which keep their ratio to the
// learning rate. It changes the weights, so that the run cannot be trained afterwards, and writes no file. It calls did
// after each step.
func (r *Run) FindRate(ctx context.Context, test RateTest, did func()) (report.RateCurve, error) {
	if test.Steps < 2 {
		return report.RateCurve{}, fmt.Errorf("a rate range test of %s; want at least 2",
			plugin.Count(test.Steps, "step"))
	}

	// memory
	data := r.data()
	if _, err := r.checkMemory(data); err != nil {
		return report.RateCurve{}, err
	}
	defer r.machine.limitMemory(0)()

	// plan
	if multitask.ComputesRate(r.plan.Optimizer) {
		return report.RateCurve{}, &plugin.Mistake{Place: r.experiment().Place("training.optimizer"),
			Err: errors.New("training: optimizer: it computes the learning rate, so that there is none to find")}
	}
	plan := r.plan
	plan.MaxSteps, plan.NeverEvaluate, plan.UnfreezeEvery, plan.Average = test.Steps, true, 0, 0
	plan.Rate, plan.HeadRate = test.To, plan.HeadRate/plan.Rate*test.To
	plan.LossLimit, plan.SkipBadSteps = 0, false
	plan.Curve, plan.WarmupSteps, plan.WarmupRatio = growth{test.From / test.To}, 0, 0
	training, err := multitask.New(r.Model, data, plan)
	if err != nil {
		return report.RateCurve{}, err
	}
	defer training.Close()

	// steps, up to the one that diverges
	curve := report.RateCurve{}
	for !training.Done() && !curve.Diverged {
		step, err := training.Step(ctx)
		var bad *multitask.BadStep
		switch {
		case errors.As(err, &bad):
			curve.Diverged = true
		case err != nil:
			return curve, err
		default:
			curve.Add(step)
		}
		did()
	}
	return curve, nil
}
