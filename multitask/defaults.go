package multitask

// The default sampler and weighting.
func init() {
	samplers.SetDefault("proportional")
	weightings.SetDefault("fixed")
}

// KeepsWeights is implemented by the options of weightings under which a head of weight 0 never learns. Under other
// weightings it may learn.
type KeepsWeights interface{ KeepsWeights() }

// fixedOptions are the options of weighting fixed: none.
type fixedOptions struct{}

// KeepsWeights implements KeepsWeights.
func (fixedOptions) KeepsWeights() {}
