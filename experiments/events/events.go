// Package events has the events of a training run, and writes them as lines of JSON.
package events

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/plugin"
)

// Done is the last event of a training run.
type Done struct {
	Best     train.Evaluation // the evaluation of the checkpoint in best/; empty without dev
	Metric   string           // name of the metric that selected it
	Value    float64
	Since    int // the step after which it is selected, where an earlier one was lost; else 0
	Step, Of int // the last step, and the number of steps that the plan has
	Skipped  int // steps without an update
	Seconds  float64
	Folder   string
	Resume   string             // the checkpoint that the training can be resumed from; "": none
	Frozen   train.FrozenParams // of the encoder; none where all its parameters learn
	Old      []report.Change    // of heads of the base run, beside which the encoder learns
}

// Checkpoint returns the folder of the best checkpoint, "" if no evaluation has selected one.
func (d Done) Checkpoint() string {
	if d.Best.Step == 0 {
		return ""
	}
	return filepath.Join(d.Folder, runfolder.BestDir)
}

// Event returns "done".
func (Done) Event() string { return "done" }

// OtherTexts is the event at the end of a training of several groups: what heads of the best model find in texts of
// other tasks.
type OtherTexts struct{ Heads []report.HeadRates }

// Event returns "other_texts".
func (OtherTexts) Event() string { return "other_texts" }

// Device is the event at the start of a training whose encoder does not compute on the processor, and of one that goes
// on elsewhere than before.
type Device struct {
	Device string // cuda:N; cpu: the processor
	Name   string // of the device, "" of the processor
}

// Event returns "device".
func (Device) Event() string { return "device" }

// Teacher is the event before the training of a task alone that teaches the run. In metrics.jsonl it comes after that,
// with the metric of its best checkpoint.
type Teacher struct {
	Task   string
	Run    string // folder
	Before bool   // it was trained before, for an earlier run
	Metric string // that selected its best checkpoint; "": it was trained before
	Value  float64
}

// Event returns "teacher".
func (Teacher) Event() string { return "teacher" }

// Ended is the last event of a training run that an error has ended: context.Canceled if it was interrupted.
type Ended struct {
	Done // so far
	Err  error
}

// Event returns "interrupted" or "error".
func (e Ended) Event() string {
	if errors.Is(e.Err, context.Canceled) {
		return "interrupted"
	}
	return "error"
}

// left returns the checkpoint that is left: the best, else the one to resume from, else "".
func (e Ended) left() string { return cmp.Or(e.Checkpoint(), e.Resume) }

// Failure returns what has failed besides an interruption, nil if nothing has.
func (e Ended) Failure() error {
	if !errors.Is(e.Err, context.Canceled) {
		return e.Err
	}
	joined, ok := e.Err.(interface{ Unwrap() []error })
	if !ok {
		return nil
	}
	var failed []error
	for _, err := range joined.Unwrap() {
		if failure := (Ended{Err: err}).Failure(); failure != nil {
			failed = append(failed, failure)
		}
	}
	return errors.Join(failed...)
}

