package dataset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// unknownLabels warns of labels of a split that do not occur in training. Its targets are numbered.
func (d *Dataset) unknownLabels(group *Group, split string) (warnings []string) {
	for h, of := range d.Heads(group) {
		counts := unknown(d.Tasks[of.Number].Output(), group.Examples[split], h)
		names := slices.Sorted(maps.Keys(counts))
		switch len(names) {
		case 0:
		case 1:
			warnings = append(warnings, taskWarning(of.Task, "%s has label %s, which train does not have: it counts "+
				"as wrong", group.nameOf(split), withCounts(names, counts)))
		default:
			warnings = append(warnings, taskWarning(of.Task, "%s has %d labels that train does not have, which count "+
				"as wrong: %s", group.nameOf(split), len(names), withCounts(names, counts)))
		}
	}
	return warnings
}

// unlabelled warns of training examples without a target for any head of their group: nothing is learned from them.
func (d *Dataset) unlabelled(group *Group) (warnings []string) {
	all, n := group.train.examples, group.train.unlabelled
	heads := d.Heads(group)
	first := heads[0]
	kind := d.Tasks[first.Number].Output()
	if n == 0 || n == all || len(heads) == 1 && kind.Unlabelled(n, all) != "" {
		return nil // the last two are reported with the head
	}
	return []string{taskWarning(first.Task, "%d of %d training examples have no %s and are not used for training", n,
		all, cmp.Or(kind.Field(), "label"))}
}

// checkTexts warns of examples of a split that are empty or truncated.
func (d *Dataset) checkTexts(group *Group, split string) (warnings []string) {
	all, empty, truncated := d.countTexts(group, split)
	task, windowing := d.Experiment.Tasks[group.Tasks[0]], d.Windowing(group)
	if empty > 0 {
		warnings = append(warnings, taskWarning(task, "%d of %s of %s %s empty", empty, plugin.Count(all, "text"),
			group.nameOf(split), plugin.Agree(empty, "is", "are")))
	}
	if truncated > 0 {
		warnings = append(warnings, taskWarning(task, "%s",
			Truncated(truncated, plugin.Count(all, "text")+" of "+group.nameOf(split), windowing)))
	}
	return warnings
}

// countTexts counts the examples of a split, and those that are empty or truncated.
func (d *Dataset) countTexts(group *Group, split string) (all, empty, truncated int) {
	if s := group.Stream; s != nil && split == config.Train {
		return group.train.examples, group.train.empty, s.encoded.Truncated
	}
	windowing := d.Windowing(group)
	for _, e := range group.Examples[split] {
		if isEmpty(e) {
			empty++
		}
		if windowing.Truncates(d.Tokenizer, e) {
			truncated++
		}
	}
	return len(group.Examples[split]), empty, truncated
}

// taskWarning returns a warning about a task's data.
func taskWarning(task config.Task, format string, args ...any) string {
	return plugin.Warning(plugin.Place{}, "task %q: "+format, append([]any{task.Name}, args...)...)
}

// Truncated returns a warning that n of some texts are truncated, with the options that avoid it.
func Truncated(n int, texts string, windowing corpus.Windowing) string {
	if windowing.Windows {
		return fmt.Sprintf("%d of %s %s whose text outside the windows of %d tokens is truncated: a larger "+
			"tokenizer.max_length avoids it", n, texts, plugin.Agree(n, "is a pair", "are pairs"), windowing.MaxLength)
	}
	return fmt.Sprintf("%d of %s %s more than %d tokens and %s truncated: a larger tokenizer.max_length, or "+
		"long: windows, avoids it", n, texts, plugin.Agree(n, "has", "have"), windowing.MaxLength,
		plugin.Agree(n, "is", "are"))
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
		if group.Stream != nil {
			truncated = group.Stream.encoded.TruncatedTargets[h]
		}
		if truncated > 0 {
			warnings = append(warnings, taskWarning(of.Task, "%d targets of train are not within %d tokens of their "+
				"text, and are learned as no answer: %s avoids it", truncated, windowing.MaxLength, remedy))
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
		for _, warning := range checker.CheckTargets(targets, group.nameOf(split), of.Head.Name, tunes) {
			warnings = append(warnings, taskWarning(of.Task, "%s", warning))
		}
	}
	return warnings
}
