package multitask

func init() {
	RegisterSampler("round_robin", SamplerOptions{}, sampler(func(s several) RoundRobin { return RoundRobin{s} }))
}

// RoundRobin takes the groups in turn. Each batch of an epoch comes once; a group without batches left is skipped.
// If several groups are drawn at once, groups without batches left start again to complete the draw.
type RoundRobin struct{ several }

var _ ProbabilitySampler = RoundRobin{}

// Next returns the first groups after the last one that have a batch left.
func (r RoundRobin) Next(s State) []int {
	last := s.Last
	return r.pick(s, func(candidates []bool) int {
		last = after(last, candidates)
		return last
	})
}

// after returns the first candidate after a group, from the first one on again at the end.
func after(last int, candidates []bool) int {
	for i := range candidates {
		if g := (last + 1 + i) % len(candidates); candidates[g] {
			return g
		}
	}
	panic("multitask: an epoch that has no batch left")
}

// Probabilities implements ProbabilitySampler: 1 for the group whose turn it is. The term is the batches left.
func (r RoundRobin) Probabilities(s State) []Probability {
	weights := make([]float64, len(s.Left))
	weights[after(s.Last, r.candidates(s, nil))] = 1
	return r.probabilities(weights, func(g int) map[string]float64 {
		return map[string]float64{"left": float64(max(0, s.Left[g]))}
	})
}