// The types of lines are the JSON of events in metrics.jsonl and by `train --json`.
type (
	stepLine struct {
		Event        string                     `json:"event"`
		Step         int                        `json:"step"`
		Of           int                        `json:"of"`
		Epoch        float64                    `json:"epoch"`
		Loss         float64                    `json:"loss"`
		Tasks        map[string]report.TaskLine `json:"tasks"`
		Rate         float64                    `json:"rate"`
		GradientNorm float64                    `json:"gradient_norm"`
		TokensPerSec float64                    `json:"tokens_per_second"`
		Exchange     *exchangeLine              `json:"exchange,omitempty"`
		// Sampling has the probability of each group, by the name of its first task, and the terms of it.
		Sampling map[string]map[string]float64 `json:"sampling,omitempty"`
	}
	// exchangeLine is what the first of several processes sends in a step, the seconds of that, and those in which it
	// waits, of which the others are hidden behind the backward pass.
	exchangeLine struct {
		Bytes   int64   `json:"bytes"`
		Seconds float64 `json:"seconds"`
		Waited  float64 `json:"waited_seconds"`
	}
	warningLine struct {
		Event   string `json:"event"`
		Warning string `json:"warning"`
	}
	deviceLine struct {
		Event  string `json:"event"`
		Device string `json:"device"`
		Name   string `json:"name,omitempty"`
	}
	otherTextsLine struct {
		Event string             `json:"event"`
		Heads []report.HeadRates `json:"heads"`
	}
	teacherLine struct {
		Event  string   `json:"event"`
		Task   string   `json:"task"`
		Run    string   `json:"run"`
		Before bool     `json:"trained_before,omitempty"`
		Metric string   `json:"metric,omitempty"` // that selected its best checkpoint
		Value  *float64 `json:"value,omitempty"`
	}
	doneLine struct {
		Event   string    `json:"event"`
		Best    *bestLine `json:"best"`              // nil where nothing was evaluated
		Skipped int       `json:"skipped,omitempty"` // steps without an update
		Seconds float64   `json:"seconds"`
		Folder  string    `json:"folder"`
		Frozen  *sumsLine `json:"frozen,omitempty"` // nil where nothing of the encoder is frozen
		// Old has the change of tasks of the base run, by task and head.
		Old map[string]map[string]oldLine `json:"old,omitempty"`
	}
	// sumsLine are the CRC-32C of the encoder's frozen parameters.
	sumsLine struct {
		Values int    `json:"values"`
		Before string `json:"crc32c_before"`
		After  string `json:"crc32c_after"`
	}
	interruptedLine struct {
		Event      string  `json:"event"`
		Step       int     `json:"step"`
		Of         int     `json:"of"`
		Checkpoint *string `json:"checkpoint"` // nil where there is none
		Resume     string  `json:"resume,omitempty"`
		Error      string  `json:"error,omitempty"`
	}
	errorLine struct {
		Event      string `json:"event"`
		Step       int    `json:"step,omitempty"`
		Of         int    `json:"of,omitempty"`
		Checkpoint string `json:"checkpoint,omitempty"`
		Resume     string `json:"resume,omitempty"`
		Error      string `json:"error"`
	}
	bestLine struct {
		Step   int     `json:"step"`
		Epoch  float64 `json:"epoch"`
		Metric string  `json:"metric"`
		Value  float64 `json:"value"`
		// Since is the step after which it was selected, where the checkpoint of an earlier best was lost.
		Since  int                        `json:"since,omitempty"`
		Tasks  map[string]report.TaskLine `json:"tasks"`
		Groups []report.GroupLine         `json:"groups,omitempty"`
	}
)

// Line returns the JSON value of an event: a growthLine, a stepLine, a skippedLine, a report.EvalLine, a warningLine,
// a deviceLine, a teacherLine, an otherTextsLine, a doneLine, an interruptedLine or an errorLine.
func Line(event train.Event) any {
	switch v := event.(type) {
	case train.Step:
		if v.Bad != nil {
			return skippedLineOf(v)
		}
		return stepLineOf(v)
	case train.Evaluation:
		line := report.EvalLineOf("dev", v.Groups)
		line.Event, line.Step, line.Epoch, line.Fusion = v.Event(), v.Step, v.Epoch, v.Fusion
		if v.Weighted != nil {
			line.Overall[report.Weighted] = *v.Weighted
		}
		return line
	case Growth:
		return v.line()
	case Device:
		return deviceLine{Event: v.Event(), Device: v.Device, Name: v.Name}
	case Teacher:
		line := teacherLine{Event: v.Event(), Task: v.Task, Run: v.Run, Before: v.Before, Metric: v.Metric}
		if v.Metric != "" {
			line.Value = &v.Value
		}
		return line
	case train.Warning:
		return warningLine{Event: v.Event(), Warning: v.Text}
	case OtherTexts:
		return otherTextsLine{v.Event(), v.Heads}
	case Done:
		return v.line()
	case Ended:
		if v.Event() == "error" {
			return errorLine{Event: v.Event(), Step: v.Step, Of: v.Of, Checkpoint: v.left(), Resume: v.Resume,
				Error: v.Err.Error()}
		}
		line := interruptedLine{Event: v.Event(), Step: v.Step, Of: v.Of, Resume: v.Resume}
		if checkpoint := v.left(); checkpoint != "" {
			line.Checkpoint = &checkpoint
		}
		if failure := v.Failure(); failure != nil {
			line.Error = failure.Error()
		}
		return line
	}
	panic("events: unexpected event")
}

