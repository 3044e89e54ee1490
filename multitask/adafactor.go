package multitask

import (
	"errors"

	"github.com/jenga-nlp/jenga/nn"
)

func init() {
	RegisterOptimizer("adafactor",
		Adafactor{Epsilon1: 1e-30, Epsilon2: 1e-3, ClipThreshold: 1, DecayRate: -0.8}, newAdafactor)
}

// Adafactor updates each weight by its gradient over a root of the gradient's mean square, of which it keeps only the
// means of a matrix's rows and columns (Shazeer & Stern 2018, "Adafactor: Adaptive Learning Rates with Sublinear Memory
// Cost"), as transformers' Adafactor does: next to no memory, where AdamW keeps two numbers for each weight. With R and
// C the running means of the squares of the gradient G of a matrix, over the columns and over the rows,
//
//	U = G / √(R·Cᵀ / mean(R))    W ← W - rate·U / max(1, rms(U)/clip_threshold)
//
// The defaults are those of transformers' Trainer, with the learning rate of the experiment. With `relative_step` the
// optimizer computes the rate itself, usually beside `scale_parameter`, which multiplies it by the root mean square
// of the parameter, as in the paper. `beta1` takes a number for each weight. A step subtracts the rate times
// `weight_decay` of each weight of a matrix.
type Adafactor struct {
	Epsilon1      float64 `yaml:"eps1" range:"[1e-37,1]" doc:"added to the squares of gradients"`
	Epsilon2      float64 `yaml:"eps2" range:"[0,1]" doc:"least factor of the rate by scale_parameter"`
	ClipThreshold float64 `yaml:"clip_threshold" range:"(0,)" doc:"largest root mean square of updates"`
	DecayRate     float64 `yaml:"decay_rate" range:"[-1,0)" doc:"step t has the weight t^decay_rate in the means"`
	Beta1         float64 `yaml:"beta1" range:"[0,1)" doc:"decay rate of the mean of updates; 0: none is kept"`

	ScaleParameter bool `yaml:"scale_parameter" doc:"whether the rate is relative to the weights' size"`
	RelativeStep   bool `yaml:"relative_step" doc:"whether the rate is 1/√t at step t, at most 0.01"`
	WarmupInit     bool `yaml:"warmup_init" doc:"whether the rate of relative_step is at most t/1e6"`
}

var _ RateComputer = Adafactor{}

func newAdafactor(o Adafactor, _ struct{}) (Optimizer, error) {
	if o.WarmupInit && !o.RelativeStep {
		return nil, errors.New("warmup_init: no effect without relative_step; want relative_step: true")
	}
	return o, nil
}

// New implements Optimizer.
func (a Adafactor) New(weightDecay float64) nn.Optimizer { return a.optimizer(weightDecay) }

func (a Adafactor) optimizer(weightDecay float64) *nn.Adafactor {
	return &nn.Adafactor{
		Epsilon1: a.Epsilon1, Epsilon2: a.Epsilon2, ClipThreshold: a.ClipThreshold, DecayRate: a.DecayRate,
		Beta1: a.Beta1, ScaleParameter: a.ScaleParameter, RelativeStep: a.RelativeStep, WarmupInit: a.WarmupInit,
		WeightDecay: weightDecay,
	}
}

// StateSize implements Optimizer.
func (a Adafactor) StateSize(w *nn.Param) int { return a.optimizer(0).StateSize(w) }

// ComputedRate implements RateComputer, without the factors of scale_parameter.
func (a Adafactor) ComputedRate(step int) (rate float64, ok bool) {
	return a.optimizer(0).RelativeRate(step), a.RelativeStep
}
