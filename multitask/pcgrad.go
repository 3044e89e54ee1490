package multitask

import "math/rand/v2"

func init() {
	RegisterWeighting("pcgrad", NoOptions{}, func(NoOptions, WeightingEnv) (Weighting, error) { return PCGrad{}, nil })
}

// PCGrad removes from each task's gradient of the shared parameters the components that conflict with another task's
// gradient (Yu et al. 2020, "Gradient Surgery for Multi-Task Learning", algorithm 1). For each task i, over the other
// tasks j in random order:
//
//	g_i ← g_i - (g_i·g_j / |g_j|²)·g_j    where g_i·g_j < 0, with the original g_j
//
// and the update uses Σ_i g_i. Losses are multiplied by the heads' weights; parameters of a single task have that
// task's gradient. It keeps one gradient of the encoder per task, in the memory that `jenga check` counts, and takes
// one backward pass per task. Where a sampler's groups are not set, each step has a batch of all groups.
type PCGrad struct{ Fixed }

var _ GradientWeighting = PCGrad{}

// Combine implements GradientWeighting.
func (PCGrad) Combine(s State, tasks []string, dots [][]float64) []float64 {
	return project(dots, func(task int) []int { return others(s.Rand, len(tasks), task) })
}

// others returns the numbers of all tasks except one, in random order.
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
// a[k]·g[k], so that the dot products of g are sufficient. order returns the other tasks in the order in which a task
// is compared with them.
func project(dots [][]float64, order func(task int) []int) []float64 {
	factors := make([]float64, len(dots))
	for i := range dots {
		a := make([]float64, len(dots))
		a[i] = 1
		for _, j := range order(i) {
			along := 0.0 // g_i·g_j, with the current g_i
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
