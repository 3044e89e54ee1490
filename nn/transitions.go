package nn

import "slices"

// Transitions are the allowed transitions between tags in the chain of a CRF. A transition leads from a tag, or from
// Start, to a tag, or to End. A nil *Transitions allows all.
type Transitions struct {
	tags      int
	forbidden []bool // [tags+1, tags+1]
}

// NewTransitions returns transitions between that many tags, all of them allowed.
func NewTransitions(tags int) *Transitions {
	return &Transitions{tags, make([]bool, (tags+1)*(tags+1))}
}

// Start is the state before the first word: transitions lead from it.
func (t *Transitions) Start() int { return t.tags }

// End is the state after the last word: transitions lead to it.
func (t *Transitions) End() int { return t.tags }

// Forbid gives a transition probability 0.
func (t *Transitions) Forbid(from, to int) { t.forbidden[t.index(from, to)] = true }

// Allowed reports whether to may follow from.
func (t *Transitions) Allowed(from, to int) bool { return t == nil || !t.forbidden[t.index(from, to)] }

// AllAllowed reports whether no transition is forbidden.
func (t *Transitions) AllAllowed() bool { return t == nil || !slices.Contains(t.forbidden, true) }

// index is the place of a transition in forbidden: Start has the last row, End the last column.
func (t *Transitions) index(from, to int) int { return from*(t.tags+1) + to }
