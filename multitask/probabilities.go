package multitask

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/jenga-nlp/jenga/plugin"
)

// Probability is the probability that a sampler draws a group, and the terms that it is computed from.
type Probability struct {
	Group string
	Value float64
	Terms map[string]float64
}

// ProbabilitySampler is a Sampler that draws groups with probabilities, which each Step reports.
type ProbabilitySampler interface {
	// Probabilities returns those of the next group, in the order of the groups. They sum to 1.
	Probabilities(State) []Probability
}

// EvaluationObserver is a Sampler that receives the evaluations on dev.
type EvaluationObserver interface {
	ObserveEvaluation(Evaluation)
}

// byProbability draws groups with given probabilities; small groups start again within an epoch.
type byProbability struct{ several }

func newByProbability(o SamplerOptions, env SamplerEnv) (byProbability, error) {
	k, err := o.count(env)
	return byProbability{several{k, env.Groups}}, err
}

// probabilities returns weights, none of which is negative, divided by their sum. terms returns those of a group.
func (s several) probabilities(weights []float64, terms func(group int) map[string]float64) []Probability {
	sum := 0.0
	for _, w := range weights {
		sum += w
	}
	if math.IsInf(sum, 1) {
		largest := slices.Max(weights)
		weights, sum = slices.Clone(weights), 0
		for g := range weights {
			weights[g] /= largest
			sum += weights[g]
		}
	}
	all := make([]Probability, len(weights))
	for g, w := range weights {
		all[g] = Probability{Value: w / sum, Terms: terms(g)}
		if w > 0 {
			all[g].Value = max(all[g].Value, math.SmallestNonzeroFloat32) // a group is never left out
		}
		if g < len(s.groups) {
			all[g].Group = s.groups[g]
		}
	}
	return all
}

// draw draws different groups, each with its probability among those that are left.
func (d byProbability) draw(r *rand.Rand, of []Probability) []int {
	left := make([]float64, len(of))
	for g, p := range of {
		left[g] = p.Value
	}
	var chosen []int
	for range min(d.Groups(), len(left)) {
		g := drawOne(r, left)
		chosen = append(chosen, g)
		left[g] = 0
	}
	return chosen
}

// drawOne draws an index with probability weights[i]/Σ weights.
func drawOne(r *rand.Rand, weights []float64) int {
	sum, last := 0.0, -1
	for i, w := range weights {
		if w > 0 {
			sum, last = sum+w, i
		}
	}
	if last < 0 {
		panic("multitask: no group has a probability above 0")
	}
	at := r.Float64() * sum
	for i, w := range weights {
		if at -= w; w > 0 && at < 0 {
			return i
		}
	}
	return last // the sum is rounded
}

// powers returns n^exponent for each group's number of training examples, limited to most unless that is 0, divided
// by the largest so that none overflows.
func powers(examples []int, most int, exponent float64) []float64 {
	limited := limitedTo(examples, most)
	largest := slices.Max(limited)
	weights := make([]float64, len(limited))
	for g, n := range limited {
		weights[g] = max(math.Pow(n/largest, exponent), math.SmallestNonzeroFloat32) // a group is never left out
	}
	return weights
}

// limitedTo returns the numbers of training examples, limited to most unless that is 0.
func limitedTo(examples []int, most int) []float64 {
	limited := make([]float64, len(examples))
	for g, n := range examples {
		if most > 0 {
			n = min(n, most)
		}
		limited[g] = float64(n)
	}
	return limited
}

// byGroup returns the values that an option gives for tasks, by the number of the task's group. A name that is no task
// is an error.
func (env SamplerEnv) byGroup(option string, values map[string]float64) (map[int]float64, error) {
	groups, names := map[string]int{}, map[int]string{}
	for g, name := range env.Groups {
		groups[name] = g
	}
	for g, tasks := range env.Tasks {
		for _, name := range tasks {
			groups[name] = g
		}
	}
	all := map[int]float64{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		g, ok := groups[name]
		if !ok {
			return nil, fmt.Errorf("%s: %s", option, plugin.Unknown("task", name, slices.Collect(maps.Keys(groups))))
		}
		if other, duplicate := names[g]; duplicate {
			return nil, fmt.Errorf("%s: tasks %q and %q read the same texts; want a number for one of them",
				option, other, name)
		}
		names[g], all[g] = name, values[name]
	}
	return all, nil
}
