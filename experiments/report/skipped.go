package report

import (
	"fmt"

	"github.com/jenga-nlp/jenga/multitask"
)

// skippedLine is the JSON of a step without an update.
type skippedLine struct {
	Event  string   `json:"event"`
	Step   int      `json:"step"`
	Of     int      `json:"of"`
	Epoch  float64  `json:"epoch"`
	Task   string   `json:"task,omitempty"` // none where each loss is as usual and the gradient is not finite
	Head   string   `json:"head,omitempty"`
	Loss   *float64 `json:"loss"`            // nil where it is not finite
	Usual  float64  `json:"usual,omitempty"` // loss that Loss is compared with
	Reason string   `json:"reason"`
	Texts  []string `json:"texts"` // places and first characters
	// Skipped is the number of such steps so far.
	Skipped int `json:"skipped"`
}

// mostTexts is the largest number of texts in a skippedLine.
const mostTexts = 16

func skippedLineOf(s multitask.Step) skippedLine {
	b := s.Bad
	line := skippedLine{
		Event: "skipped", Step: s.Number, Of: s.Of, Epoch: s.Epoch, Task: b.Head.Task, Head: b.Head.Head,
		Usual: b.Usual, Reason: b.Reason(), Texts: b.Places(mostTexts), Skipped: s.Skipped,
	}
	if b.Usual > 0 {
		line.Loss = &b.Loss
	}
	return line
}

// SkippedWarning returns the warning of a step without an update.
func SkippedWarning(s multitask.Step) multitask.Warning {
	return multitask.Warning{Text: fmt.Sprintf("step %d has no update: %s", s.Number, s.Bad.String())}
}
