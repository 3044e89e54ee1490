package samplers

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

func init() {
	Register("dynamic", DynamicOptions{Rehearsal: 0.2, Tolerance: 0.01, Temperature: 2}, NewDynamic)
}

// DynamicOptions are the keys that may stand beside `type: dynamic`.
type DynamicOptions struct {
	Options `yaml:",inline"`

	Targets targets `yaml:"targets" range:"(0,1]" takes:"{TASK: a number in (0, 1]}" doc:"figures to reach on dev"`

	Rehearsal   float64 `yaml:"rehearsal" range:"(0,1]" doc:"r: fraction of batches that do not follow the gaps"`
	Tolerance   float64 `yaml:"tolerance" range:"(0,)" doc:"τ: gaps that are small beside it hardly count"`
	Temperature float64 `yaml:"temperature" range:"(0,)" doc:"t of the probabilities without gaps"`
}

// targets are figures by task, as fractions.
type targets map[string]float64

// Dynamic draws most often the groups whose tasks are furthest below what they have reached or should reach on dev, as
// in the dynamic sampling of Gottumukkala et al. 2020 ("Dynamic Sampling Strategies for Multi-Task Reading
// Comprehension"). The gap of a task is its target, or without one its best figure so far, less its figure in the last
// evaluation, and 0 if that is negative; a figure is the mean of the main metrics of a task's heads. The gap of a group
// is the mean over its tasks. With b_g ∝ n_g^(1/t), where n is a group's number of training examples,
//
//	p_g = r·b_g + (1 - r)·(gap_g + τ·b_g)/(Σ_h gap_h + τ)
//
// Before the first evaluation, and where all tasks have converged, p is b. A converged task among others with large
// gaps keeps r·b. Figures change with each evaluation: training.eval_strategy must not be no.
type Dynamic struct {
	byProbability
	options DynamicOptions
	tasks   [][]string // of each group
	Figures *figuresOnDev
}

// figuresOnDev are the state of a Dynamic: figures by task.
type figuresOnDev struct {
	Last, Best map[string]float64
}

var (
	_ ProbabilitySampler = Dynamic{}
	_ EvaluationObserver = Dynamic{}
	_ multitask.Stateful = Dynamic{}
)

// NewDynamic makes the sampler for the groups in env.
func NewDynamic(o DynamicOptions, env Env) (Sampler, error) {
	d, err := newByProbability(o.Options, env)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(o.Targets)) {
		if all := slices.Concat(env.Tasks...); !slices.Contains(all, name) {
			return nil, fmt.Errorf("targets: %s", plugin.Unknown("task", name, all))
		}
	}
	return Dynamic{d, o, env.Tasks, &figuresOnDev{map[string]float64{}, map[string]float64{}}}, nil
}

// Next implements Sampler.
func (d Dynamic) Next(s multitask.State) []int { return d.draw(s.Rand, d.Probabilities(s)) }

// Probabilities implements ProbabilitySampler. The terms are b, the gap, and the means over a group's tasks of their
// figures and of what those are compared with; without an evaluation only b.
func (d Dynamic) Probabilities(s multitask.State) []Probability {
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
	return d.probabilities(weights, func(g int) map[string]float64 { return terms[g] })
}

// gap returns the mean gap of a group's tasks that have been evaluated, and its terms.
func (d Dynamic) gap(group int) (gap float64, terms map[string]float64) {
	var figure, reference, n float64
	if group < len(d.tasks) {
		for _, task := range d.tasks[group] {
			last, ok := d.Figures.Last[task]
			if !ok {
				continue
			}
			want, ok := d.options.Targets[task]
			if !ok {
				want = d.Figures.Best[task]
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

// ObserveEvaluation implements EvaluationObserver.
func (d Dynamic) ObserveEvaluation(groups []multitask.GroupMetrics) {
	for _, group := range groups {
		for _, task := range group.Tasks {
			figure, ok := task.Main()
			if !ok {
				continue
			}
			best, known := d.Figures.Best[task.Task]
			if !known || figure > best {
				d.Figures.Best[task.Task] = figure
			}
			d.Figures.Last[task.Task] = figure
		}
	}
}

// MarshalBinary implements Stateful.
func (d Dynamic) MarshalBinary() ([]byte, error) { return json.Marshal(d.Figures) }

// UnmarshalBinary implements Stateful.
func (d Dynamic) UnmarshalBinary(state []byte) error {
	figures := figuresOnDev{map[string]float64{}, map[string]float64{}}
	if err := json.Unmarshal(state, &figures); err != nil {
		return err
	}
	if figures.Last == nil || figures.Best == nil {
		return errors.New("figures of the last or the best evaluation not found")
	}
	*d.Figures = figures
	return nil
}
