package multitask

// The sampler and the weighting of an experiment that names none.
func init() {
	samplers.SetDefault("proportional")
	weightings.SetDefault("fixed")
}

// KeepsWeights is options of a weighting by which a head of weight 0 never learns. Options that are not KeepsWeights
// may let it learn.
type KeepsWeights interface{ KeepsWeights() }

// fixedOptions are the options of weighting fixed: none.
type fixedOptions struct{}

// KeepsWeights implements KeepsWeights.
func (fixedOptions) KeepsWeights() {}
