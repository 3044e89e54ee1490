package dataset

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/tasks"
)

// unknownLabels says which labels of a split, whose targets are numbered, training has not.
func (d *Dataset) unknownLabels(group *Group, split string) (warnings []string) {
	for h, of := range d.Heads(group) {
		for name, n := range unknown(d.Tasks[of.Number].Output(), group.Examples[split], h) {
			warnings = append(warnings, fmt.Sprintf("task %q: %s has label %q %d times, which train has not: it is "+
				"judged as wrong", of.Task.Name, split, name, n))
		}
	}
	return warnings
}

// truncated says how many texts of a split lose their end.
func (d *Dataset) truncated(group *Group, split string) (warnings []string) {
	cut, examples, n := d.Windowing(group), group.Examples[split], 0
	for _, e := range examples {
		if cut.Truncates(d.Tokenizer, e) {
			n++
		}
	}
	if n > 0 {
		task := d.Experiment.Tasks[group.Tasks[0]]
		warnings = append(warnings, fmt.Sprintf("task %q: %s", task.Name,
			Truncated(n, fmt.Sprintf("%d texts of %s", len(examples), split), cut)))
	}
	return warnings
}

// Truncated says that n of some texts lose their end, and what keeps it.
func Truncated(n int, texts string, cut corpus.Windowing) string {
	if cut.Windows {
		return fmt.Sprintf("%d of %s are of a pair, and lose the end of the text that windows of %d tokens do not "+
			"move over: a larger tokenizer.max_length keeps it", n, texts, cut.MaxLength)
	}
	return fmt.Sprintf("%d of %s have more than %d tokens and lose their end: a larger tokenizer.max_length, or "+
		"long: windows, keeps it", n, texts, cut.MaxLength)
}

// lostAnswers says how many answers of training no window of their text holds.
func (d *Dataset) truncatedTargets(group *Group) (warnings []string) {
	cut, more := d.Windowing(group), "a larger max_length"
	if !cut.Windows {
		more += ", or long: windows,"
	}
	for h, of := range d.Heads(group) {
		lost := 0
		for _, e := range group.Examples[config.Train] {
			if d.Tasks[of.Number].Output().Truncated(e.Targets[h]) {
				lost++
			}
		}
		if lost > 0 {
			warnings = append(warnings, fmt.Sprintf("task %q: %d of train's answers are not within %d tokens of "+
				"their text, and are learned as none: %s holds more", of.Task.Name, lost, cut.MaxLength, more))
		}
	}
	return warnings
}

// CheckTargets returns what the tasks of a group warn of in the targets of a split. tunes tells that heads are tuned on
// it.
func (d *Dataset) CheckTargets(group *Group, split string, tunes bool) (warnings []string) {
	for h, of := range d.Heads(group) {
		checker, checks := d.Tasks[of.Number].(tasks.TargetChecker)
		if !checks {
			continue
		}
		var gold []corpus.Target
		for _, e := range group.Examples[split] {
			gold = append(gold, e.Targets[h])
		}
		for _, warning := range checker.CheckTargets(gold, split, of.Head.Name, tunes) {
			warnings = append(warnings, fmt.Sprintf("task %q: %s", of.Task.Name, warning))
		}
	}
	return warnings
}