func stepLineOf(v train.Step) stepLine {
	line := stepLine{
		Event: v.Event(), Step: v.Number, Of: v.Of, Epoch: v.Epoch, Loss: v.Loss,
		Tasks: map[string]report.TaskLine{}, Rate: v.Rate, GradientNorm: v.GradientNorm,
		TokensPerSec: v.TokensPerSecond(),
	}
	for _, l := range v.Losses {
		if line.Tasks[l.Task].Heads == nil {
			task := report.TaskLine{Heads: map[string]report.HeadLine{}}
			if factor, ok := v.TaskFactors[l.Task]; ok {
				task.Factor = &factor
			}
			line.Tasks[l.Task] = task
		}
		head := report.HeadLine{"loss": l.Mean()}
		if l.Factor != l.Weight { // the weighting's, where it is not the experiment's weight
			head["factor"] = l.Factor
		}
		line.Tasks[l.Task].Heads[l.Head] = head
	}
	if x := v.Exchange; x != nil {
		line.Exchange = &exchangeLine{x.Sent, x.Active.Seconds(), x.Waited.Seconds()}
	}
	line.Sampling = samplingLine(v.Sampling)
	return line
}

func (d Done) line() doneLine {
	line := doneLine{
		Event: d.Event(), Skipped: d.Skipped, Seconds: d.Seconds, Folder: d.Folder, Old: oldLines(d.Old),
	}
	if d.Frozen.Values > 0 {
		line.Frozen = &sumsLine{d.Frozen.Values, d.Frozen.Before, d.Frozen.After}
	}
	if d.Best.Groups != nil {
		best := report.EvalLineOf("dev", d.Best.Groups)
		line.Best = &bestLine{
			Step: d.Best.Step, Epoch: d.Best.Epoch, Metric: d.Metric, Value: d.Value, Since: d.Since,
			Tasks: best.Tasks, Groups: best.Groups,
		}
	}
	return line
}

// samplingLine returns the probabilities of groups beside their terms; nil where there are none.
func samplingLine(probabilities []samplers.Probability) map[string]map[string]float64 {
	if probabilities == nil {
		return nil
	}
	line := map[string]map[string]float64{}
	for _, p := range probabilities {
		terms := maps.Clone(p.Terms)
		terms["probability"] = p.Value
		line[p.Group] = terms
	}
	return line
}

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

const mostTexts = 16

func skippedLineOf(s train.Step) skippedLine {
	b := s.Bad
	line := skippedLine{
		Event: s.Event(), Step: s.Number, Of: s.Of, Epoch: s.Epoch, Task: b.Head.Task, Head: b.Head.Head,
		Usual: b.Usual, Reason: b.Reason(), Texts: b.Places(mostTexts), Skipped: s.Skipped,
	}
	if b.Usual > 0 {
		line.Loss = &b.Loss
	}
	return line
}

// SkippedWarning returns the warning of a step without an update.
func SkippedWarning(s train.Step) train.Warning {
	return train.Warning{Text: fmt.Sprintf("step %d has no update: %s", s.Number, s.Bad.String())}
}

// Growth is the event at the start of a training that continues a run: what it takes over.
type Growth struct {
	Run     string // folder of the run, or of a checkpoint
	Fusion  string // type of the fusion, whose parameters are taken over
	Tasks   []GrownTask
	Dropped []string // tasks of the run that the model does not have
	Learns  bool     // the encoder that tasks share changes
}

