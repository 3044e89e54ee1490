package multitask

func init() { RegisterSampler("temperature", TemperatureOptions{Temperature: 2}, NewTemperature) }

// TemperatureOptions are the keys that may stand beside `type: temperature`.
type TemperatureOptions struct {
	SamplerOptions `yaml:",inline"`

	Temperature float64 `yaml:"temperature" range:"(0,)" doc:"t; the larger, the more alike are the probabilities"`
	Cap         int     `yaml:"cap" range:"[0,)" doc:"groups of more examples count as having so many; 0: no limit"`
}

// Temperature draws groups with probabilities
//
//	p_g ∝ min(n_g, cap)^(1/t)
//
// where n is a group's number of training examples: the examples-proportional (t = 1) and temperature-scaled mixing of
// Raffel et al. 2020 ("Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", section
// 3.5.2). An epoch has as many batches as all groups' examples make: within it small groups start again, and of large
// groups some examples may be left for the next one.
type Temperature struct {
	byProbability
	options TemperatureOptions
}

var _ ProbabilitySampler = Temperature{}

// NewTemperature makes the sampler for the groups in env.
func NewTemperature(o TemperatureOptions, env SamplerEnv) (Sampler, error) {
	d, err := newByProbability(o.SamplerOptions, env)
	return Temperature{d, o}, err
}

// Next implements Sampler.
func (t Temperature) Next(s State) []int { return t.draw(s.Rand, t.Probabilities(s)) }

// Probabilities implements ProbabilitySampler. The terms are min(n, cap) and 1/t.
func (t Temperature) Probabilities(s State) []Probability {
	exponent := 1 / t.options.Temperature
	limited := limitedTo(s.Examples, t.options.Cap)
	return t.probabilities(powers(s.Examples, t.options.Cap, exponent), func(g int) map[string]float64 {
		return map[string]float64{"examples": limited[g], "exponent": exponent}
	})
}
