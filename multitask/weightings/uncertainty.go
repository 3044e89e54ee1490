package weightings

import (
	"math"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

func init() { Register("uncertainty", UncertaintyOptions{LearningRate: 1e-2}, NewUncertainty) }

// UncertaintyOptions are the keys that may stand beside `type: uncertainty`.
type UncertaintyOptions struct {
	LearningRate float64 `yaml:"learning_rate" range:"(0,)" doc:"highest learning rate of s, scheduled as the model's"`
}

// uncertainty learns the factors of the losses (Kendall et al. 2018, "Multi-Task Learning Using Uncertainty to Weigh
// Losses for Scene Geometry and Semantics", section 3): each head has a parameter s, the logarithm of the variance of
// its labels, which is 0 at first, and a step minimises
//
//	Σ_h ½·exp(-s_h)·L_h + ½·s_h
//
// over the heads that have labelled texts or words in the step. L is a head's mean loss times its weight. The s have a
// learning rate of their own and no weight decay, and are not clipped with the model's gradient.
type uncertainty map[multitask.HeadName]*nn.Param // s of each head, [1]

// NewUncertainty makes the weighting for the heads in env.
func NewUncertainty(o UncertaintyOptions, env Env) (Weighting, error) {
	u, learned := uncertainty{}, &Learned{Rate: o.LearningRate}
	for _, head := range env.Heads {
		s := env.Params.In(head.Task).Zeros(head.Head, 1)
		u[head] = s
		learned.Params = append(learned.Params, s)
	}
	learned.Differentiate = u.differentiate
	return Weighting{Weigh: u.weigh, Learned: learned}, nil
}

func (u uncertainty) weigh(_ multitask.State, losses []multitask.Loss) []float64 {
	factors := make([]float64, len(losses))
	for i, l := range losses {
		factors[i] = 0.5 * math.Exp(-float64(u[l.HeadName()].Data[0])) * l.Weight
	}
	return factors
}

// differentiate adds ½ - ½·exp(-s)·L for each s, and returns the sum of ½·s.
func (u uncertainty) differentiate(losses []multitask.Loss, into nn.Gradients) (terms float64) {
	for _, l := range losses {
		if l.Units == 0 || l.Weight == 0 {
			continue
		}
		s := u[l.HeadName()]
		v := float64(s.Data[0])
		into.Of(s)[0] += float32(0.5 - 0.5*math.Exp(-v)*l.Weight*l.Mean())
		terms += 0.5 * v
	}
	return terms
}
