package dataset

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// label determines the labels of all heads of a group from its training examples, and numbers the targets. Where
// training goes on, the labels are those of the run.
func (d *Dataset) label(group *Group, mistakes *plugin.Mistakes) {
	for h, of := range d.Heads(group) {
		kind := d.Tasks[of.Number].Output()
		d.checkLabelled(group, h, of, kind, mistakes)
		var names []string
		if kind.HasLabels {
			found := slices.SortedFunc(maps.Keys(group.surveys[config.Train].Heads[h].Labels), compareLabels)
			names = d.checkLabels(of.Task, of.Head, found, mistakes)
		} else {
			d.checkNoLabels(of.Task, of.Head, kind, mistakes)
		}
		known := d.options.Labels[of.name()]
		if d.resumes() {
			d.Labels[of.name()] = knownLabels(of, known, names, mistakes)
		} else {
			d.Labels[of.name()] = grown(known, names)
		}
	}
	if group.Stream != nil {
		group.Stream.labels = d.labelsOf(group)
	}
	for _, split := range splits {
		d.number(group, group.Examples[split])
	}
	d.unlabelled(group)
	for _, split := range []string{config.Dev, config.Test} {
		d.unknownLabels(group, split)
	}
}

// grown returns the labels of a head: known, those of the run that it is taken over from, then those of names that the
// run lacks.
func grown(known *corpus.Labels, names []string) *corpus.Labels {
	if known == nil {
		return corpus.NewLabels(names)
	}
	further := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return known.ID(name) >= 0 })
	return corpus.NewLabels(slices.Concat(known.Names(), further))
}

func (d *Dataset) number(group *Group, examples []*corpus.Example) {
	labels := d.labelsOf(group)
	for h, kind := range d.kinds(group) {
		for _, e := range examples {
			kind.AssignIDs(e.Targets[h], labels[h])
		}
	}
}

// checkLabelled reports a mistake if no training example of a group has a target for its head number h.
func (d *Dataset) checkLabelled(group *Group, h int, of Head, kind *outputs.Kind, mistakes *plugin.Mistakes) {
	all, labelled := group.surveys[config.Train].Examples, group.surveys[config.Train].Heads[h].Labelled
	if labelled > 0 {
		if warning := kind.Unlabelled(all-labelled, all); warning != "" {
			d.warn(of.Task, "%s", warning)
		}
		return
	}
	why, first := "", group.first[of.Number]
	if field := kind.Field; field != "" && first.Fields[field] == nil {
		why = fmt.Sprintf(": data: {%s: FIELD} names the field that holds it; available: %s", field, first.FieldNames())
	}
	mistakes.Add(of.Head.Place, "task %q: head %q has no %s in its training data, %s%s", of.Task.Name, of.Head.Name,
		cmp.Or(kind.Field, "label"), TrainingFile(of.Task.Data).Name, why)
}

// knownLabels returns the labels of a run's head, and rejects names that are not among them.
func knownLabels(of Head, known *corpus.Labels, names []string, mistakes *plugin.Mistakes) *corpus.Labels {
	what := fmt.Sprintf("task %q: head %q", of.Task.Name, of.Head.Name)
	if known == nil {
		mistakes.Add(of.Head.Place, "%s not found in the run", what)
		return corpus.NewLabels(names)
	}
	var unexpected []string
	for _, name := range names {
		if !slices.Contains(known.Names(), name) {
			unexpected = append(unexpected, strconv.Quote(name))
		}
	}
	if len(unexpected) > 0 {
		mistakes.Add(of.Head.Place, "%s: the data has changed since the checkpoint: unexpected %s %s in the training "+
			"data; the run has %s, and a training that goes on cannot add labels: undo the change, or train a new run "+
			"with model.base_model: RUN, which adds them", what, plugin.Agree(len(unexpected), "label", "labels"),
			list(unexpected), list(known.Names()))
	}
	return known
}

// checkNoLabels rejects labels of a head whose output kind has none.
func (d *Dataset) checkNoLabels(task config.Task, head config.Head, kind *outputs.Kind, mistakes *plugin.Mistakes) {
	what := fmt.Sprintf("task %q: the output of head %q is %s, which has no labels", task.Name, head.Name, kind)
	switch {
	case head.Labels != nil || task.Labels != nil || len(task.LabelMaps[head.Name]) > 0:
		mistakes.Add(head.Place, "%s; leave labels and label_maps out", what)
	case head.NumLabels > 1 && d.Experiment.JengaNLP:
		d.Warnings = append(d.Warnings, plugin.Warn(head.Place, "%s: num_labels %d has no effect", what,
			head.NumLabels))
	case head.NumLabels > 1:
		mistakes.Add(head.Place, "%s; leave num_labels out", what)
	}
}

// checkLabels compares the labels in the training data with those in the experiment, and returns the head's labels.
func (d *Dataset) checkLabels(task config.Task, head config.Head, found []string, mistakes *plugin.Mistakes) []string {
	named, mapped := head.Labels, task.LabelMaps[head.Name]
	if named == nil && len(mapped) == 0 {
		named = task.Labels
	}
	switch {
	case len(found) == 0: // reported already
	case named != nil:
		remedy := ""
		if !slices.ContainsFunc(found, isNotWhole) {
			remedy = fmt.Sprintf("; if the data has their numbers, want label_maps: {%s: {%s: %s, …}} instead",
				head.Name, found[0], named[0])
		}
		for _, name := range found {
			if !slices.Contains(named, name) {
				mistakes.Add(head.Place, "task %q: head %q: unexpected label %q in the training data; labels has %s%s",
					task.Name, head.Name, name, list(named), remedy)
			}
		}
		found = named
	case len(mapped) > 0:
		// in the order of their numbers, then labels of the data without a number
		var names []string
		for _, n := range slices.Sorted(maps.Keys(mapped)) {
			names = append(names, mapped[n])
			if !slices.Contains(found, mapped[n]) {
				d.warn(task, "head %q: label_maps: no training example has label %d, %q", head.Name, n, mapped[n])
			}
		}
		found = append(names, slices.DeleteFunc(found,
			func(name string) bool { return slices.Contains(names, name) })...)
	}
	if n := head.NumLabels; n != 0 && n != len(found) {
		what := fmt.Sprintf("task %q: head %q: num_labels is %d, the data has %d labels: %s", task.Name, head.Name, n,
			len(found), list(found))
		if d.Experiment.JengaNLP {
			d.Warnings = append(d.Warnings, plugin.Warn(head.Place, "%s", what))
		} else {
			mistakes.Add(head.Place, "%s; leave num_labels out to have as many as the data", what)
		}
	}
	return found
}

func isNotWhole(label string) bool {
	_, err := strconv.Atoi(label)
	return err != nil
}

func list(names []string) string {
	const most = 12
	if len(names) > most {
		return fmt.Sprintf("%s, … %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}

// compareLabels orders labels: numbers first, by value, then other labels.
func compareLabels(a, b string) int {
	number := func(label string) float64 {
		v, err := strconv.ParseFloat(label, 64)
		if err != nil || math.IsNaN(v) {
			return math.Inf(1)
		}
		return v
	}
	return cmp.Or(cmp.Compare(number(a), number(b)), strings.Compare(a, b))
}
