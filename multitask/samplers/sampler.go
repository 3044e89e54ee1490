// Package samplers has what chooses the tasks whose batches train next.
//
// # The life of a sampler
//
// Register names it. New makes it of its options for the groups of an Env: tasks that share texts are one group. Before
// each turn Next receives the state of the training, whose Rand is its only source of chance, so that a training that
// goes on draws the same groups. After a step Observe has its losses, and after an evaluation ObserveEvaluation the
// metrics; what a sampler keeps of them is its State.
//
// The options of a sampler embed Options for the key `groups`, and NewTurns reads it: Turns draws as many different
// groups as it says, by probabilities or as the sampler chooses.
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

// Sampler chooses the groups of the next training batches: Next does, and the other fields say what else it can do,
// each nil or zero where it cannot.
type Sampler struct {
	// Next returns the numbers of the groups of the next batches, as many different ones as Groups says. A group
	// without batches left starts again.
	Next func(multitask.State) []int
	// Groups is how many groups Next returns at once; 0: one.
	Groups int
	// PerEpoch returns the number of batches of an epoch, at least 1, where each group's examples make so many. nil: an
	// epoch has all of these.
	PerEpoch func(batches []int) int
	// Probabilities returns those with which the next group is drawn, in the order of the groups. They sum to 1, and
	// each train.Step reports them.
	Probabilities func(multitask.State) []Probability
	// ObserveEvaluation receives each evaluation on dev.
	ObserveEvaluation func(groups []multitask.GroupMetrics)
	// Observe receives the losses of each finished step.
	Observe func(s multitask.State, losses []multitask.Loss)
	// State is what changes from step to step, which a snapshot holds.
	State multitask.Stateful
	// Type is the sampler's in the experiment file. Register sets it; a training goes on from a snapshot of one of the
	// same type only.
	Type string
}

// AtOnce returns how many groups Next returns.
func (s Sampler) AtOnce() int { return max(1, s.Groups) }

// Env is the environment that a sampler is made in.
type Env struct {
	Groups []string
	Tasks  [][]string // of each group
	All    bool       // the default of Options.Groups is all
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
	plugin.Register(registry, name, defaults, func(o O, env Env) (Sampler, error) {
		s, err := New(o, env)
		s.Type = name
		return s, err
	})
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

// Turns draws the groups of a sampler, as many different ones at each turn as its options say.
type Turns struct {
	atOnce int
	groups []string // names of all
}

// NewTurns returns the turns of a sampler with the options o, or an error that begins with "groups:" if they have no
// valid number.
func NewTurns(o Options, env Env) (Turns, error) {
	k, err := o.count(env)
	return Turns{k, env.Groups}, err
}

// Pick returns the different groups of a turn. choose picks each one among the candidates, which are flags of the
// groups that have a batch left, or where there are too few, of groups that start again.
func (s Turns) Pick(state multitask.State, choose func(candidates []bool) int) []int {
	var chosen []int
	for range min(s.atOnce, len(state.Left)) {
		chosen = append(chosen, choose(s.candidates(state, chosen)))
	}
	return chosen
}

// candidates returns flags of the groups that may be picked after the chosen ones.
func (s Turns) candidates(state multitask.State, chosen []int) []bool {
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

// ByProbability returns the sampler that draws groups with probabilities; small groups start again within an epoch.
func (s Turns) ByProbability(of func(multitask.State) []Probability) Sampler {
	next := func(state multitask.State) []int { return s.draw(state.Rand, of(state)) }
	return Sampler{Next: next, Groups: s.atOnce, Probabilities: of}
}

// Probabilities returns the weights of all groups, none of which is negative, divided by their sum. terms returns those
// of a group.
func (s Turns) Probabilities(weights []float64, terms func(group int) map[string]float64) []Probability {
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
func (s Turns) draw(r *rand.Rand, of []Probability) []int {
	left := make([]float64, len(of))
	for g, p := range of {
		left[g] = p.Value
	}
	var chosen []int
	for range min(s.atOnce, len(left)) {
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
		panic("samplers: no group has a probability above 0")
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
