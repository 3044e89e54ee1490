package multitask

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/internal/floats"
)

// lossGuard finds losses that no update can follow, and counts the steps without an update.
//
// The usual loss of a head is the median loss of its first 20 steps, or its running mean with decay rate 0.98 from then
// on if that is larger. The loss of a step explodes if it is more than Plan.LossLimit times that. A running mean alone
// would not do: a head that has learned its texts has a loss near zero, and a single wrong label a thousand times that.
type lossGuard struct {
	plan  Plan
	heads map[HeadName]int // → index in state.Heads
	state guardState
}

// guardState is the state of a lossGuard, which a snapshot holds.
type guardState struct {
	Heads   []usualLoss
	Skipped int // steps without an update
	InRow   int // of these, the last ones in a row
}

// usualLoss is the usual loss of a head.
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

func newLossGuard(m *Model, plan Plan) *lossGuard {
	names := m.headNames()
	return &lossGuard{plan: plan, heads: numbered(names), state: guardState{Heads: make([]usualLoss, len(names))}}
}

// check reports whether a loss is bad. usual is what it is compared with, 0 if it is not finite.
func (g *lossGuard) check(l Loss) (usual float64, bad bool) {
	if l.Units == 0 {
		return 0, false
	}
	if !floats.IsFinite(l.Mean()) {
		return 0, true
	}
	u := g.state.Heads[g.heads[l.HeadName()]]
	usual = max(u.Median, u.Mean)
	explodes := g.plan.LossLimit > 0 && l.Weight > 0 && u.Known && usual > 0 && l.Mean() > g.plan.LossLimit*usual
	return usual, explodes
}

// observe adds the losses of a step that has an update.
func (g *lossGuard) observe(losses []Loss) {
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

// skip counts a step without an update. It returns an error if the training ends there.
func (g *lossGuard) skip(bad *BadStep) error {
	if !g.plan.SkipBadSteps {
		return bad
	}
	g.state.Skipped++
	g.state.InRow++
	if g.state.InRow == mostInRow {
		return fmt.Errorf("%w; it is the last of %d steps in a row without an update", bad, mostInRow)
	}
	return nil
}

var _ Stateful = (*lossGuard)(nil)

// MarshalBinary implements Stateful.
func (g *lossGuard) MarshalBinary() ([]byte, error) { return json.Marshal(g.state) }

// UnmarshalBinary implements Stateful.
func (g *lossGuard) UnmarshalBinary(text []byte) error {
	var state guardState
	if err := json.Unmarshal(text, &state); err != nil {
		return err
	}
	if err := checkHeads(len(state.Heads), len(g.heads)); err != nil {
		return err
	}
	g.state = state
	return nil
}
