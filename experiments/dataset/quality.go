package dataset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// splits are all splits, in the order of warnings.
var splits = []string{config.Train, config.Dev, config.Test}

// checkQuality warns of data that can be read, but is likely to be wrong: one warning of each kind for each head.
func (d *Dataset) checkQuality(group *Group) (warnings []string) {
	if group.Stream != nil && group.Stream.indexed {
		return group.Stream.doubts
	}
	texts := d.findDuplicates(group)
	for h, of := range d.Heads(group) {
		kind := d.Tasks[of.Number].Output()
		if !kind.HasLabels {
			continue
		}
		counts := labelCounts(kind, group, h)
		for _, warning := range []string{missingLabels(counts), similarLabels(counts), texts.contradictions(h)} {
			if warning != "" {
				warnings = append(warnings, taskWarning(of.Task, "head %q: %s", of.Head.Name, warning))
			}
		}
	}
	if warning := overlap(group, texts.inTraining()); warning != "" {
		warnings = append(warnings, taskWarning(d.Experiment.Tasks[group.Tasks[0]], "%s", warning))
	}
	if group.Stream != nil {
		group.Stream.doubts = warnings
	}
	return warnings
}

// labelCounts counts the labels of head h in all splits.
func labelCounts(kind *outputs.Kind, group *Group, h int) map[string]int {
	counts := maps.Clone(group.train.heads[h].labels)
	for _, split := range []string{config.Dev, config.Test} {
		for _, e := range group.Examples[split] {
			kind.Names(e.Targets[h], func(name *string) { counts[*name]++ })
		}
	}
	return counts
}

// missing are texts that stand for a missing value: those of pandas.read_csv (na_values, pandas 2.2) that are words,
// and their other cases, except none, which is a label of published corpora.
var missing = []string{
	"#N/A", "#NA", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null", "NAN", "Null",
}

// missingLabels returns a warning of labels that stand for a missing value, "" if there are none.
func missingLabels(counts map[string]int) string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if bare := strings.TrimSpace(name); bare == "" || slices.Contains(missing, bare) {
			found = append(found, name)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return fmt.Sprintf("labels that may stand for a missing value are learned as labels: %s; an empty field or null "+
		"leaves an example unlabelled", withCounts(found, counts))
}

// similarLabels returns a warning of labels that differ by white space or case only, "" if there are none.
func similarLabels(counts map[string]int) string {
	alike := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		key := strings.ToLower(strings.Join(strings.FieldsFunc(name, unicode.IsSpace), ""))
		alike[key] = append(alike[key], name)
	}
	var found []string
	for _, key := range slices.Sorted(maps.Keys(alike)) {
		if len(alike[key]) > 1 {
			found = append(found, alike[key]...)
		}
	}
	if len(found) == 0 {
		return ""
	}
	return "labels that differ by white space or case only are different labels: " + withCounts(found, counts)
}

// withCounts lists labels with their counts for a warning; a long list is shortened.
func withCounts(names []string, counts map[string]int) string {
	shown := make([]string, len(names))
	for i, name := range names {
		shown[i] = fmt.Sprintf("%q %s", name, plugin.Count(counts[name], "time"))
	}
	return list(shown)
}

// textOf returns what two examples have in common that have the same text, and pair; "" for an empty text.
func textOf(e *corpus.Example) string {
	text, pair := strings.TrimSpace(e.Text), strings.TrimSpace(e.Pair)
	if pair == "" {
		return text
	}
	return text + "\x00" + pair
}

// namesOf returns the labels of a target as one text: of tags in their order, else sorted.
func namesOf(kind *outputs.Kind, target corpus.Target) string {
	var names []string
	kind.Names(target, func(name *string) { names = append(names, *name) })
	if !kind.PerWord {
		slices.Sort(names)
	}
	return strings.Join(names, "\x00")
}

// overlap returns a warning of texts of dev and test that are in train too, of which counts has the number by split; ""
// if there are none.
func overlap(group *Group, counts map[string]int) string {
	var found []string
	shared := 0
	for _, split := range []string{config.Dev, config.Test} {
		n := counts[split]
		if n > 0 {
			shared += n
			texts := plugin.Count(len(group.Examples[split]), "text")
			found = append(found, fmt.Sprintf("%d of %s of %s", n, texts, split))
		}
	}
	if len(found) == 0 {
		return ""
	}
	return strings.Join(found, " and ") + plugin.Agree(shared, " is in train too: metrics on it say",
		" are in train too: metrics on them say") + " nothing about new texts"
}