// Event returns "base".
func (Growth) Event() string { return "base" }

// What becomes of a task of a Growth.
const (
	TrainedOn = "trained on"
	Rehearsed = "rehearsed"
	Kept      = "kept"
	New       = "new"
)

// GrownTask is a task of a Growth.
type GrownTask struct {
	Task, From string // From is its name in the run; "": it is new
	State      string // TrainedOn, Rehearsed, Kept or New
	Heads      []GrownHead
	Dropped    []string // heads of the run's task that the model does not have
}

// GrownHead is a head of a GrownTask.
type GrownHead struct {
	Head      string   `json:"-"`
	From      string   `json:"from,omitempty"`       // its name in the run; "": it is new
	Labels    int      `json:"labels"`               // their number
	NewLabels []string `json:"new_labels,omitempty"` // that the run's head lacks; none of a new head
}

// Lines describes the growth, a line for the run and one for each task.
func (g Growth) Lines() []string {
	lines := []string{fmt.Sprintf("continues the run %s, with its encoder and its fusion (%s):", g.Run, g.Fusion)}
	for _, task := range g.Tasks {
		what := []string{task.State}
		if task.State == Kept && g.Learns {
			what[0] += " and not rehearsed beside an encoder that learns"
		}
		if task.From != "" && task.From != task.Task {
			what[0] += ", its " + task.From
		}
		for _, head := range task.Heads {
			switch n := len(head.NewLabels); {
			case task.From != "" && head.From == "":
				what = append(what, fmt.Sprintf("head %s new", head.Head))
			case n > 0:
				shown := head.NewLabels[:min(n, 5)]
				more := ""
				if n > len(shown) {
					more = ", …"
				}
				what = append(what, fmt.Sprintf("head %s with %s: %s%s", head.Head, plugin.Count(n, "new label"),
					strings.Join(shown, ", "), more))
			}
		}
		for _, name := range task.Dropped {
			what = append(what, fmt.Sprintf("head %s dropped", name))
		}
		lines = append(lines, fmt.Sprintf("  task %s: %s", task.Task, strings.Join(what, "; ")))
	}
	for _, name := range g.Dropped {
		lines = append(lines, fmt.Sprintf("  task %s: dropped", name))
	}
	return lines
}

type growthLine struct {
	Event   string                   `json:"event"`
	Run     string                   `json:"run"`
	Fusion  string                   `json:"fusion"`
	Tasks   map[string]grownTaskLine `json:"tasks"`
	Dropped []string                 `json:"dropped,omitempty"`
}

type grownTaskLine struct {
	State   string               `json:"state"`
	From    string               `json:"from,omitempty"`
	Heads   map[string]GrownHead `json:"heads"`
	Dropped []string             `json:"dropped,omitempty"`
}

func (g Growth) line() growthLine {
	line := growthLine{
		Event: g.Event(), Run: g.Run, Fusion: g.Fusion, Tasks: map[string]grownTaskLine{}, Dropped: g.Dropped,
	}
	for _, task := range g.Tasks {
		t := grownTaskLine{State: task.State, From: task.From, Heads: map[string]GrownHead{}, Dropped: task.Dropped}
		for _, head := range task.Heads {
			t.Heads[head.Head] = head
		}
		line.Tasks[task.Task] = t
	}
	return line
}

type oldLine struct {
	Metric string  `json:"metric"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Change float64 `json:"change"`
}

// oldLines returns the JSON of old heads by task and head.
func oldLines(old []report.Change) map[string]map[string]oldLine {
	lines := map[string]map[string]oldLine{}
	for _, h := range old {
		change, known := h.Difference()
		if !known { // a training that ended early has no metric after it
			continue
		}
		if lines[h.Task] == nil {
			lines[h.Task] = map[string]oldLine{}
		}
		lines[h.Task][h.Head] = oldLine{h.Metric, *h.Before, *h.After, change}
	}
	return lines
}
