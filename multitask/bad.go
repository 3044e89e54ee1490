package multitask

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
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
	NoRemedy     Remedy = iota // no option of training: it is of weights that no update has changed
	LowerRate                  // a lower learning rate
	SkipSteps                  // to leave the updates out: the loss is bad on some texts alone
	OfEvaluation               // no option of training: it is of an evaluation
)

// Error describes the step, and what may help.
func (b *BadStep) Error() string {
	switch b.Remedy {
	case OfEvaluation:
		return b.String()
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

func firstCharacters(text string) string {
	const characters = 40
	if utf8.RuneCountInString(text) <= characters {
		return text
	}
	return string([]rune(text)[:characters]) + "…"
}

// badBatch describes a batch of an evaluation in which the loss of head number h of a group becomes one that is not
// finite.
func badBatch(l Loss, h int, examples []*corpus.Example) *BadStep {
	labelled := slices.DeleteFunc(slices.Clone(examples), func(e *corpus.Example) bool { return e.Targets[h] == nil })
	return &BadStep{What: "loss", Head: l.HeadName(), Loss: l.Sum, Texts: labelled, Of: len(labelled),
		Remedy: OfEvaluation}
}
