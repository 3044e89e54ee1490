package multitask

import "github.com/jenga-nlp/jenga/plugin"

// Weighting makes one loss of many.
type Weighting interface {
	// Weigh gives a factor for the mean of each loss of a step.
	Weigh(s State, losses []Loss) []float64
}

// WeightingSite is what a weighting is told.
type WeightingSite struct{}

var weightings = plugin.NewRegistry[WeightingSite, Weighting]("weighting")

// Weightings lists the registered weightings.
func Weightings() *plugin.Registry[WeightingSite, Weighting] { return weightings }

// RegisterWeighting makes a weighting known as `weighting: {type: name}`.
func RegisterWeighting[O any](name string, defaults O, New func(O, WeightingSite) (Weighting, error)) {
	plugin.Register(weightings, name, defaults, New)
}

func init() {
	RegisterWeighting("fixed", fixedOptions{}, func(fixedOptions, WeightingSite) (Weighting, error) { return Fixed{}, nil })
}

// Fixed gives each head the weight that the experiment names. All losses pull at one encoder, and a clipped step of AdamW
// is as long whatever their sum: a weight is a share of it. Losses that are means over many labels ask for a larger one,
// losses that are large by nature, those of numbers and of rare labels that class_weights lift, for a smaller one.
type Fixed struct{}

// Weigh returns the heads' weights.
func (Fixed) Weigh(_ State, losses []Loss) []float64 {
	factors := make([]float64, len(losses))
	for i, l := range losses {
		factors[i] = l.Weight
	}
	return factors
}
