package train

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

func (s *step) findBad(report Step) (*multitask.BadStep, error) {
	// losses
	var bad *multitask.BadStep
	for _, l := range s.losses.all {
		usual, isBad := s.training.guard.check(l)
		switch {
		case !isBad:
		case bad != nil:
			bad.Others++
		default:
			bad = &multitask.BadStep{What: "loss", Head: l.HeadName(), Loss: l.Mean(), Usual: usual}
		}
	}

	// their sum, and its gradient
	if bad == nil {
		switch {
		case !floats.IsFinite(report.Loss):
			bad = &multitask.BadStep{What: "loss"}
		case !floats.IsFinite(report.GradientNorm):
			bad = &multitask.BadStep{What: "gradient"}
		default:
			return nil, nil
		}
	}
	if err := s.findTexts(bad); err != nil {
		return nil, err
	}
	switch updates := report.Number - 1 - s.training.guard.state.Skipped; {
	case bad.Alone && 2*len(bad.Texts) <= bad.Of:
		bad.Remedy = multitask.SkipSteps
	case updates > 0:
		bad.Remedy = multitask.LowerRate
	}
	return bad, nil
}

// findTexts sets the texts of a bad step: those on which the loss of its head is bad if they are alone in a batch,
// without dropout. A text has the same states alone and in any batch. Each rank tries those of its shards.
func (s *step) findTexts(bad *multitask.BadStep) error {
	if bad.Head == (multitask.HeadName{}) {
		for _, b := range slices.Concat(s.all...) { // each rank has all texts
			bad.Texts = append(bad.Texts, b.batch.Examples...)
		}
		bad.Of = len(bad.Texts)
		return nil
	}

	// which are bad alone, of all ranks in the order of the shards
	tried := s.textsOf(s.shards, bad.Head)
	alone := make([]byte, len(tried))
	for i, one := range tried {
		if s.isBadAlone(one, bad.Usual) {
			alone[i] = 1
		}
	}
	if ranks := s.training.plan.Ranks; ranks != nil {
		ofRanks, err := ranks.AllGather(alone)
		if err != nil {
			return err
		}
		alone = slices.Concat(ofRanks...)
	}

	// their texts
	all := s.textsOf(s.all, bad.Head)
	if len(alone) != len(all) {
		return fmt.Errorf("ranks have tried %d texts of %d", len(alone), len(all))
	}
	bad.Of, bad.Alone = len(all), slices.Contains(alone, 1)
	for i, one := range all {
		if !bad.Alone || alone[i] == 1 {
			bad.Texts = append(bad.Texts, one.example)
		}
	}
	return nil
}

// labelledText is an example of a batch with a target for head number h of its group.
type labelledText struct {
	packed
	h       int
	number  int // of the example, in its batch
	example *corpus.Example
}

func (s *step) textsOf(shards [][]packed, head multitask.HeadName) (all []labelledText) {
	for _, b := range slices.Concat(shards...) {
		h := slices.IndexFunc(s.losses.group(b.group), func(l multitask.Loss) bool { return l.HeadName() == head })
		for i, e := range b.batch.Examples {
			if h >= 0 && e.Targets != nil && e.Targets[h] != nil {
				all = append(all, labelledText{b, h, i, e})
			}
		}
	}
	return all
}

func (s *step) isBadAlone(one labelledText, usual float64) bool {
	pass, group, h := s.training.pass, &s.training.model.Groups[one.group], one.h
	pass.Reset(one.serial)
	pass.Training = false
	batch := s.training.prepared(one.group, one.serial, one.number, one.example)
	a, err := s.training.model.Build(pass, group, batch)
	if err != nil {
		return false // of a file of states; the next step reports it
	}
	nodes := a.LossNodes(pass, batch)
	if err := pass.Forward(); err != nil || nodes[h] == nil {
		return false
	}
	l := group.Losses(batch)[h]
	l.Sum = multitask.LossValue(nodes[h])
	if usual > 0 {
		return l.Mean() > s.training.plan.LossLimit*usual
	}
	return !floats.IsFinite(l.Mean())
}

// guard finds losses that no update can follow, and counts the steps without an update.
//
// The usual loss of a head is the median loss of its first 20 steps, or its running mean with decay rate 0.98 from then
// on if that is larger. The loss of a step explodes if it is more than the limit times that. A running mean alone
// would not do: a head that has learned its texts has a loss near zero, and a single wrong label a thousand times that.
type guard struct {
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

// newGuard returns the guard of the losses of heads. Losses explode above limit times the usual one, unless that is
// 0; skips makes skip count the steps without an update, where it ends the training otherwise.
func newGuard(heads []multitask.HeadName, limit float64, skips bool) *guard {
	state := guardState{Heads: make([]usualLoss, len(heads))}
	return &guard{limit: limit, skips: skips, heads: multitask.HeadNumbers(heads), state: state}
}

// check reports whether a loss is bad. usual is what it is compared with, 0 if it is not finite.
func (g *guard) check(l multitask.Loss) (usual float64, bad bool) {
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

// observe adds the losses of a step that has an update.
func (g *guard) observe(losses []multitask.Loss) {
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
func (g *guard) skip(bad *multitask.BadStep) error {
	if !g.skips {
		return bad
	}
	g.state.Skipped++
	g.state.InRow++
	if g.state.InRow == mostInRow {
		if bad.Remedy == multitask.SkipSteps { // which was of no avail
			bad.Remedy = multitask.LowerRate
		}
		return fmt.Errorf("the last of %d steps in a row without an update: %w", mostInRow, bad)
	}
	return nil
}

// stateful returns the guard's state, which a snapshot holds.
func (g *guard) stateful() multitask.Stateful {
	return multitask.JSONState(&g.state, func(s guardState) error {
		return multitask.CheckHeads(len(s.Heads), len(g.heads))
	})
}

// balance compares the gradients of all heads at the states that they share, over the first steps: the encoder learns
// from their sum, in which a gradient that is much larger than all others leaves those without effect. Weightings that
// learn are no exception: their factors follow the losses, not the gradients. A snapshot has it.
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

// add adds the norms of a step's gradients, by loss.
func (b *balance) add(losses []multitask.Loss, squares []float64) {
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
	if b.Warned || done < min(balanceSteps, of) {
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
