package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// baseTasks returns the tasks of the base run.
func (d *decoding) baseTasks() []*plugin.Section {
	if s := d.base.At("tasks"); s != nil {
		return slices.DeleteFunc(slices.Clone(s.Items), func(item *plugin.Section) bool { return !item.Has("name") })
	}
	return nil
}

// baseNames returns the names of the base run's tasks.
func (d *decoding) baseNames() []string {
	var all []string
	for _, item := range d.baseTasks() {
		all = append(all, item.At("name").Text)
	}
	return all
}

// withKept returns the list of tasks, s, in which each task of the base run that is kept has its keys.
func (d *decoding) withKept(s, root *plugin.Section) *plugin.Section {
	keep := root.At("model").At("keep_tasks")
	if keep != nil && keep.Kind == plugin.Null {
		keep = nil
	}
	if d.base == nil {
		if keep != nil && d.wrongBase() != "" {
			d.mistakes.Add(keep.Place, "model: keep_tasks: %s that has tasks to keep", d.wrongBase())
		}
		return s
	}

	// names of the run's tasks in this experiment
	names := map[string]string{}
	for _, item := range s.Items {
		if item.Has("name") {
			names[sourceOf(item)] = item.At("name").Text
		}
	}
	kept := d.keptNames(keep, names)
	for _, name := range kept {
		names[name] = name
	}

	// entries
	all := &plugin.Section{Place: s.Place, Kind: plugin.List}
	for _, item := range s.Items {
		if isKept(item) {
			item = d.completed(item, names)
		}
		all.Items = append(all.Items, item)
	}
	for _, name := range kept {
		item := &plugin.Section{Place: keep.Place, Kind: plugin.Mapping}
		item.Put("name", &plugin.Section{Place: keep.Place, Kind: plugin.Text, Text: name})
		item.Put("keep", &plugin.Section{Place: keep.Place, Kind: plugin.Bool, Text: "true"})
		all.Items = append(all.Items, d.completed(item, names))
	}
	root.Put("tasks", all)
	return all
}

// wrongBase describes a base_model that is no run, "" for one with a mistake of its own.
func (d *decoding) wrongBase() string {
	switch {
	case !d.files || d.base != nil:
		return ""
	case runfolder.Exists(d.e.Model.BaseModel.Name):
		return "base_model is no run; want a run folder"
	case !d.e.Model.BaseModel.given():
		return "there is no base_model; want a run folder"
	}
	return ""
}

// sourceOf returns the name of the task that an entry of tasks continues, if the base run has it.
func sourceOf(item *plugin.Section) string {
	switch {
	case item.Has("from"):
		return item.At("from").Text
	case item.Has("name"):
		return item.At("name").Text
	}
	return ""
}

// isKept reports whether an entry of tasks has keep: true, or another word for it in YAML.
func isKept(item *plugin.Section) bool {
	return item.Has("keep") && slices.Contains([]string{"true", "yes", "on"}, strings.ToLower(item.At("keep").Text))
}

// keptNames returns the names in keep_tasks; for all, those of the base run's tasks that are not used otherwise.
func (d *decoding) keptNames(keep *plugin.Section, used map[string]string) []string {
	var all []string
	switch {
	case keep == nil:
	case keep.Kind == plugin.Text && keep.Text == "all":
		for _, name := range d.baseNames() {
			if used[name] == "" {
				all = append(all, name)
			}
		}
	case keep.Kind == plugin.List:
		for _, item := range keep.Items {
			switch name := item.Text; {
			case !slices.Contains(d.baseNames(), name):
				d.mistakes.Add(item.Place, "model: keep_tasks: %s", plugin.Unknown("task of the base run", name,
					d.baseNames()))
			case used[name] == name:
				d.mistakes.Add(item.Place, "model: keep_tasks: task %q is in tasks too; leave out one of them", name)
			case used[name] != "":
				d.mistakes.Add(item.Place, "model: keep_tasks: task %q of the run is continued by %q in tasks (from); "+
					"leave one of them out, or from, for a head of its own", name, used[name])
			case slices.Contains(all, name):
				d.mistakes.Add(item.Place, "model: keep_tasks: duplicate %q", name)
			default:
				all = append(all, name)
			}
		}
	default:
		d.mistakes.Add(keep.Place, "model: keep_tasks: want all, or a list of tasks of the run, have %s", keep)
	}
	return all
}

