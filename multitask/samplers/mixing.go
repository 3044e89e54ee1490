package samplers

import "github.com/jenga-nlp/jenga/multitask"

func init() { Register("temperature", TemperatureOptions{Temperature: 2}, NewTemperature) }

// TemperatureOptions are the keys that may stand beside `type: temperature`.
type TemperatureOptions struct {
	Options `yaml:",inline"`

	Temperature float64 `yaml:"temperature" range:"(0,)" doc:"t; the larger, the more alike are the probabilities"`
	Cap         int     `yaml:"cap" range:"[0,)" doc:"groups of more examples count as having so many; 0: no limit"`
}

// temperature draws groups with probabilities
//
//	p_g ∝ min(n_g, cap)^(1/t)
//
// where n is a group's number of training examples: the examples-proportional (t = 1) and temperature-scaled mixing of
// Raffel et al. 2020 ("Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer", section
// 3.5.2). An epoch has as many batches as all groups' examples make: within it small groups start again, and of large
// groups some examples may be left for the next one.
type temperature struct {
	inTurns
	options TemperatureOptions
}

// NewTemperature makes the sampler for the groups in env.
func NewTemperature(o TemperatureOptions, env Env) (Sampler, error) {
	turns, err := newInTurns(o.Options, env)
	return byProbability{turns, temperature{turns, o}.probabilitiesOf}.sampler(), err
}

// probabilitiesOf returns the probabilities. The terms are min(n, cap) and 1/t.
func (t temperature) probabilitiesOf(s multitask.State) []Probability {
	exponent := 1 / t.options.Temperature
	limited := limitedTo(s.Examples, t.options.Cap)
	return t.probabilities(powers(s.Examples, t.options.Cap, exponent), func(g int) map[string]float64 {
		return map[string]float64{"examples": limited[g], "exponent": exponent}
	})
}

func init() { Register("annealed", AnnealedOptions{End: 0.2}, NewAnnealed) }

// AnnealedOptions are the keys that may stand beside `type: annealed`.
type AnnealedOptions struct {
	Options `yaml:",inline"`

	End float64 `yaml:"end" range:"[0,1]" doc:"α at the end of the run"`
}

// annealed draws groups in proportion to their examples at first and more and more alike later (Stickland & Murray
// 2019, "BERT and PALs", annealed sampling): with probabilities
//
//	p_g ∝ n_g^α    α = 1 - (1 - end)·(e - 1)/(E - 1)
//
// where n is a group's number of training examples, e the current epoch of E. In a run of a single epoch α falls from
// step to step, by the same formula. Small groups start again within an epoch.
type annealed struct {
	inTurns
	end float64
}

// NewAnnealed makes the sampler for the groups in env.
func NewAnnealed(o AnnealedOptions, env Env) (Sampler, error) {
	turns, err := newInTurns(o.Options, env)
	return byProbability{turns, annealed{turns, o.End}.probabilitiesOf}.sampler(), err
}

func (a annealed) alpha(s multitask.State) float64 {
	done, of := s.Epoch, s.Epochs
	if of <= 1 {
		done, of = s.Step, s.Steps
	}
	if of <= 1 {
		return 1
	}
	return 1 - (1-a.end)*float64(min(done, of-1))/float64(of-1)
}

// probabilitiesOf returns the probabilities. The terms are n and α.
func (a annealed) probabilitiesOf(s multitask.State) []Probability {
	alpha := a.alpha(s)
	return a.probabilities(powers(s.Examples, 0, alpha), func(g int) map[string]float64 {
		return map[string]float64{"examples": float64(s.Examples[g]), "alpha": alpha}
	})
}

func init() { Register("weights", WeightsOptions{}, NewWeights) }

// WeightsOptions are the keys that may stand beside `type: weights`.
type WeightsOptions struct {
	Options `yaml:",inline"`

	Weights taskWeights `yaml:"weights" range:"(0,)" takes:"{TASK: a number above 0}" doc:"w by task; default: 1"`
}

type taskWeights map[string]float64

// weights draws groups with probabilities in proportion to weights from the experiment:
//
//	p_g = w_g / Σ_h w_h
//
// Of tasks that share texts (same_as), which are one group g, one is named. Within an epoch a group may start again, or
// have some examples left for the next one.
type weights struct {
	inTurns
	weights []float64
}

// NewWeights makes the sampler for the groups in env.
func NewWeights(o WeightsOptions, env Env) (Sampler, error) {
	turns, err := newInTurns(o.Options, env)
	if err != nil {
		return Sampler{}, err
	}
	given, err := env.byGroup("weights", o.Weights)
	if err != nil {
		return Sampler{}, err
	}
	w := weights{inTurns: turns}
	for g := range env.Groups {
		weight, ok := given[g]
		if !ok {
			weight = 1
		}
		w.weights = append(w.weights, weight)
	}
	return byProbability{turns, w.probabilitiesOf}.sampler(), nil
}

// probabilitiesOf returns the probabilities. The term is the weight.
func (w weights) probabilitiesOf(multitask.State) []Probability {
	return w.probabilities(w.weights, func(g int) map[string]float64 {
		return map[string]float64{"weight": w.weights[g]}
	})
}
