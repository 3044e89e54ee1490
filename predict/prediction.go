package predict

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// Prediction is the output of the model for one example, or an error. Its JSON is a line of `jenga predict`.
type Prediction struct {
	Err  error // no prediction was made; Tasks may be incomplete
	Line int   // of the input, from 1; 0: not known
	// Fields are what the input has besides its texts, and pass through to the JSON.
	Fields map[string]any
	Text   string
	Pair   string
	Paired bool // there is a Pair, which may be empty
	// Truncated is the number of tokens that were not read because the text is too long, for the task that lost most.
	Truncated int
	// Windows is the number of windows that the text was read in, of the task with most; 1 if it was read as a whole.
	Windows int
	// Tasks has the JSON of the output kind by task and head. For a single text, tasks that need a pair are missing.
	Tasks map[string]map[string]any

	// Data has the value of the output kind's field in data files, by task and head, for those that have one.
	Data map[string]map[string]any
	// Words are the words of Text, by which tasks with an output for each word read it; nil if there is no such task.
	Words []corpus.Span
}

// Form is how predictions are written.
type Form struct {
	Unit  corpus.OffsetUnit // of offsets; the zero value is characters
	Top   int               // how many of the likeliest labels are listed; 0: none
	Tasks []string          // those that are written; empty: all that were computed
	// Rows is true for rows of a file, of which nothing may be lost: an empty text is predicted as any other, and all
	// words are written of a truncated text that came without words; else those end with the last one read.
	Rows bool

	// MinProbability is the least probability of an answer, by TASK or TASK.HEAD, "" for all others. A less probable
	// label is abstained from, or not among several labels, whatever the thresholds are.
	MinProbability map[string]float64
	// Thresholds are the least probabilities, in place of the run's, by TASK or TASK.HEAD and label, "" for all other
	// labels: at which each of several labels holds, or from which on one label is an answer.
	Thresholds map[string]map[string]float64
}

func (f Form) writes(task string) bool { return len(f.Tasks) == 0 || slices.Contains(f.Tasks, task) }

// checkForm returns a *CallError for a form that does not fit the run. It begins with the form's field, as a request
// calls it.
func (m *Model) checkForm(f Form) error {
	for _, field := range []struct {
		name string
		err  error
	}{
		{"tasks", m.checkTasks(f.Tasks)},
		{"offsets", f.Unit.Check()},
		{"min_probability", m.run.CheckMinProbability(f.MinProbability)},
		{"thresholds", m.run.CheckThresholds(f.Thresholds)},
	} {
		if field.err != nil {
			return &CallError{fmt.Errorf("%s: %w", field.name, field.err)}
		}
	}
	if f.Top < 0 {
		return &CallError{fmt.Errorf("top: %d: want a number from 0 on", f.Top)}
	}
	return nil
}

// clone returns a copy that shares nothing with the form.
func (f Form) clone() *Form {
	f.Tasks, f.MinProbability = slices.Clone(f.Tasks), maps.Clone(f.MinProbability)
	f.Thresholds = maps.Clone(f.Thresholds)
	for name, thresholds := range f.Thresholds {
		f.Thresholds[name] = maps.Clone(thresholds)
	}
	return &f
}

// Deciding lists the heads whose answers a Form's probabilities decide.
func (m *Model) Deciding() []DecidingHead { return decidingHeads(m.run.Model) }

func (f Form) decides() bool { return len(f.MinProbability) > 0 || len(f.Thresholds) > 0 }

func (f Form) decision(task string, head multitask.Head) outputs.Decision {
	by := outputs.Decision{}
	for _, name := range []string{task + "." + head.Name, task, ""} {
		if least, ok := f.MinProbability[name]; ok {
			by.MinProbability = float32(least)
			break
		}
	}
	for _, name := range []string{task + "." + head.Name, task} {
		thresholds, ok := f.Thresholds[name]
		if !ok {
			continue
		}
		by.Thresholds = make([]float32, len(head.Labels.Names()))
		all, forAll := thresholds[""]
		for c, label := range head.Labels.Names() {
			switch threshold, ok := thresholds[label]; {
			case ok:
				by.Thresholds[c] = float32(threshold)
			case forAll:
				by.Thresholds[c] = float32(all)
			default:
				by.Thresholds[c] = float32(math.NaN())
			}
		}
		break
	}
	return by
}

// DecidingHead is a head whose answers are decided by the probabilities of labels.
type DecidingHead struct {
	Task, Head string
	One        bool // it predicts one label
	Labels     []string
}

// Names are those that a Form may call the head by.
func (h DecidingHead) Names() []string { return []string{h.Task, h.Task + "." + h.Head} }

func decidingHeads(m *multitask.Model) (all []DecidingHead) {
	for _, g := range m.Groups {
		for _, task := range g.Tasks {
			kind := task.Type.Output()
			if !kind.Decides() {
				continue
			}
			for _, head := range task.Heads {
				all = append(all, DecidingHead{task.Name, head.Name, kind.OneLabel, head.Labels.Names()})
			}
		}
	}
	return all
}

// CheckMinProbability returns an error for a Form's MinProbability that does not fit the run.
func (o *Opened) CheckMinProbability(least map[string]float64) error {
	if len(least) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(least)) {
		if err := checkDecision(decidingHeads(o.Model), name, map[string]float64{"": least[name]}, true); err != nil {
			return err
		}
	}
	return nil
}

// CheckThresholds returns an error for a Form's Thresholds that do not fit the run.
func (o *Opened) CheckThresholds(thresholds map[string]map[string]float64) error {
	if len(thresholds) == 0 {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(thresholds)) {
		if err := checkDecision(decidingHeads(o.Model), name, thresholds[name], false); err != nil {
			return err
		}
	}
	return nil
}

// checkDecision returns an error for probabilities by label, "" for all others, that do not fit the heads that a name
// is of: those of a task or a head or, if forAll is true, all for "".
func checkDecision(all []DecidingHead, name string, probabilities map[string]float64, forAll bool) error {
	of, err := all, error(nil)
	switch {
	case len(all) == 0:
		return errors.New("no task of the run predicts labels with probabilities")
	case name != "" || !forAll:
		if of, err = headsNamed(all, name); err != nil {
			return err
		}
	}
	if _, ok := probabilities[""]; of[0].One && !(ok && len(probabilities) == 1) {
		return fmt.Errorf("%q: it predicts one label; want a number", name)
	}
	for _, label := range slices.Sorted(maps.Keys(probabilities)) {
		known := func(h DecidingHead) bool { return slices.Contains(h.Labels, label) }
		if label != "" && !slices.ContainsFunc(of, known) {
			return fmt.Errorf("%q: %s", name, plugin.Unknown("label", label, of[0].Labels))
		}
		switch p := probabilities[label]; {
		case p >= 0 && p <= 1:
		case name != "":
			return fmt.Errorf("%q: %v: want a number from 0 to 1", name, p)
		default:
			return fmt.Errorf("%v: want a number from 0 to 1", p)
		}
	}
	return nil
}

func headsNamed(all []DecidingHead, name string) (of []DecidingHead, err error) {
	var names []string
	for _, h := range all {
		if slices.Contains(h.Names(), name) {
			of = append(of, h)
		}
		for _, n := range h.Names() {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	if len(of) == 0 {
		return nil, errors.New(plugin.Unknown("task with labels", name, names))
	}
	return of, nil
}
