package multitask

import (
	"errors"

	"github.com/jenga-nlp/jenga/nn"
)

func init() { RegisterOptimizer("sgd", SGD{Momentum: 0.9}, newSGD) }

// SGD updates weights by their gradients, or with `momentum` by a sum of past gradients in which older ones fade, as
// torch.optim.SGD does. It keeps one number for each weight, none without momentum. `weight_decay` times each weight of
// a matrix is added to its gradient. Transformers learn slowly by it: the gradients of their layers differ in size,
// which AdamW and Adafactor divide out.
type SGD struct {
	Momentum  float64 `yaml:"momentum" range:"[0,1)" doc:"factor of the past gradients' sum; 0: none is kept"`
	Dampening float64 `yaml:"dampening" range:"[0,1)" doc:"a gradient is added to the sum times 1 minus it"`
	Nesterov  bool    `yaml:"nesterov" doc:"whether the sum is taken a step ahead (Sutskever et al. 2013)"`
}

func newSGD(o SGD, _ struct{}) (Optimizer, error) {
	switch {
	case o.Nesterov && o.Momentum == 0:
		return nil, errors.New("nesterov: it is a kind of momentum, which is 0; want a momentum above 0")
	case o.Nesterov && o.Dampening > 0:
		return nil, errors.New("nesterov: it is not defined with dampening; leave out one of them")
	}
	return o, nil
}

// New implements Optimizer.
func (s SGD) New(weightDecay float64) nn.Optimizer { return s.optimizer(weightDecay) }

func (s SGD) optimizer(weightDecay float64) *nn.SGD {
	return &nn.SGD{Momentum: s.Momentum, Dampening: s.Dampening, Nesterov: s.Nesterov, WeightDecay: weightDecay}
}

// StateSize implements Optimizer.
func (s SGD) StateSize(w *nn.Param) int { return s.optimizer(0).StateSize(w) }
