package multitask

func init() {
	RegisterWeighting("fixed", NoOptions{}, func(NoOptions, WeightingEnv) (Weighting, error) { return Fixed{}, nil })
	weightings.SetDefault("fixed")
}

// Fixed multiplies each loss by its head's weight in the experiment. All losses change one encoder, and the length of a
// clipped step of AdamW does not depend on their sum: only the ratio of weights matters. Losses that are means over
// many labels need a larger weight; large losses, such as those of numbers and of rare labels that class_weights
// raises, need a smaller one.
type Fixed struct{}

// Weigh returns the heads' weights.
func (Fixed) Weigh(_ State, losses []Loss) []float64 {
	factors := make([]float64, len(losses))
	for i, l := range losses {
		factors[i] = l.Weight
	}
	return factors
}