// completed returns the entry of a kept task with those keys of the base run's task that it lacks, also in its data.
// names are those that tasks of the base run have now.
func (d *decoding) completed(item *plugin.Section, names map[string]string) *plugin.Section {
	own := d.baseTask(sourceOf(item))
	if own == nil {
		return item // taskOrKept reports it
	}
	done := *item
	done.Entries = slices.Clone(item.Entries)
	for _, e := range own.Entries {
		switch given := done.At(e.Key); {
		case e.Key == "data" && given != nil:
			done.Put("data", d.changedData(e.Value, given, names))
		case e.Key == "data":
			e.Value = d.dataOf(e.Value, names)
			done.Entries = append(done.Entries, e)
		case given == nil && e.Key != "from" && !slices.Contains(longKeys, e.Key):
			done.Entries = append(done.Entries, e)
		}
	}

	// how long texts are read belongs to the data, which may be of another task
	if done.At("long") == nil && !done.At("data").Has("same_as") {
		texts := d.baseTask(d.root(own))
		for _, key := range longKeys {
			if value := texts.At(key); value != nil && done.At(key) == nil {
				done.Put(key, value)
			}
		}
	}
	return &done
}

// longKeys are the keys of a task for long texts.
var longKeys = []string{"long", "stride"}

// baseTask returns a task of the base run by its name, nil if there is none.
func (d *decoding) baseTask(name string) *plugin.Section {
	for _, item := range d.baseTasks() {
		if item.At("name").Text == name {
			return item
		}
	}
	return nil
}

// taskOrKept reads an entry of tasks. The data of a kept task that is not rehearsed need not be there.
func (d *decoding) taskOrKept(s *plugin.Section, number int) Task {
	if !d.files {
		return d.task(s, number)
	}

	// its task of the base run
	source, owner := sourceOf(s), fmt.Sprintf("task %d", number)
	known := d.base != nil && slices.Contains(d.baseNames(), source)
	if continues := s.Has("from") || isKept(s); continues && !known {
		if s.Has("name") {
			owner = fmt.Sprintf("task %q", s.At("name").Text)
		}
		if d.base != nil {
			d.mistakes.Add(s.Place, "%s: %s", owner, plugin.Unknown("task of the base run", source, d.baseNames()))
		} else if wrong := d.wrongBase(); wrong != "" {
			d.mistakes.Add(s.Place, "%s: from and keep are for tasks of a run: %s, or leave them out", owner, wrong)
		}
		return Task{Place: s.Place}
	}

	// its keys
	if isKept(s) {
		d.files, d.kept = d.rehearses(), s
	}
	task := d.task(s, number)
	d.files, d.kept = true, nil
	if known {
		task.From = source
	}
	owner = fmt.Sprintf("task %q", task.Name)
	for _, other := range d.e.Tasks {
		if task.From != "" && other.From == task.From {
			d.mistakes.Add(s.Place, "%s: task %q continues the run's task %q too; one of them needs another name, and "+
				"a head of its own", owner, other.Name, task.From)
		}
	}
	return task
}

// warnSplit warns of kept tasks whose texts the base run reads word by word, for a task that is not kept beside them:
// they are read as they are now, and may have other tokens.
func (d *decoding) warnSplit(kept []Task) {
	if d.base == nil {
		return
	}
	tagged := map[string]string{} // the first task of a group → its first task with an output for each word
	for _, item := range d.baseTasks() {
		root := d.root(item)
		if perWord(item) && tagged[root] == "" {
			tagged[root] = item.At("name").Text
		}
	}
	still := map[string]bool{} // groups that are read word by word
	for _, task := range kept {
		if item := d.baseTask(task.From); item != nil && perWord(item) {
			still[d.root(item)] = true
		}
	}
	for _, task := range kept {
		item := d.baseTask(task.From)
		if item == nil {
			continue
		}
		if root := d.root(item); tagged[root] != "" && !still[root] {
			d.warn(task.Place, "task %q is kept without %q of the run, for which it reads texts word by word: a text "+
				"that it reads as it is may have other tokens; keep both for the same predictions", task.Name,
				tagged[root])
		}
	}
}

// root returns the name of the task of the base run whose texts one reads.
func (d *decoding) root(item *plugin.Section) string {
	for range d.baseTasks() {
		same := item.At("data").At("same_as")
		next := (*plugin.Section)(nil)
		if same != nil {
			next = d.baseTask(same.Text)
		}
		if next == nil {
			break
		}
		item = next
	}
	return item.At("name").Text
}

// perWord reports whether a task has an output for each word.
func perWord(item *plugin.Section) bool {
	kind := item.At("type")
	if kind == nil {
		return false
	}
	part, err := tasks.Registry().FromString(kind.Text, "")
	if err != nil {
		return false
	}
	made := output(Task{Part: part})
	return made != nil && made.PerWord
}
