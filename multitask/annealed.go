package multitask

func init() { RegisterSampler("annealed", AnnealedOptions{End: 0.2}, NewAnnealed) }

// AnnealedOptions are the keys that may stand beside `type: annealed`.
type AnnealedOptions struct {
	SamplerOptions `yaml:",inline"`

	End float64 `yaml:"end" range:"[0,1]" doc:"α at the end of the run"`
}

// Annealed draws groups in proportion to their examples at first and more and more alike later (Stickland & Murray
// 2019, "BERT and PALs", annealed sampling): with probabilities
//
//	p_g ∝ n_g^α    α = 1 - (1 - end)·(e - 1)/(E - 1)
//
// where n is a group's number of training examples, e the current epoch of E. In a run of a single epoch α falls from
// step to step, by the same formula. Small groups start again within an epoch.
type Annealed struct {
	byProbability
	end float64
}

var _ ProbabilitySampler = Annealed{}

// NewAnnealed makes the sampler for the groups in env.
func NewAnnealed(o AnnealedOptions, env SamplerEnv) (Sampler, error) {
	d, err := newByProbability(o.SamplerOptions, env)
	return Annealed{d, o.End}, err
}

// Next implements Sampler.
func (a Annealed) Next(s State) []int { return a.draw(s.Rand, a.Probabilities(s)) }

// alpha returns the exponent.
func (a Annealed) alpha(s State) float64 {
	done, of := s.Epoch, s.Epochs
	if of <= 1 {
		done, of = s.Step, s.Steps
	}
	if of <= 1 {
		return 1
	}
	return 1 - (1-a.end)*float64(min(done, of-1))/float64(of-1)
}

// Probabilities implements ProbabilitySampler. The terms are n and α.
func (a Annealed) Probabilities(s State) []Probability {
	alpha := a.alpha(s)
	return a.probabilities(powers(s.Examples, 0, alpha), func(g int) map[string]float64 {
		return map[string]float64{"examples": float64(s.Examples[g]), "alpha": alpha}
	})
}
