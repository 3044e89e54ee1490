package config

import (
	"fmt"
	"strings"

	"github.com/jenga-nlp/jenga/plugin"
)

// MovedHint returns what names the new place of a file of a kept task that was moved, if the experiment has it from the
// base run; else "".
func (e *Experiment) MovedHint(task Task, file File) string {
	key := Path
	switch file.Place {
	case task.Data.Train.Place:
		key = Train
	case task.Data.Dev.Place:
		key = Dev
	case task.Data.Test.Place:
		key = Test
	}
	return e.movedHint(task.Name, task.Place, file.Place, key)
}

// movedHint is MovedHint of the task at a place and the value of a key of its data at another.
func (e *Experiment) movedHint(name string, task, file plugin.Place, key string) string {
	if e.Model.BaseRun == nil || file.File != e.Model.BaseRun.File {
		return ""
	}
	keep := e.root.At("model").At("keep_tasks")
	if keep == nil || task != keep.Place { // it has an entry of its own
		return fmt.Sprintf("if it was moved, name its place in the entry of the task: data: {%s: FILE}", key)
	}
	text := fmt.Sprintf("if it was moved, name its place by an entry of tasks: - {name: %q, keep: true, data: {%s: "+
		"FILE}}", name, key)
	if keep.Kind == plugin.List {
		text += ", in place of the task's name in model.keep_tasks"
	}
	return text
}

// moved returns the end of an error of a data file that is not found, by the section that names it and what that is.
func (d *decoding) moved(file *plugin.Section, what string) string {
	key, isData := strings.CutPrefix(what, "data: ")
	if d.kept == nil || !isData {
		return ""
	}
	if hint := d.e.movedHint(d.kept.At("name").Text, d.kept.Place, file.Place, key); hint != "" {
		return "; " + hint
	}
	return ""
}
