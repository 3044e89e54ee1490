package multitask

func init() {
	RegisterSampler("round_robin", SamplerOptions{}, sampler(func(s several) RoundRobin { return RoundRobin{s} }))
}

// RoundRobin takes the groups in turn. Each batch of an epoch comes once; a group without batches left is skipped.
// If several groups are drawn at once, groups without batches left start again to complete the draw.
type RoundRobin struct{ several }

// Next returns the first groups after the last one that have a batch left.
func (r RoundRobin) Next(s State) []int {
	last := s.Last
	return r.pick(s, func(candidates []bool) int {
		for i := range candidates {
			if g := (last + 1 + i) % len(candidates); candidates[g] {
				last = g
				return g
			}
		}
		panic("multitask: an epoch that has no batch left")
	})
}
