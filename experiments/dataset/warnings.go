package dataset

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/tasks"
)

// unknownLabels warns of labels of a split that do not occur in training. Its targets are numbered.
func (d *Dataset) unknownLabels(group *Group, split string) (warnings []string) {
	for h, of := range d.Heads(group) {
		for name, n := range unknown(d.Tasks[of.Number].Output(), group.Examples[split], h) {
			warnings = append(warnings, fmt.Sprintf("task %q: %s has label %q %d times, which train does not have: it "+
				"counts as wrong", of.Task.Name, split, name, n))
		}
	}
	return warnings
}

// truncated warns of examples of a split that are truncated.
func (d *Dataset) truncated(group *Group, split string) (warnings []string) {
	windowing, examples, n := d.Windowing(group), group.Examples[split], 0
	for _, e := range examples {
		if windowing.Truncates(d.Tokenizer, e) {
			n++
		}
	}
	if n > 0 {
		task := d.Experiment.Tasks[group.Tasks[0]]
		warnings = append(warnings, fmt.Sprintf("task %q: %s", task.Name,
			Truncated(n, fmt.Sprintf("%d texts of %s", len(examples), split), windowing)))
	}
	return warnings
}

// Truncated returns a warning that n of some texts are truncated, with the options that avoid it.
func Truncated(n int, texts string, windowing corpus.Windowing) string {
	if windowing.Windows {
		return fmt.Sprintf("%d of %s are pairs whose text outside the windows of %d tokens is truncated: a larger "+
			"tokenizer.max_length avoids it", n, texts, windowing.MaxLength)
	}
	return fmt.Sprintf("%d of %s have more than %d tokens and are truncated: a larger tokenizer.max_length, or "+
		"long: windows, avoids it", n, texts, windowing.MaxLength)
}

// truncatedTargets warns of targets of training that are in no window of their example.
func (d *Dataset) truncatedTargets(group *Group) (warnings []string) {
	windowing, remedy := d.Windowing(group), "a larger max_length"
	if !windowing.Windows {
		remedy += ", or long: windows,"
	}
	for h, of := range d.Heads(group) {
		truncated := 0
		for _, e := range group.Examples[config.Train] {
			if d.Tasks[of.Number].Output().Truncated(e.Targets[h]) {
				truncated++
			}
		}
		if truncated > 0 {
			warnings = append(warnings, fmt.Sprintf("task %q: %d targets of train are not within %d tokens of "+
				"their text, and are learned as no answer: %s avoids it", of.Task.Name, truncated, windowing.MaxLength,
				remedy))
		}
	}
	return warnings
}

// CheckTargets returns the warnings of a group's tasks about the targets of a split. tunes is true if heads are tuned
// on the split.
func (d *Dataset) CheckTargets(group *Group, split string, tunes bool) (warnings []string) {
	for h, of := range d.Heads(group) {
		checker, checks := d.Tasks[of.Number].(tasks.TargetChecker)
		if !checks {
			continue
		}
		var targets []corpus.Target
		for _, e := range group.Examples[split] {
			targets = append(targets, e.Targets[h])
		}
		for _, warning := range checker.CheckTargets(targets, split, of.Head.Name, tunes) {
			warnings = append(warnings, fmt.Sprintf("task %q: %s", of.Task.Name, warning))
		}
	}
	return warnings
}
