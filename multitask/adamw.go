package multitask

import "github.com/jenga-nlp/jenga/nn"

func init() {
	RegisterOptimizer("adamw", defaultAdamW, func(o AdamW, _ struct{}) (Optimizer, error) { return o, nil })
	optimizers.SetDefault("adamw")
}

var defaultAdamW = AdamW{Beta1: 0.9, Beta2: 0.999, Epsilon: 1e-8}

// AdamW updates each weight by the running mean of its gradient over the root of that of its square (Loshchilov &
// Hutter 2019, "Decoupled Weight Decay Regularization"), as torch.optim.AdamW does. It keeps both means, m and v: two
// numbers for each weight w. With the clipped gradient g, the rate r and t the updates of the tensor so far, this one
// included, an update is
//
//	m ← β₁·m + (1-β₁)·g    v ← β₂·v + (1-β₂)·g²
//	w ← (1 - r·weight_decay)·w - r·m/(1-β₁ᵗ) / (√(v/(1-β₂ᵗ)) + eps)
//
// Tensors with two dimensions or more decay: weights of layers, embeddings, W and R of LSTMs, the transitions of a crf.
// Biases, norms and other vectors do not, as if weight_decay were 0. A tensor whose gradient is 0 as a whole, as that
// of a head without a batch in the step, is not updated at all: it does not decay, and t does not count the step.
type AdamW struct {
	Beta1   float64 `yaml:"beta1" range:"[0,1)" doc:"decay rate of the mean of gradients"`
	Beta2   float64 `yaml:"beta2" range:"[0,1)" doc:"decay rate of the mean of their squares"`
	Epsilon float64 `yaml:"eps" range:"[1e-30,1]" doc:"added to the root of the squares' mean"`
}

// New implements Optimizer.
func (a AdamW) New(weightDecay float64) nn.Optimizer {
	o := nn.NewAdamW(weightDecay)
	o.Beta1, o.Beta2, o.Epsilon = a.Beta1, a.Beta2, a.Epsilon
	return o
}

// StateSize implements Optimizer.
func (AdamW) StateSize(w *nn.Param) int { return (*nn.AdamW)(nil).StateSize(w) }
