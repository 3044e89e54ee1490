package multitask

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/plugin"
)

// BadStep describes a step that has no update: a loss is not a finite number or explodes, or the gradient is not
// finite. It is the error of a training that it ends.
type BadStep struct {
	What   string            // "loss" or "gradient"
	Head   HeadName          // the first whose loss is bad; none where each loss is as usual
	Others int               // further heads whose losses are bad
	Loss   float64           // mean over labelled units
	Usual  float64           // loss of the head, which Loss is a multiple of; 0: Loss is not finite
	Texts  []*corpus.Example // on which the loss is bad by itself; all of the step where none is
	Of     int               // texts of the step, those that are labelled for the head
	Alone  bool              // the loss is bad on each of Texts by itself
	// Remedy is what may help.
	Remedy Remedy
}

// Remedy is what may help against bad steps.
type Remedy int

// Remedies.
const (
	NoRemedy  Remedy = iota // no option of training: it is of an evaluation, or of weights that no update has changed
	LowerRate               // a lower learning rate
	SkipSteps               // to leave the updates out: the loss is bad on some texts alone
)

// Error describes the step, and what may help.
func (b *BadStep) Error() string {
	switch b.Remedy {
	case SkipSteps:
		return b.String() + "; training.on_bad_loss: skip leaves the updates of such steps out"
	case LowerRate:
		return b.String() + "; a lower training.learning_rate may help"
	}
	return b.String() + "; no update came before it: it follows from the texts, their targets and the initial weights"
}

// String describes the step, with the places and first characters of texts.
func (b *BadStep) String() string {
	text := b.Reason()
	for i, place := range b.Places(textsShown) {
		text += map[bool]string{true: ": ", false: ", "}[i == 0] + place
	}
	if more := len(b.Texts) - textsShown; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Reason describes what is bad, and on how many texts.
func (b *BadStep) Reason() string {
	if b.Head == (HeadName{}) {
		return fmt.Sprintf("the %s is not finite among %s", b.What, plugin.Count(b.Of, "text"))
	}
	text := fmt.Sprintf("task %q: the loss of head %q is %.6g", b.Head.Task, b.Head.Head, b.Loss)
	if b.Usual > 0 {
		text += fmt.Sprintf(", which is %.3g times its usual %.4g", b.Loss/b.Usual, b.Usual)
	}
	if b.Others > 0 {
		text += fmt.Sprintf(" (%s too)", plugin.Count(b.Others, "other head"))
	}
	switch {
	case !b.Alone:
		return text + fmt.Sprintf(" among %s", plugin.Count(b.Of, "text"))
	case len(b.Texts) == b.Of:
		return text + fmt.Sprintf(", on each of %s", plugin.Count(b.Of, "text"))
	}
	return text + fmt.Sprintf(", on %d of %s", len(b.Texts), plugin.Count(b.Of, "text"))
}

// textsShown is the number of texts in an error.
const textsShown = 3

// Places returns the place and the first characters of at most n texts.
func (b *BadStep) Places(n int) []string {
	var places []string
	for _, e := range b.Texts[:min(n, len(b.Texts))] {
		places = append(places, strings.TrimSpace(fmt.Sprintf("%s %q", e.Place, firstCharacters(e.Text))))
	}
	return places
}

// firstCharacters returns the start of a text.
func firstCharacters(text string) string {
	const characters = 40
	if utf8.RuneCountInString(text) <= characters {
		return text
	}
	return string([]rune(text)[:characters]) + "…"
}

// findBad returns why a step has no update, nil if it has one.
func (s *step) findBad(report Step) (*BadStep, error) {
	// losses
	var bad *BadStep
	for _, l := range s.losses.all {
		usual, isBad := s.training.guard.check(l)
		switch {
		case !isBad:
		case bad != nil:
			bad.Others++
		default:
			bad = &BadStep{What: "loss", Head: l.HeadName(), Loss: l.Mean(), Usual: usual}
		}
	}

	// their sum, and its gradient
	if bad == nil {
		switch {
		case !floats.IsFinite(report.Loss):
			bad = &BadStep{What: "loss"}
		case !floats.IsFinite(report.GradientNorm):
			bad = &BadStep{What: "gradient"}
		default:
			return nil, nil
		}
	}
	if err := s.findTexts(bad); err != nil {
		return nil, err
	}
	switch updates := report.Number - 1 - s.training.guard.state.Skipped; {
	case bad.Alone && len(bad.Texts) < bad.Of:
		bad.Remedy = SkipSteps
	case updates > 0:
		bad.Remedy = LowerRate
	}
	return bad, nil
}

// badBatch describes a batch of an evaluation in which the loss of head number h of a group becomes one that is not
// finite.
func badBatch(l Loss, h int, examples []*corpus.Example) *BadStep {
	labelled := slices.DeleteFunc(slices.Clone(examples), func(e *corpus.Example) bool { return e.Targets[h] == nil })
	return &BadStep{What: "loss", Head: l.HeadName(), Loss: l.Sum, Texts: labelled, Of: len(labelled)}
}

// findTexts sets the texts of a bad step: those on which the loss of its head is bad if they are alone in a batch,
// without dropout. A text has the same states alone and in any batch. Each rank tries those of its shards.
func (s *step) findTexts(bad *BadStep) error {
	if bad.Head == (HeadName{}) {
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
		all, err := ranks.AllGather(alone)
		if err != nil {
			return err
		}
		alone = slices.Concat(all...)
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
	example *corpus.Example
}

// textsOf returns the examples of shards that are labelled for a head.
func (s *step) textsOf(shards [][]packed, head HeadName) (all []labelledText) {
	for _, b := range slices.Concat(shards...) {
		h := slices.IndexFunc(s.losses.group[b.group], func(l Loss) bool { return l.HeadName() == head })
		for _, e := range b.batch.Examples {
			if h >= 0 && e.Targets != nil && e.Targets[h] != nil {
				all = append(all, labelledText{b, h, e})
			}
		}
	}
	return all
}

// isBadAlone reports whether the loss of its head is bad on one example.
func (s *step) isBadAlone(one labelledText, usual float64) bool {
	pass, group, h := s.training.pass, &s.training.model.Groups[one.group], one.h
	pass.Reset(one.serial)
	pass.Training = false
	batch := corpus.Pack([]*corpus.Example{one.example})
	a, err := s.training.model.forward(pass, group, batch)
	if err != nil {
		return false // of a file of states; the next step reports it
	}
	nodes := group.lossNodes(pass, a, batch)
	if err := pass.Forward(); err != nil || nodes[h] == nil {
		return false
	}
	l := group.losses(batch)[h]
	l.Sum = valueOf(nodes[h])
	if usual > 0 {
		return l.Mean() > s.training.plan.LossLimit*usual
	}
	return !floats.IsFinite(l.Mean())
}

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
