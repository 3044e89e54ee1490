package samplers

import (
	"slices"

	"github.com/jenga-nlp/jenga/multitask"
)

func init() {
	Register("proportional", Options{}, drawing(func(turns Turns) drawer { return proportional{turns} }))
	Register("round_robin", Options{}, drawing(func(turns Turns) drawer { return roundRobin{turns} }))
	Register("uniform", Options{}, drawing(func(turns Turns) drawer { return uniform{turns} }))
	registry.SetDefault("proportional")
}

// drawer draws the groups of a turn, and returns the probabilities of the first of them.
type drawer interface {
	next(s multitask.State) []int
	all(s multitask.State) []Probability
}

// drawing returns what makes a sampler that has no options of its own.
func drawing(of func(Turns) drawer) func(o Options, env Env) (Sampler, error) {
	return func(o Options, env Env) (Sampler, error) {
		turns, err := NewTurns(o, env)
		d := of(turns)
		return Sampler{Next: d.next, Groups: turns.atOnce, Probabilities: d.all}, err
	}
}

// proportional draws each batch of an epoch once, in random order. If several groups are drawn at once, a group without
// batches left starts again.
type proportional struct{ Turns }

// next draws groups with probabilities proportional to the batches that they have left, or that they have where they
// start again.
func (p proportional) next(s multitask.State) []int {
	return p.Pick(s, func(candidates []bool) int {
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
		panic("samplers: an epoch that has no batch left")
	})
}

// weights returns the number of batches of each candidate: those left, or all if it starts again.
func (p proportional) weights(s multitask.State, candidates []bool) []int {
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

// all returns the probabilities. The term is the number of batches.
func (p proportional) all(s multitask.State) []Probability {
	var weights []float64
	for _, n := range p.weights(s, p.candidates(s, nil)) {
		weights = append(weights, float64(n))
	}
	return p.Probabilities(weights, func(g int) map[string]float64 {
		return map[string]float64{"batches": weights[g]}
	})
}

// roundRobin takes the groups in turn. Each batch of an epoch comes once; a group without batches left is skipped.
// If several groups are drawn at once, groups without batches left start again to complete the draw.
type roundRobin struct{ Turns }

// next returns the first groups after the last one that have a batch left.
func (r roundRobin) next(s multitask.State) []int {
	last := s.Last
	return r.Pick(s, func(candidates []bool) int {
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
	panic("samplers: an epoch that has no batch left")
}

// all returns the probabilities: 1 for the group whose turn it is. The term is the batches left.
func (r roundRobin) all(s multitask.State) []Probability {
	weights := make([]float64, len(s.Left))
	weights[after(s.Last, r.candidates(s, nil))] = 1
	return r.Probabilities(weights, func(g int) map[string]float64 {
		return map[string]float64{"left": float64(max(0, s.Left[g]))}
	})
}

// uniform draws all groups equally often: small ones start again within an epoch.
type uniform struct{ Turns }

func (u uniform) next(s multitask.State) []int {
	rest := make([]int, len(s.Left))
	for g := range rest {
		rest[g] = g
	}
	var chosen []int
	for range min(u.atOnce, len(rest)) {
		at := s.Rand.IntN(len(rest))
		chosen = append(chosen, rest[at])
		rest = slices.Delete(rest, at, at+1)
	}
	return chosen
}

// all returns the probabilities. The term is the weight, 1.
func (u uniform) all(s multitask.State) []Probability {
	return u.Probabilities(slices.Repeat([]float64{1}, len(s.Left)), func(int) map[string]float64 {
		return map[string]float64{"weight": 1}
	})
}
