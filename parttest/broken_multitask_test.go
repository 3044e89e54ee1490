package parttest_test

import (
	"math"

	"github.com/jenga-nlp/jenga/multitask"
)

// brokenSamplers and brokenWeightings break one rule each: the first words of the subtest that has to fail.
var brokenSamplers = map[string]struct {
	rule    string
	sampler func() multitask.Sampler
}{
	"outside":   {"as_many_different_groups", func() multitask.Sampler { return outside{} }},
	"starving":  {"no_group_is_left_out", func() multitask.Sampler { return starving{} }},
	"shared":    {"the_same_seed", func() multitask.Sampler { return counting{&sharedCount} }},
	"amnesic":   {"it_goes_on", func() multitask.Sampler { return counting{new(int)} }},
	"imprecise": {"its_probabilities", func() multitask.Sampler { return imprecise{} }},
}

var brokenWeightings = map[string]struct {
	rule      string
	weighting func() multitask.Weighting
}{
	"boundless":  {"each_loss_has_a_finite_factor", func() multitask.Weighting { return boundless{} }},
	"equal":      {"a_head_of_weight_0", func() multitask.Weighting { return equal{} }},
	"common":     {"the_same_seed", func() multitask.Weighting { return fading{&sharedSteps} }},
	"forgetting": {"it_goes_on", func() multitask.Weighting { return fading{new(float64)} }},
}

func init() {
	for name, b := range brokenSamplers {
		multitask.RegisterSampler(name, multitask.NoOptions{},
			func(multitask.NoOptions, multitask.SamplerEnv) (multitask.Sampler, error) { return b.sampler(), nil })
	}
	for name, b := range brokenWeightings {
		multitask.RegisterWeighting(name, multitask.NoOptions{},
			func(multitask.NoOptions, multitask.WeightingEnv) (multitask.Weighting, error) {
				return b.weighting(), nil
			})
	}
}

// outside names a group that is not there.
type outside struct{}

func (outside) Next(s multitask.State) []int { return []int{s.Step % 4} }

// starving never draws the last group.
type starving struct{}

func (starving) Next(s multitask.State) []int { return []int{s.Rand.IntN(2)} }

// counting takes the groups in turn by a count that no state has.
type counting struct{ n *int }

var sharedCount int

func (c counting) Next(multitask.State) []int {
	*c.n++
	return []int{*c.n % 3}
}

// imprecise draws all groups equally often, against its probabilities.
type imprecise struct{}

func (imprecise) Next(s multitask.State) []int { return []int{s.Rand.IntN(3)} }

func (imprecise) Probabilities(multitask.State) []multitask.Probability {
	terms := map[string]float64{"weight": 1}
	return []multitask.Probability{
		{Group: "first", Value: 0.5, Terms: terms}, {Group: "second", Value: 0.25, Terms: terms},
		{Group: "third", Value: 0.25, Terms: terms},
	}
}

// boundless has factors that grow beyond all numbers.
type boundless struct{ multitask.Fixed }

func (w boundless) Weigh(s multitask.State, losses []multitask.Loss) []float64 {
	factors := w.Fixed.Weigh(s, losses)
	factors[0] *= math.Exp(100 * float64(s.Step))
	return factors
}

// equal ignores the heads' weights.
type equal struct{}

func (equal) Weigh(_ multitask.State, losses []multitask.Loss) []float64 {
	factors := make([]float64, len(losses))
	for i := range factors {
		factors[i] = 1
	}
	return factors
}

// fading has factors that fall by a number that no state has.
type fading struct{ steps *float64 }

var sharedSteps float64

func (w fading) Weigh(s multitask.State, losses []multitask.Loss) []float64 {
	factors := multitask.Fixed{}.Weigh(s, losses)
	*w.steps++
	factors[0] /= *w.steps
	return factors
}
