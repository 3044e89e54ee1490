package updates

import (
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/multitask"
)

// Guard finds losses that no update can follow, and counts the steps without an update.
//
// The usual loss of a head is the median loss of its first 20 steps, or its running mean with decay rate 0.98 from then
// on if that is larger. The loss of a step explodes if it is more than the limit times that. A running mean alone
// would not do: a head that has learned its texts has a loss near zero, and a single wrong label a thousand times that.
type Guard struct {
	limit float64                    // of a loss, as a multiple of its usual one; 0: none
	skips bool                       // steps without an update do not end the training
	heads map[multitask.HeadName]int // → index in state.Heads
	state guardState
}

type guardState struct {
	Heads   []usualLoss
	Skipped int // steps without an update
	InRow   int // of these, the last ones in a row
}

type usualLoss struct {
	First  []float64 // losses of the first steps, until Median is known
	Known  bool      // Median and Mean are
	Median float64   // of the first steps
	Mean   float64   // running mean since then
}

const (
	usualSteps = 20   // of a head, in which no loss explodes
	usualDecay = 0.98 // decay rate of the running mean
	mostInRow  = 10   // steps in a row without an update end the training
)

// NewGuard returns the guard of the losses of heads. Losses explode above limit times the usual one, unless that is
// 0; skips makes Skip count the steps without an update, where it ends the training otherwise.
func NewGuard(heads []multitask.HeadName, limit float64, skips bool) *Guard {
	state := guardState{Heads: make([]usualLoss, len(heads))}
	return &Guard{limit: limit, skips: skips, heads: multitask.HeadNumbers(heads), state: state}
}

// Check reports whether a loss is bad. usual is what it is compared with, 0 if it is not finite.
func (g *Guard) Check(l multitask.Loss) (usual float64, bad bool) {
	if l.Units == 0 {
		return 0, false
	}
	if !floats.IsFinite(l.Mean()) {
		return 0, true
	}
	u := g.state.Heads[g.heads[l.HeadName()]]
	usual = max(u.Median, u.Mean)
	explodes := g.limit > 0 && l.Weight > 0 && u.Known && usual > 0 && l.Mean() > g.limit*usual
	return usual, explodes
}

// Observe adds the losses of a step that has an update.
func (g *Guard) Observe(losses []multitask.Loss) {
	g.state.InRow = 0
	for _, l := range losses {
		if l.Units == 0 {
			continue
		}
		u := &g.state.Heads[g.heads[l.HeadName()]]
		switch {
		case u.Known:
			u.Mean += (1 - usualDecay) * (l.Mean() - u.Mean)
		case len(u.First) < usualSteps-1:
			u.First = append(u.First, l.Mean())
		default:
			first := slices.Sorted(slices.Values(append(u.First, l.Mean())))
			median := (first[usualSteps/2-1] + first[usualSteps/2]) / 2
			*u = usualLoss{Known: true, Median: median, Mean: median}
		}
	}
}

// Skipped returns the number of steps without an update.
func (g *Guard) Skipped() int { return g.state.Skipped }

// Skip counts a step without an update. It returns an error if the training ends there.
func (g *Guard) Skip(bad *multitask.BadStep) error {
	if !g.skips {
		return bad
	}
	g.state.Skipped++
	g.state.InRow++
	if g.state.InRow == mostInRow {
		return fmt.Errorf("%w; it is the last of %d steps in a row without an update", bad, mostInRow)
	}
	return nil
}

// Stateful returns the guard's state, which a snapshot holds.
func (g *Guard) Stateful() multitask.Stateful {
	return multitask.JSONState(&g.state, func(s guardState) error {
		return multitask.CheckHeads(len(s.Heads), len(g.heads))
	})
}
