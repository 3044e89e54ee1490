// Package merge merges trained runs whose encoders have one base model into a run with the tasks of all.
package merge

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Methods of merging. A run's task vector τ is its encoder's weights minus those of the base θ_0, all of them as one
// vector; w are the runs' weights, λ the scale.
const (
	// Mean is θ_0 + λ·Σ_r w_r·τ_r/Σ_r w_r.
	Mean = "mean"
	// TaskArithmetic is θ_0 + λ·Σ_r w_r·τ_r (Ilharco et al. 2023, "Editing Models with Task Arithmetic").
	TaskArithmetic = "task_arithmetic"
	// TIES is θ_0 + λ·m, where m is, for each weight by itself, a mean of the τ_r that agree in sign (Yadav et al.
	// 2023, "TIES-Merging", algorithm 1): each task vector is trimmed to its largest numbers by magnitude, a fraction
	// of them that is the density, others become 0; the sign γ of Σ_r w_r·τ_r is elected; m is Σ w_r·τ_r/Σ w_r over
	// the runs whose τ_r has the sign γ.
	TIES = "ties"
	// DARE is task arithmetic with task vectors of which each number is dropped with probability 1 - density, and those
	// that are left are divided by the density (Yu et al. 2024, "Language Models are Super Mario").
	DARE = "dare"
)

// Methods lists the methods.
func Methods() []string { return []string{Mean, TIES, DARE, TaskArithmetic} }

// Options say how encoders are merged.
type Options struct {
	Method  string
	Scale   float64   // λ; 0: the default of the method
	Density float64   // of ties and dare; 0: the default of the method
	Seed    uint64    // of dare
	Weights []float64 // of each run; nil: 1
}

// defaults are λ and the density of each method, 0 where it has none. 0.4 is what Yadav et al. 2023 (section 5) take
// for task arithmetic where there is nothing to choose it by; the density of ties is theirs.
var defaults = map[string]struct{ scale, density float64 }{
	Mean: {1, 0}, TaskArithmetic: {0.4, 0}, TIES: {1, 0.2}, DARE: {0.4, 0.5},
}

// Check returns an error that lists all mistakes of the options for a number of runs.
func (o Options) Check(runs int) error {
	_, err := o.filled(runs)
	return err
}

// filled returns the options with their defaults, for a number of runs, or an error that lists all mistakes.
func (o Options) filled(runs int) (Options, error) {
	var wrong []error
	add := func(argument plugin.Argument, format string, args ...any) {
		wrong = append(wrong, fmt.Errorf("%w: "+format, append([]any{argument}, args...)...))
	}
	if !slices.Contains(Methods(), o.Method) {
		add("method", "%s", plugin.Unknown("method", o.Method, Methods()))
	}
	if o.Scale < 0 || !floats.IsFinite(o.Scale) {
		add("scale", "want a number above 0, have %v", o.Scale)
	}
	switch density := defaults[o.Method].density; {
	case o.Density != 0 && density == 0:
		add("density", "method %s has none; leave it out, or name method %s or %s", o.Method, TIES, DARE)
	case o.Density < 0 || o.Density > 1 || math.IsNaN(o.Density):
		add("density", "want a number above 0, at most 1, have %v", o.Density)
	case o.Density == 0:
		o.Density = density
	}
	if o.Scale == 0 {
		o.Scale = defaults[o.Method].scale
	}
	if o.Weights == nil {
		o.Weights = slices.Repeat([]float64{1}, runs)
	}
	if len(o.Weights) != runs {
		add("weight", "%s for %s; want one for each, in their order", plugin.Count(len(o.Weights), "number"),
			plugin.Count(runs, "run"))
	}
	largest := 0.0
	for _, w := range o.Weights {
		if !(w >= 0) || w > maxWeight {
			add("weight", "want numbers from 0 to %v, have %v", maxWeight, w)
		}
		largest = max(largest, math.Abs(w))
	}
	if largest == 0 {
		add("weight", "want one above 0, have %s", strings.Trim(fmt.Sprint(o.Weights), "[]"))
	}
	return o, errors.Join(wrong...)
}

