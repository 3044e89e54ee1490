package multitask

import "slices"

func init() {
	RegisterSampler("uniform", SamplerOptions{}, sampler(func(s several) Uniform { return Uniform{s} }))
}

// Uniform draws all groups equally often: small ones start again within an epoch.
type Uniform struct{ several }

var _ ProbabilitySampler = Uniform{}

// Next draws groups, all with equal probability.
func (u Uniform) Next(s State) []int {
	rest := make([]int, len(s.Left))
	for g := range rest {
		rest[g] = g
	}
	var chosen []int
	for range min(u.Groups(), len(rest)) {
		at := s.Rand.IntN(len(rest))
		chosen = append(chosen, rest[at])
		rest = slices.Delete(rest, at, at+1)
	}
	return chosen
}

// Probabilities implements ProbabilitySampler. The term is the weight, 1.
func (u Uniform) Probabilities(s State) []Probability {
	return u.probabilities(slices.Repeat([]float64{1}, len(s.Left)), func(int) map[string]float64 {
		return map[string]float64{"weight": 1}
	})
}
