package samplers

import "github.com/jenga-nlp/jenga/multitask"

func init() { Register("temperature", Temperature{Temperature: 2}, newTemperature) }

// Temperature draws groups with probabilities
//
//	p_g ∝ min(n_g, cap)^(1/t)
//
// where n is a group's number of training examples: the examples-proportional (t = 1) and temperature-scaled mixing of
// Raffel et al. 2020 ("Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", section
// 3.5.2). An epoch has as many batches as all groups' examples make: within it small groups start again, and of large
// groups some examples may be left for the next one.
type Temperature struct {
	Options `yaml:",inline"`

	Temperature float64 `yaml:"temperature" range:"(0,)" doc:"t; the larger, the more alike are the probabilities"`
	Cap         int     `yaml:"cap" range:"[0,)" doc:"groups of more examples count as having so many; 0: no limit"`
}

func newTemperature(o Temperature, env Env) (Sampler, error) {
	turns, err := NewTurns(o.Options, env)
	exponent := 1 / o.Temperature
	return turns.ByProbability(func(s multitask.State) []Probability {
		limited := limitedTo(s.Examples, o.Cap)
		return turns.Probabilities(powers(s.Examples, o.Cap, exponent), func(g int) map[string]float64 {
			return map[string]float64{"examples": limited[g], "exponent": exponent}
		})
	}), err
}

func init() { Register("annealed", Annealed{End: 0.2}, newAnnealed) }

// Annealed draws groups in proportion to their examples at first and more and more alike later (Stickland & Murray
// 2019, "BERT and PALs", annealed sampling): with probabilities
//
//	p_g ∝ n_g^α    α = 1 - (1 - end)·(e - 1)/(E - 1)
//
// where n is a group's number of training examples, e the current epoch of E. In a run of a single epoch α falls from
// step to step, by the same formula. Small groups start again within an epoch.
type Annealed struct {
	Options `yaml:",inline"`

	End float64 `yaml:"end" range:"[0,1]" doc:"α at the end of the run"`
}

func newAnnealed(o Annealed, env Env) (Sampler, error) {
	turns, err := NewTurns(o.Options, env)
	return turns.ByProbability(func(s multitask.State) []Probability {
		alpha := o.alpha(s)
		return turns.Probabilities(powers(s.Examples, 0, alpha), func(g int) map[string]float64 {
			return map[string]float64{"examples": float64(s.Examples[g]), "alpha": alpha}
		})
	}), err
}

func (a Annealed) alpha(s multitask.State) float64 {
	done, of := s.Epoch, s.Epochs
	if of <= 1 {
		done, of = s.Step, s.Steps
	}
	if of <= 1 {
		return 1
	}
	return 1 - (1-a.End)*float64(min(done, of-1))/float64(of-1)
}

func init() { Register("weights", Weights{}, newWeights) }

// Weights draws groups with probabilities in proportion to weights from the experiment:
//
//	p_g = w_g / Σ_h w_h
//
// Of tasks that share texts (same_as), which are one group g, one is named. Within an epoch a group may start again, or
// have some examples left for the next one.
type Weights struct {
	Options `yaml:",inline"`

	Weights taskWeights `yaml:"weights" range:"(0,)" takes:"{TASK: a number above 0}" doc:"w by task; default: 1"`
}

type taskWeights map[string]float64

func newWeights(o Weights, env Env) (Sampler, error) {
	turns, err := NewTurns(o.Options, env)
	if err != nil {
		return Sampler{}, err
	}
	given, err := env.byGroup("weights", o.Weights)
	if err != nil {
		return Sampler{}, err
	}
	weights := make([]float64, len(env.Groups))
	for g := range weights {
		weights[g] = 1
	}
	for g, weight := range given {
		weights[g] = weight
	}
	return turns.ByProbability(func(multitask.State) []Probability {
		return turns.Probabilities(weights, func(g int) map[string]float64 {
			return map[string]float64{"weight": weights[g]}
		})
	}), nil
}
