package multitask

import "math/rand/v2"

func init() {
	RegisterWeighting("pcgrad", NoOptions{}, func(NoOptions, WeightingEnv) (Weighting, error) { return PCGrad{}, nil })
}

// PCGrad takes from each task's gradient of the shared parameters what works against another task's (Yu et al. 2020,
// "Gradient Surgery for Multi-Task Learning", algorithm 1). For each task i, over the other tasks j in random order:
//
//	g_i ← g_i - (g_i·g_j / |g_j|²)·g_j    where g_i·g_j < 0, with g_j as it was
//
// and the update takes Σ_i g_i. Losses have the heads' weights; parameters of one task alone have its gradient. It
// keeps one gradient of the encoder a task, and takes one backward pass a task. Where a sampler's groups are not
// given, each step has a batch of all groups.
type PCGrad struct{ Fixed }

var _ GradientWeighting = PCGrad{}

// Combine implements GradientWeighting.
func (PCGrad) Combine(s State, tasks []string, dots [][]float64) []float64 {
	return project(dots, func(task int) []int { return others(s.Rand, len(tasks), task) })
}

// others returns the tasks but one, of so many, in random order.
func others(r *rand.Rand, tasks, but int) []int {
	var order []int
	for _, t := range r.Perm(tasks) {
		if t != but {
			order = append(order, t)
		}
	}
	return order
}

// project returns the factors of the gradients g in the sum of all projected ones. A projected gradient is Σ_k
// a[k]·g[k], so that the dot products of g are all that is needed. order gives the other tasks in the order that a
// task meets them.
func project(dots [][]float64, order func(task int) []int) []float64 {
	factors := make([]float64, len(dots))
	for i := range dots {
		a := make([]float64, len(dots))
		a[i] = 1
		for _, j := range order(i) {
			along := 0.0 // g_i·g_j, of g_i as it has become
			for k, factor := range a {
				along += factor * dots[k][j]
			}
			if along < 0 && dots[j][j] > 0 {
				a[j] -= along / dots[j][j]
			}
		}
		for k, factor := range a {
			factors[k] += factor
		}
	}
	return factors
}
