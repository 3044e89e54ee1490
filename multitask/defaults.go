package multitask

// The default sampler and weighting.
func init() {
	samplers.SetDefault("proportional")
	weightings.SetDefault("fixed")
}

// fixedOptions are the options of weighting fixed: none.
type fixedOptions struct{}
