package weightings

import (
	"math"
	"math/rand/v2"

	"github.com/jenga-nlp/jenga/multitask"
)

func init() {
	Register("pcgrad", struct{}{}, func(struct{}, Env) (Weighting, error) {
		return Weighting{Combine: pcGrad{}.combine}, nil
	})
}

// pcGrad removes from each task's gradient of the shared parameters the components that conflict with another task's
// gradient (Yu et al. 2020, "Gradient Surgery for Multi-Task Learning", algorithm 1). For each task i, over the other
// tasks j in random order:
//
//	g_i ← g_i - (g_i·g_j / |g_j|²)·g_j    where g_i·g_j < 0, with the original g_j
//
// and the update uses Σ_i g_i. Losses are multiplied by the heads' weights; parameters of a single task have that
// task's gradient. It keeps one gradient of the encoder per task, in the memory that `jenga check` counts, and takes
// one backward pass per task. Where a sampler's groups are not set, each step has a batch of all groups.
type pcGrad struct{}

func (pcGrad) combine(s multitask.State, tasks []string, dots [][]float64) []float64 {
	return Project(dots, func(task int) []int { return others(s.Rand, len(tasks), task) })
}

func others(r *rand.Rand, tasks, but int) []int {
	var order []int
	for _, t := range r.Perm(tasks) {
		if t != but {
			order = append(order, t)
		}
	}
	return order
}

// Project returns the factors of the gradients g in the sum of all projected ones. A projected gradient is Σ_k
// a[k]·g[k], so that the dot products of g are sufficient. order returns the other tasks in the order in which a task
// is compared with them.
func Project(dots [][]float64, order func(task int) []int) []float64 {
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

func init() {
	Register("cagrad", CAGrad{C: 0.5}, func(o CAGrad, _ Env) (Weighting, error) {
		return Weighting{Combine: o.combine, ReportsFactors: true}, nil
	})
}

// CAGrad updates the shared parameters so that the loss that falls least falls as much as possible, in a ball around
// the mean gradient (conflict-averse gradient descent, Liu et al. 2021, "Conflict-Averse Gradient Descent for
// Multi-task Learning", algorithm 1). Of the gradients g of K tasks, with their mean g_0, the update uses
//
//	(g_0 + λ·g_x)/(1 + c²)    g_x = Σ_t x_t·g_t    λ = c·|g_0|/|g_x|
//
// where x, of at least 0 and with sum 1, minimises g_x·g_0 + c·|g_0|·|g_x|. Losses are multiplied by the heads'
// weights; parameters of a single task have that task's gradient.
//
// A step that holds only some tasks is one of a model that has only those. Tasks without a gradient of the shared
// parameters do not count. In a step of one task the update is its gradient times (1 + c)/(1 + c²), so that each step
// has a batch of all groups where a sampler's groups are not set. It keeps one gradient of the encoder per task, in the
// memory that `jenga check` counts, and takes one backward pass per task.
type CAGrad struct {
	C float64 `yaml:"c" range:"[0,)" doc:"how far the update may be from the mean gradient; 0: it is that"`
}

func (c CAGrad) combine(_ multitask.State, tasks []string, dots [][]float64) []float64 {
	// the gradients that are not zero
	at, factors := withGradient(dots), make([]float64, len(tasks))
	a := make([][]float64, len(at))
	for i, t := range at {
		for _, u := range at {
			a[i] = append(a[i], dots[t][u])
		}
	}

	// g_0 + λ·g_x
	for i, factor := range averse(a, c.C) {
		factors[at[i]] = factor / (1 + c.C*c.C)
	}
	return factors
}

// tiny keeps roots and quotients of norms from being those of 0, as in the authors' implementation.
const tiny = 1e-8

// averse returns the factors 1/K + λ·x of gradients with the dot products a.
func averse(a [][]float64, c float64) []float64 {
	k := float64(len(a))
	mean, slope := 0.0, make([]float64, len(a)) // |g_0|², g_t·g_0
	for t, row := range a {
		for _, v := range row {
			slope[t] += v / k
		}
		mean += slope[t] / k
	}
	radius := c*math.Sqrt(max(0, mean)+tiny) + tiny
	x := leastOnSimplex(a, slope, radius)

	square := 0.0 // |g_x|²
	for t, row := range a {
		for u, v := range row {
			square += x[t] * x[u] * v
		}
	}
	lambda := radius / (math.Sqrt(max(0, square)) + tiny)
	factors := make([]float64, len(a))
	for t := range factors {
		factors[t] = 1/k + lambda*x[t]
	}
	return factors
}

// leastOnSimplex minimises f(x) = slope·x + radius·√(xᵀ·a·x + tiny) over x of at least 0 with sum 1. It moves weight
// between two coordinates at a time, those with the largest and the least derivative, by an exact line search: f is
// convex.
func leastOnSimplex(a [][]float64, slope []float64, radius float64) []float64 {
	n := len(a)
	x, ax := make([]float64, n), make([]float64, n) // ax = a·x
	for t, row := range a {
		x[t] = 1 / float64(n)
		for _, v := range row {
			ax[t] += v / float64(n)
		}
	}
	for range 1000 * n {
		square := 0.0
		for t, v := range ax {
			square += x[t] * v
		}
		square = max(0, square) + tiny
		root := math.Sqrt(square)

		// from i, which has weight and the largest derivative, to j
		i, j := -1, 0
		derivative := func(t int) float64 { return slope[t] + radius*ax[t]/root }
		for t := range n {
			if x[t] > 0 && (i < 0 || derivative(t) > derivative(i)) {
				i = t
			}
			if derivative(t) < derivative(j) {
				j = t
			}
		}
		if derivative(i)-derivative(j) <= 1e-13*(math.Abs(derivative(i))+math.Abs(derivative(j))) {
			break
		}

		// f(x + s·(e_j - e_i)) = s·b + radius·√(square + 2·s·q + s²·r) + …
		b, q, r := slope[j]-slope[i], ax[j]-ax[i], a[i][i]-2*a[i][j]+a[j][j]
		s := min(x[i], leastOnLine(b, square, q, r, radius))
		if !(s > 0) {
			break
		}
		x[j] += s
		x[i] -= s
		for t := range ax {
			ax[t] += s * (a[t][j] - a[t][i])
		}
	}
	return x
}

// leastOnLine returns the s that minimises s·b + radius·√(p + 2·s·q + s²·r), which is convex: the root of its
// derivative, +Inf where it falls without end.
func leastOnLine(b, p, q, r, radius float64) float64 {
	// with u = q + s·r and d = p·r - q²: the derivative is b + radius·u·√r/√(u² + d)
	rest := radius*radius*r - b*b
	if r <= 0 || rest <= 0 {
		return math.Inf(1)
	}
	u := -b * math.Sqrt(max(0, p*r-q*q)/rest)
	return (u - q) / r
}
