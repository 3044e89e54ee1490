package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// balance compares the gradients of all heads at the states that they share, over the first steps: the encoder learns
// from their sum, in which a gradient that is much larger than all others leaves those without effect. Weightings that
// learn are no exception: their factors follow the losses, not the gradients. A nil balance measures nothing. A snapshot
// has it.
type balance struct {
	Norms  []headNorm `json:"norms"` // in the order in which the heads had a gradient first
	Steps  int        `json:"steps"` // that were measured
	Warned bool       `json:"warned"`
}

// headNorm is the sum, over steps, of the norms of a head's gradient.
type headNorm struct {
	Head   multitask.HeadName `json:"head"`
	Weight float64            `json:"weight"` // of the head, from the experiment
	Sum    float64            `json:"sum"`
	Steps  int                `json:"steps"` // in which the head had a gradient
}

func (n headNorm) mean() float64 { return n.Sum / float64(n.Steps) }

const (
	balanceSteps = 10 // the first ones, which are measured
	dominates    = 10 // times the largest gradient of another head
)

// newBalance returns an empty balance; nil where none is required: the encoder learns nothing, or there is one head.
func newBalance(m *multitask.Model, frozen bool) *balance {
	heads := 0
	for i := range m.Groups {
		heads += len(m.Groups[i].Heads())
	}
	if frozen || heads < 2 {
		return nil
	}
	return &balance{}
}

// squares returns zeros for the squared norms of the next step's losses, nil if that step is not measured.
func (b *balance) squares(done, losses int) []float64 {
	if b == nil || done >= balanceSteps {
		return nil
	}
	return make([]float64, losses)
}

// add adds the norms of a step's gradients, by loss.
func (b *balance) add(losses []multitask.Loss, squares []float64) {
	if squares == nil {
		return
	}
	b.Steps++
	for i, square := range squares {
		if square == 0 { // without labelled units, or the head passes no gradient to the encoder
			continue
		}
		head := multitask.HeadName{Task: losses[i].Task, Head: losses[i].Head}
		at := slices.IndexFunc(b.Norms, func(n headNorm) bool { return n.Head == head })
		if at < 0 {
			at, b.Norms = len(b.Norms), append(b.Norms, headNorm{Head: head, Weight: losses[i].Weight})
		}
		b.Norms[at].Sum += math.Sqrt(square)
		b.Norms[at].Steps++
	}
}

// warnings returns a warning once, after the last measured step of a training, if the mean norm of a head's gradient
// dominates those of all others.
func (b *balance) warnings(done, of int) []Warning {
	if b == nil || b.Warned || done < min(balanceSteps, of) {
		return nil
	}
	b.Warned = true
	if len(b.Norms) < 2 {
		return nil
	}
	largest := slices.Clone(b.Norms)
	slices.SortStableFunc(largest, func(m, n headNorm) int { return cmp.Compare(n.mean(), m.mean()) })
	first, times := largest[0], largest[0].mean()/largest[1].mean()
	if times < dominates {
		return nil
	}
	return []Warning{{fmt.Sprintf("task %q: head %q: its gradient at the shared states is %.0f times that of any "+
		"other head (mean of %s), so the encoder may learn little from the others; scale: standard, if it predicts "+
		"raw numbers, or weight: %.1g balances them",
		first.Head.Task, first.Head.Head, times, plugin.Count(b.Steps, "step"), first.Weight/times)}}
}
