package samplers

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

func init() {
	Register("dynamic", DynamicOptions{Rehearsal: 0.2, Tolerance: 0.01, Temperature: 2}, newDynamic)
}

// DynamicOptions are the keys that may stand beside `type: dynamic`.
type DynamicOptions struct {
	Options `yaml:",inline"`

	Targets targets `yaml:"targets" range:"(0,1]" takes:"{TASK: a number in (0, 1]}" doc:"figures to reach on dev"`

	Rehearsal   float64 `yaml:"rehearsal" range:"(0,1]" doc:"r: fraction of batches that do not follow the gaps"`
	Tolerance   float64 `yaml:"tolerance" range:"(0,)" doc:"τ: gaps that are small beside it hardly count"`
	Temperature float64 `yaml:"temperature" range:"(0,)" doc:"t of the probabilities without gaps"`
}

type targets map[string]float64

// dynamic draws most often the groups whose tasks are furthest below what they have reached or should reach on dev, as
// in the dynamic sampling of Gottumukkala et al. 2020 ("Dynamic Sampling Strategies for Multi-Task Reading
// Comprehension"). The gap of a task is its target, or without one its best figure so far, less its figure in the last
// evaluation, and 0 if that is negative; a figure is the mean of the main metrics of a task's heads. The gap of a group
// is the mean over its tasks. With b_g ∝ n_g^(1/t), where n is a group's number of training examples,
//
//	p_g = r·b_g + (1 - r)·(gap_g + τ·b_g)/(Σ_h gap_h + τ)
//
// Before the first evaluation, and where all tasks have converged, p is b. A converged task among others with large
// gaps keeps r·b. Figures change with each evaluation: training.eval_strategy must not be no.
type dynamic struct {
	Turns
	options DynamicOptions
	tasks   [][]string // of each group
	figures *figuresOnDev
}

// figuresOnDev are the state of dynamic: figures by task.
type figuresOnDev struct {
	Last, Best map[string]float64
}

func newDynamic(o DynamicOptions, env Env) (Sampler, error) {
	turns, err := NewTurns(o.Options, env)
	if err != nil {
		return Sampler{}, err
	}
	for _, name := range slices.Sorted(maps.Keys(o.Targets)) {
		if all := slices.Concat(env.Tasks...); !slices.Contains(all, name) {
			return Sampler{}, fmt.Errorf("targets: %s", plugin.Unknown("task", name, all))
		}
	}
	figures := &figuresOnDev{map[string]float64{}, map[string]float64{}}
	d := dynamic{turns, o, env.Tasks, figures}
	s := turns.ByProbability(d.probabilitiesOf)
	s.ObserveEvaluation, s.State = d.observe, multitask.JSONState(figures, figuresOnDev.check)
	return s, nil
}

// probabilitiesOf returns the probabilities. The terms are b, the gap, and the means over a group's tasks of their
// figures and of what those are compared with; without an evaluation only b.
func (d dynamic) probabilitiesOf(s multitask.State) []Probability {
	// b
	base := powers(s.Examples, 0, 1/d.options.Temperature)
	sum := 0.0
	for _, b := range base {
		sum += b
	}

	// gaps
	gaps, terms, total := make([]float64, len(base)), make([]map[string]float64, len(base)), 0.0
	for g := range base {
		base[g] /= sum
		gaps[g], terms[g] = d.gap(g)
		terms[g]["base"] = base[g]
		total += gaps[g]
	}

	// p
	r, tolerance := d.options.Rehearsal, d.options.Tolerance
	weights := make([]float64, len(base))
	for g, b := range base {
		weights[g] = r*b + (1-r)*(gaps[g]+tolerance*b)/(total+tolerance)
	}
	return d.Probabilities(weights, func(g int) map[string]float64 { return terms[g] })
}

// gap returns the mean gap of a group's tasks that have been evaluated, and its terms.
func (d dynamic) gap(group int) (gap float64, terms map[string]float64) {
	var figure, reference, n float64
	if group < len(d.tasks) {
		for _, task := range d.tasks[group] {
			last, ok := d.figures.Last[task]
			if !ok {
				continue
			}
			want, ok := d.options.Targets[task]
			if !ok {
				want = d.figures.Best[task]
			}
			gap += max(0, want-last)
			figure, reference, n = figure+last, reference+want, n+1
		}
	}
	if n == 0 {
		return 0, map[string]float64{}
	}
	return gap / n, map[string]float64{"gap": gap / n, "figure": figure / n, "reference": reference / n}
}

func (d dynamic) observe(groups []multitask.GroupMetrics) {
	for _, group := range groups {
		for _, task := range group.Tasks {
			figure, ok := task.Main()
			if !ok {
				continue
			}
			best, known := d.figures.Best[task.Task]
			if !known || figure > best {
				d.figures.Best[task.Task] = figure
			}
			d.figures.Last[task.Task] = figure
		}
	}
}

func (f figuresOnDev) check() error {
	if f.Last == nil || f.Best == nil {
		return errors.New("figures of the last or the best evaluation not found")
	}
	return nil
}
