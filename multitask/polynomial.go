package multitask

import (
	"fmt"

	"github.com/jenga-nlp/jenga/nn"
)

func init() { RegisterSchedule("polynomial", PolynomialOptions{Power: 1, End: 1e-7}, newPolynomial) }

// PolynomialOptions are the keys that may stand beside `type: polynomial`.
type PolynomialOptions struct {
	Power float64 `yaml:"power" range:"(0,)" doc:"of the fraction of steps left; 1: a straight line"`
	End   float64 `yaml:"lr_end" range:"[0,)" doc:"learning rate of the last step, below learning_rate"`
}

// polynomial is a learning rate that falls to `lr_end` by a power of the steps left, as transformers' polynomial
// schedule: (learning_rate - lr_end)·(1 - progress)^power + lr_end, with progress (n-W)/(N-W) as of linear.
type polynomial = nn.PolynomialCurve

func newPolynomial(o PolynomialOptions, env ScheduleEnv) (nn.Curve, error) {
	if o.End >= env.Rate {
		return nil, fmt.Errorf("lr_end: want a rate below learning_rate, %v, have %v", env.Rate, o.End)
	}
	return polynomial{Power: o.Power, End: o.End / env.Rate}, nil
}
