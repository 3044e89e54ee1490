package weightings

import (
	"github.com/jenga-nlp/jenga/multitask"
)

func init() { Register("dwa", DWAOptions{Temperature: 2}, newDWA) }

// DWAOptions are the keys that may stand beside `type: dwa`.
type DWAOptions struct {
	Temperature float64 `yaml:"temperature" range:"(0,)" doc:"T; the larger, the more alike are the factors"`
	Every       int     `yaml:"every" range:"[0,)" doc:"steps of a mean loss; 0: an epoch"`
}

// dwa weighs the losses by how fast they fall (dynamic weight average, Liu et al. 2019, "End-to-End Multi-Task Learning
// with Attention"): a loss that falls slowly has a larger factor. With H heads of the experiment the
// factors are
//
//	H·softmax(r/T)_h    r_h = L_h(e-1)/L_h(e-2)
//
// where L(e) is a head's mean loss over epoch e, or over so many steps. The losses are multiplied by the heads' weights
// too. An epoch in which a head has no labelled texts or words does not count for it; r is 1 until a head has the mean
// losses of two, so that all factors are 1 in the first two epochs: a run of two epochs trains as with fixed.
type dwa struct {
	options DWAOptions
	heads   map[multitask.HeadName]int // → index in the state's Heads
	state   *dwaState
}

type dwaState struct {
	Period int // the current epoch, or the number of times that Every steps are done
	Heads  []dwaHead
}

// dwaHead is the losses of a head: the sum in this period, and the mean losses of the last two, 0 where there is none.
type dwaHead struct{ Sum, Units, Last, Before float64 }

func newDWA(o DWAOptions, env Env) (Weighting, error) {
	d := dwa{o, multitask.HeadNumbers(env.Heads), &dwaState{Heads: make([]dwaHead, len(env.Heads))}}
	check := func(s dwaState) error { return multitask.CheckHeads(len(s.Heads), len(d.heads)) }
	return Weighting{Weigh: d.weigh, Observe: d.observe, State: multitask.JSONState(d.state, check)}, nil
}

func (d dwa) weigh(s multitask.State, losses []multitask.Loss) []float64 {
	d.advance(s)
	ratios := make([]float64, len(d.state.Heads))
	for i, head := range d.state.Heads {
		ratios[i] = 1 / d.options.Temperature
		if head.Before > 0 {
			ratios[i] = head.Last / head.Before / d.options.Temperature
		}
	}
	p, factors := softmax(ratios), make([]float64, len(losses))
	for i, l := range losses {
		factors[i] = l.Weight * float64(len(p)) * p[d.heads[l.HeadName()]]
	}
	return factors
}

// advance ends the period that is over before a step.
func (d dwa) advance(s multitask.State) {
	period := s.Epoch
	if d.options.Every > 0 {
		period = s.Step / d.options.Every
	}
	if period == d.state.Period {
		return
	}
	d.state.Period = period
	for i := range d.state.Heads {
		if head := &d.state.Heads[i]; head.Units > 0 {
			*head = dwaHead{Last: head.Sum / head.Units, Before: head.Last}
		}
	}
}

func (d dwa) observe(_ multitask.State, losses []multitask.Loss) {
	for _, l := range losses {
		head := &d.state.Heads[d.heads[l.HeadName()]]
		head.Sum, head.Units = head.Sum+l.Sum, head.Units+l.Units
	}
}
