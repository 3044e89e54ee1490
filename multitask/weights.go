package multitask

func init() { RegisterSampler("weights", WeightsOptions{}, NewWeights) }

// WeightsOptions are the keys that may stand beside `type: weights`.
type WeightsOptions struct {
	SamplerOptions `yaml:",inline"`

	Weights taskWeights `yaml:"weights" range:"(0,)" takes:"{TASK: a number above 0}" doc:"w by task; default: 1"`
}

// taskWeights are weights by task.
type taskWeights map[string]float64

// Weights draws groups with probabilities in proportion to weights from the experiment:
//
//	p_g = w_g / Σ_h w_h
//
// Of tasks that share texts (same_as), which are one group g, one is named. Within an epoch a group may start again, or
// have some examples left for the next one.
type Weights struct {
	byProbability
	weights []float64
}

var _ ProbabilitySampler = Weights{}

// NewWeights makes the sampler for the groups in env.
func NewWeights(o WeightsOptions, env SamplerEnv) (Sampler, error) {
	d, err := newByProbability(o.SamplerOptions, env)
	if err != nil {
		return nil, err
	}
	given, err := env.byGroup("weights", o.Weights)
	if err != nil {
		return nil, err
	}
	w := Weights{byProbability: d}
	for g := range env.Groups {
		weight, ok := given[g]
		if !ok {
			weight = 1
		}
		w.weights = append(w.weights, weight)
	}
	return w, nil
}

// Next implements Sampler.
func (w Weights) Next(s State) []int { return w.draw(s.Rand, w.Probabilities(s)) }

// Probabilities implements ProbabilitySampler. The term is the weight.
func (w Weights) Probabilities(State) []Probability {
	return w.probabilities(w.weights, func(g int) map[string]float64 {
		return map[string]float64{"weight": w.weights[g]}
	})
}
