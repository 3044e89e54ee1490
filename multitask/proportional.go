package multitask

func init() {
	RegisterSampler("proportional", SamplerOptions{}, sampler(func(s several) Proportional { return Proportional{s} }))
	samplers.SetDefault("proportional")
}

// Proportional draws each batch of an epoch once, in random order. If several groups are drawn at once, a group without
// batches left starts again.
type Proportional struct{ several }

var _ ProbabilitySampler = Proportional{}

// Next draws groups with probabilities proportional to the batches that they have left, or that they have where they
// start again.
func (p Proportional) Next(s State) []int {
	return p.pick(s, func(candidates []bool) int {
		weights, sum := p.weights(s, candidates), 0
		for _, n := range weights {
			sum += n
		}
		at := s.Rand.IntN(sum)
		for g, n := range weights {
			if at -= n; at < 0 {
				return g
			}
		}
		panic("multitask: an epoch that has no batch left")
	})
}

// weights returns the number of batches of each candidate: those left, or all if it starts again.
func (p Proportional) weights(s State, candidates []bool) []int {
	weights := make([]int, len(candidates))
	for g, ok := range candidates {
		if ok && s.Left[g] > 0 {
			weights[g] = s.Left[g]
		} else if ok {
			weights[g] = s.Batches[g]
		}
	}
	return weights
}

// Probabilities implements ProbabilitySampler. The term is the number of batches.
func (p Proportional) Probabilities(s State) []Probability {
	var weights []float64
	for _, n := range p.weights(s, p.candidates(s, nil)) {
		weights = append(weights, float64(n))
	}
	return p.probabilities(weights, func(g int) map[string]float64 {
		return map[string]float64{"batches": weights[g]}
	})
}