// maxWeight is the largest weight of a run: products with weights and sums of them do not overflow.
const maxWeight = 1e+100

// mask reports for one number of a task vector after the other whether it is kept.
type mask func() bool

type combination struct {
	Options
	least []float32 // ties: the smallest magnitude of each run's task vector that is not trimmed
	// kept returns the mask of a run's numbers of a parameter, for dare.
	kept func(run int, param string) mask
}

// newCombination prepares a combination of runs, given each parameter of theirs and of the base.
func newCombination(o Options, base [][]float32, runs [][][]float32) *combination {
	c := &combination{Options: o, kept: o.random}
	if o.Method == TIES {
		for _, run := range runs {
			c.least = append(c.least, leastKept(o.Density, base, run))
		}
	}
	return c
}

// random returns the mask of a run's numbers of a parameter: each is kept with a probability of the density, by a
// stream of the seed, the run's place and the parameter's name.
func (o Options) random(run int, param string) mask {
	r := rand.New(rand.NewPCG(nn.Key(o.Seed, uint64(run), "dare "+param), 0))
	return func() bool { return r.Float64() < o.Density }
}

// of returns the merged values of a parameter, given those of the base and of the runs. A task vector is rounded to
// float32; sums are computed in float64.
func (c *combination) of(param string, base []float32, runs [][]float32) []float32 {
	masks := make([]mask, len(runs))
	if c.Method == DARE {
		for r := range runs {
			masks[r] = c.kept(r, param)
		}
	}
	merged, tau := make([]float32, len(base)), make([]float64, len(runs))
	for i, b := range base {
		for r, values := range runs {
			change := values[i] - b
			tau[r] = float64(change)
			switch {
			case c.Method == TIES && magnitude(change) < c.least[r]:
				tau[r] = 0
			case c.Method == DARE && masks[r]():
				tau[r] /= c.Density
			case c.Method == DARE:
				tau[r] = 0
			}
		}
		merged[i] = float32(float64(b) + c.Scale*c.sum(tau))
	}
	return merged
}

// sum returns the combination of the runs' numbers of one weight, before the scale.
func (c *combination) sum(tau []float64) float64 {
	sum, all := 0.0, 0.0
	for r, t := range tau {
		sum += c.Weights[r] * t
		all += c.Weights[r]
	}
	switch c.Method {
	case Mean:
		return sum / all
	case TIES:
		return c.agreeing(tau, sum)
	}
	return sum
}

// agreeing returns the mean of the numbers that have the sign of elected, 0 if that has none.
func (c *combination) agreeing(tau []float64, elected float64) float64 {
	sum, all := 0.0, 0.0
	for r, t := range tau {
		if t > 0 && elected > 0 || t < 0 && elected < 0 {
			sum += c.Weights[r] * t
			all += c.Weights[r]
		}
	}
	if all == 0 {
		return 0
	}
	return sum / all
}

func magnitude(v float32) float32 { return math.Float32frombits(math.Float32bits(v) &^ (1 << 31)) }

// leastKept returns the ⌈density·n⌉-th largest magnitude of the n numbers of a task vector: those below it are trimmed.
// Bits of numbers that are not negative are in the order of the numbers, so that counts of their upper and then of
// their lower halves are sufficient.
func leastKept(density float64, base, run [][]float32) float32 {
	n := 0
	counts := make([]int, 1<<16)
	each := func(visit func(bits uint32)) {
		for p, values := range run {
			for i, v := range values {
				visit(math.Float32bits(magnitude(v - base[p][i])))
			}
		}
	}
	largest := func(k int) (half uint32, left int) { // half of the k-th largest, and its place among those of that half
		for h := len(counts) - 1; ; h-- {
			if k <= counts[h] {
				return uint32(h), k
			}
			k -= counts[h]
		}
	}
	each(func(bits uint32) { counts[bits>>16]++; n++ })
	if n == 0 {
		return 0
	}
	upper, left := largest(max(1, int(math.Ceil(density*float64(n)))))

	clear(counts)
	each(func(bits uint32) {
		if bits>>16 == upper {
			counts[bits&0xffff]++
		}
	})
	lower, _ := largest(left)
	return math.Float32frombits(upper<<16 | lower)
}
