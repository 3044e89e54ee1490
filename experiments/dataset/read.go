package dataset

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/plugin"
)

// Read reads the examples of a split for all groups that have a file for it, or only for the group of task if task is
// not "". data maps tasks to files, paths or patterns, that are read in place of the experiment's, for all tasks of the
// group; a file for a group that is not read is an error. Warnings about the examples are added to Warnings.
func (d *Dataset) Read(split, task string, data map[string][]string) error {
	if err := d.checkData(task, data); err != nil {
		return err
	}
	var mistakes plugin.Mistakes
	in := reader{data: d, e: d.Experiment, types: d.Tasks, trained: true, mistakes: &mistakes}
	found, before := false, len(d.Warnings)
	for g := range d.Groups {
		group := &d.Groups[g]
		if !d.reads(g, task) {
			continue
		}
		file, err := d.named(group, data)
		if group.inPlace == nil {
			group.inPlace = map[string]string{}
		}
		group.inPlace[split] = file.Name
		switch {
		case err != nil:
			mistakes.Append(err)
		case file.Name != "":
			group.Examples[split] = in.otherFile(group, file)
		default:
			in.read(group, split)
		}
		if !mistakes.Empty() {
			continue // the mistakes of the other groups are reported too
		}
		d.number(group, group.Examples[split])
		d.Warnings = append(d.Warnings, d.unknownLabels(group, split)...)
		d.Warnings = append(d.Warnings, d.CheckTargets(group, split, false)...)
		d.encode(group, split)
		d.Warnings = append(d.Warnings, d.checkTexts(group, split)...)
		found = found || group.Examples[split] != nil
	}
	if mistakes.Empty() && !found {
		return d.noData(split, task)
	}
	d.Warnings = append(d.Warnings, in.warnings...)
	slices.Sort(d.Warnings[before:])
	return mistakes.Err()
}

// noData returns the error of a split that no task, or not the one that is named, has data for.
func (d *Dataset) noData(split, name string) error {
	err := fmt.Errorf("%s has no %s data", d.Experiment.Path, split)
	at := max(0, slices.IndexFunc(d.Experiment.Tasks, func(t config.Task) bool { return t.Name == name }))
	if d.Missing == nil {
		return err
	}
	if hint := d.Missing(d.Experiment.Tasks[at], config.File{}); hint != "" {
		err = fmt.Errorf("%w; %s", err, hint)
	}
	return err
}

// reads reports whether Read reads group g for task.
func (d *Dataset) reads(g int, task string) bool {
	if task != "" {
		return d.has(&d.Groups[g], task)
	}
	return d.Skipped == nil || !d.Skipped[g]
}

// checkData rejects files for tasks of groups that are not read.
func (d *Dataset) checkData(task string, data map[string][]string) error {
	for g := range d.Groups {
		if d.reads(g, task) {
			continue
		}
		for _, number := range d.Groups[g].Tasks {
			name := d.Experiment.Tasks[number].Name
			switch {
			case data[name] == nil:
			case task == "":
				return fmt.Errorf("--data %s=%s: no head of its texts is read; leave it out", name,
					strings.Join(data[name], ", "))
			default:
				return fmt.Errorf("--data %s=%s: task %q, which --task selects, reads other texts; leave one of "+
					"them out", name, strings.Join(data[name], ", "), task)
			}
		}
	}
	return nil
}

// named returns the files in data for the tasks of a group; without a Name for none. They read the same texts, so
// different files are an error.
func (d *Dataset) named(group *Group, data map[string][]string) (config.File, error) {
	var names []string
	of := ""
	for _, number := range group.Tasks {
		name := d.Experiment.Tasks[number].Name
		switch own := data[name]; {
		case own == nil || slices.Equal(own, names):
		case names == nil:
			names, of = own, name
		default:
			return config.File{}, fmt.Errorf("tasks %q and %q read the same texts, but --data names %s and %s; want "+
				"one file for both", of, name, strings.Join(names, ", "), strings.Join(own, ", "))
		}
	}
	if names == nil {
		return config.File{}, nil
	}
	file, err := config.FilesNamed(names)
	if err != nil {
		return file, fmt.Errorf("--data %s: %w", of, err)
	}
	return file, nil
}

// has reports whether a task belongs to a group.
func (d *Dataset) has(group *Group, task string) bool {
	for _, number := range group.Tasks {
		if d.Experiment.Tasks[number].Name == task {
			return true
		}
	}
	return false
}
