package weightings

import (
	"math"

	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/multitask"
)

func init() { Register("famo", FAMOOptions{Gamma: 1e-3, LearningRate: 0.025}, newFAMO) }

// FAMOOptions are the keys that may stand beside `type: famo`.
type FAMOOptions struct {
	Gamma        float64 `yaml:"gamma" range:"[0,)" doc:"γ: decay of ξ, which draws the factors together"`
	LearningRate float64 `yaml:"learning_rate" range:"(0,)" doc:"learning rate of ξ, the same in all steps"`
}

// famo learns factors by which the logarithms of all losses fall equally fast (fast adaptive multitask optimization,
// Liu et al. 2023, algorithm 1). Each head has a parameter ξ, 0 at first. The factors of the losses are
//
//	z_h / (D_h·Σ_i z_i/D_i)    z = softmax(ξ)    D_h = L_h + 1e-8
//
// where L is a head's mean loss; the losses are multiplied by the heads' weights too. After each update ξ is changed by
// Adam, with the decay γ in the gradient, against
//
//	Jᵀ·δ    J_ij = z_i·(1[i=j] - z_j)    δ_h = log D_h before the update - log D_h after it
//
// A step that holds only some heads is one of a model that has only those: sums are over the heads that have labelled
// texts or words, and the ξ of others stay as they are. A step of one head has the factor of its weight alone, so that
// each step has a batch of all groups where a sampler's groups are not set. Losses after the update, on the same
// batches, take another forward pass of each; so do those before it, where a step has several batches. It takes no
// memory for gradients. It needs losses of at least 0.
type famo struct {
	options FAMOOptions
	heads   map[multitask.HeadName]int // → index in state
	state   *[]famoHead
}

// famoHead is ξ of a head and its Adam.
type famoHead struct {
	Logit        float64
	Mean, Square float64 // running means of the gradient and of its square
	Steps        int     // updates
}

func newFAMO(o FAMOOptions, env Env) (Weighting, error) {
	state := make([]famoHead, len(env.Heads))
	f := famo{options: o, heads: multitask.HeadNumbers(env.Heads), state: &state}
	check := func(heads []famoHead) error { return multitask.CheckHeads(len(heads), len(f.heads)) }
	return Weighting{WeighLosses: f.weigh, Review: f.review, State: multitask.JSONState(f.state, check)}, nil
}

func distance(l multitask.Loss) float64 { return max(0, l.Mean()) + 1e-8 }

// present returns the indices of the losses that have labelled units and a weight above 0, and z for each.
func (f famo) present(losses []multitask.Loss) (at []int, z []float64) {
	var logits []float64
	for i, l := range losses {
		if l.Units > 0 && l.Weight > 0 {
			at, logits = append(at, i), append(logits, (*f.state)[f.heads[l.HeadName()]].Logit)
		}
	}
	return at, softmax(logits)
}

func (f famo) weigh(_ multitask.State, losses []multitask.Loss) []float64 {
	at, z := f.present(losses)
	sum := 0.0
	for k, i := range at {
		sum += z[k] / distance(losses[i])
	}
	factors := make([]float64, len(losses))
	for k, i := range at {
		factors[i] = losses[i].Weight * z[k] / (distance(losses[i]) * sum)
	}
	return factors
}

func (f famo) review(_ multitask.State, before, after []multitask.Loss) {
	// δ and its mean by z
	at, z := f.present(before)
	falls, mean := make([]float64, len(at)), 0.0
	for k, i := range at {
		falls[k] = math.Log(distance(before[i])) - math.Log(distance(after[i]))
		mean += z[k] * falls[k]
	}
	if !floats.IsFinite(mean) {
		return // the next step finds that the model has diverged
	}

	// Jᵀ·δ
	for k, i := range at {
		head := &(*f.state)[f.heads[before[i].HeadName()]]
		head.update(z[k]*(falls[k]-mean)+f.options.Gamma*head.Logit, f.options.LearningRate)
	}
}

// update changes a head's ξ by Adam.
func (h *famoHead) update(gradient, rate float64) {
	const beta1, beta2, epsilon = 0.9, 0.999, 1e-8
	h.Steps++
	h.Mean = beta1*h.Mean + (1-beta1)*gradient
	h.Square = beta2*h.Square + (1-beta2)*gradient*gradient
	mean := h.Mean / (1 - math.Pow(beta1, float64(h.Steps)))
	square := h.Square / (1 - math.Pow(beta2, float64(h.Steps)))
	h.Logit -= rate * mean / (math.Sqrt(square) + epsilon)
}
