// Package samplers has what chooses the tasks whose batches train next.
package samplers

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// Sampler chooses the group of the next training batch. An epoch has as many batches as all groups' examples make,
// unless it is an EpochSampler.
type Sampler interface {
	// Next returns the number of the next batch's group, or as many numbers as a MultiSampler's Groups. A group without
	// batches left starts again.
	Next(multitask.State) []int
}

// MultiSampler is a Sampler whose Next returns several groups at once.
type MultiSampler interface {
	Groups() int // how many
}

// EpochSampler is a Sampler whose epochs are of another length than all groups' examples make.
type EpochSampler interface {
	// PerEpoch returns the number of batches of an epoch, at least 1, where each group's examples make so many.
	PerEpoch(batches []int) int
}

// Env is the environment that a sampler is made in.
type Env struct {
	Groups []string
	Tasks  [][]string // of each group
	All    bool       // the default of SamplerOptions.Groups is all
}

// EnvOf returns the environment of a sampler of m's groups. Beside a weighting that compares tasks, each step has
// batches of all groups unless the options have another number.
func EnvOf(m *multitask.Model, comparesTasks bool) Env {
	env := Env{All: comparesTasks}
	for _, g := range m.Groups {
		env.Groups = append(env.Groups, g.Name)
		var tasks []string
		for _, task := range g.Tasks {
			tasks = append(tasks, task.Name)
		}
		env.Tasks = append(env.Tasks, tasks)
	}
	return env
}

var registry = plugin.NewRegistry[Env, Sampler]("sampling")

// Registry lists the registered samplers.
func Registry() *plugin.Registry[Env, Sampler] { return registry }

// Register registers a sampler as `sampling: {type: name}`.
func Register[O any](name string, defaults O, New func(O, Env) (Sampler, error)) {
	plugin.Register(registry, name, defaults, New)
}

// Options are the keys that may stand beside `type:` of a sampler.
type Options struct {
	Groups string `yaml:"groups" takes:"a whole number of at least 1, or all" default:"(1 or all)" doc:"number of groups of tasks that are drawn at once, a batch of each; tasks that share texts (same_as) form one group. A step has this many batches times gradient_accumulation_steps. Default: 1, but all with a weighting that compares the losses or gradients of a step"`
}

// count returns the number of groups that have a batch at each turn.
func (o Options) count(env Env) (int, error) {
	switch {
	case o.Groups == "all", o.Groups == "" && env.All:
		return max(1, len(env.Groups)), nil
	case o.Groups == "":
		return 1, nil
	}
	k, err := strconv.Atoi(o.Groups)
	if err != nil || k < 1 {
		return 0, fmt.Errorf("groups: want a whole number of at least 1, or all, have %q", o.Groups)
	}
	if k > len(env.Groups) && len(env.Groups) > 0 {
		return 0, fmt.Errorf("groups: the experiment has %s of tasks, but groups is %d; want at most as many, "+
			"or all", plugin.Count(len(env.Groups), "group"), k)
	}
	return k, nil
}

// sampler returns a constructor of a sampler, given its build function.
func sampler[S Sampler](build func(Several) S) func(Options, Env) (Sampler, error) {
	return func(o Options, env Env) (Sampler, error) {
		k, err := o.count(env)
		if err != nil {
			return nil, err
		}
		return build(Several{k, env.Groups}), nil
	}
}

// Several is the number of groups that a sampler names at once, and the names of all groups.
type Several struct {
	K      int
	groups []string
}

// Groups implements MultiSampler.
func (s Several) Groups() int { return max(1, s.K) }

// pick returns k different groups. choose picks each one among the candidates, which are flags of the groups that have
// a batch left, or where there are too few, of groups that start again.
func (s Several) pick(state multitask.State, choose func(candidates []bool) int) []int {
	var chosen []int
	for range min(s.Groups(), len(state.Left)) {
		chosen = append(chosen, choose(s.candidates(state, chosen)))
	}
	return chosen
}

// candidates returns flags of the groups that may be picked after the chosen ones.
func (s Several) candidates(state multitask.State, chosen []int) []bool {
	candidates, found := make([]bool, len(state.Left)), false
	for g, n := range state.Left {
		candidates[g] = n > 0 && !slices.Contains(chosen, g)
		found = found || candidates[g]
	}
	for g := range candidates {
		candidates[g] = candidates[g] || !found && !slices.Contains(chosen, g)
	}
	return candidates
}

// Probability is the probability that a sampler draws a group, and the terms that it is computed from.
type Probability struct {
	Group string
	Value float64
	Terms map[string]float64
}

// ProbabilitySampler is a Sampler that draws groups with probabilities, which each Step reports.
type ProbabilitySampler interface {
	// Probabilities returns those of the next group, in the order of the groups. They sum to 1.
	Probabilities(multitask.State) []Probability
}

// EvaluationObserver is a Sampler that receives the evaluations on dev.
type EvaluationObserver interface {
	ObserveEvaluation(groups []multitask.GroupMetrics)
}

// byProbability draws groups with given probabilities; small groups start again within an epoch.
type byProbability struct{ Several }

func newByProbability(o Options, env Env) (byProbability, error) {
	k, err := o.count(env)
	return byProbability{Several{k, env.Groups}}, err
}

// probabilities returns weights, none of which is negative, divided by their sum. terms returns those of a group.
func (s Several) probabilities(weights []float64, terms func(group int) map[string]float64) []Probability {
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
func (env Env) byGroup(option string, values map[string]float64) (map[int]float64, error) {
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
