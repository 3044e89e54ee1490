package multitask

func init() {
	RegisterSampler("proportional", SamplerOptions{}, sampler(func(s several) Proportional { return Proportional{s} }))
	samplers.SetDefault("proportional")
}

// Proportional draws each batch of an epoch once, in random order. If several groups are drawn at once, a group without
// batches left starts again.
type Proportional struct{ several }

// Next draws groups with probabilities proportional to the batches that they have left, or that they have where they
// start again.
func (p Proportional) Next(s State) []int {
	return p.pick(s, func(candidates []bool) int {
		weights, sum := make([]int, len(candidates)), 0
		for g, ok := range candidates {
			if ok && s.Left[g] > 0 {
				weights[g] = s.Left[g]
			} else if ok {
				weights[g] = s.Batches[g]
			}
			sum += weights[g]
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
