package config

import (
	"fmt"
	"slices"
	"strconv"
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
	made, err := part.Build(tasks.Env{Split: splitBlanks})
	return err == nil && made.Output().PerWord
}

// dataOf returns data of a task of the base run. The task that same_as names may have another name now, or be dropped:
// the data then has the files of that task.
func (d *decoding) dataOf(data *plugin.Section, names map[string]string) *plugin.Section {
	done := *data
	done.Entries = slices.Clone(data.Entries)
	for range d.baseTasks() { // same_as may name a task with same_as
		if !done.Has("same_as") {
			break
		}
		name := done.At("same_as").Text
		if now, is := names[name]; is {
			done.Put("same_as", &plugin.Section{Place: done.At("same_as").Place, Kind: plugin.Text, Text: now})
			break
		}
		done.Remove("same_as")
		files := d.baseTask(name).At("data")
		if files == nil {
			break
		}
		for _, e := range files.Entries {
			other := sameText[e.Key]
			target := slices.Contains(fieldNames(), e.Key) && !slices.Contains(textFields, e.Key)
			if !target && done.At(e.Key) == nil && (other == "" || done.At(other) == nil) {
				done.Entries = append(done.Entries, e)
			}
		}
	}
	return &done
}

// contradicts has the keys of data that a key of this experiment replaces, beside its own.
var contradicts = map[string][]string{
	"path": {Train, Dev, Test}, Train: {"path"},
	"text": {"question"}, "question": {"text"}, "pair": {"context"}, "context": {"pair"},
}

// changedData returns data of a task of the base run with the keys that this experiment gives, in place of the run's.
// Where these are not columns alone, the data has files of its own: same_as of the run no longer holds.
func (d *decoding) changedData(data, given *plugin.Section, names map[string]string) *plugin.Section {
	switch {
	case given.Kind == plugin.Null:
		return d.dataOf(data, names)
	case given.Kind != plugin.Mapping:
		return given // data reports it
	}
	isColumn := func(e plugin.Entry) bool { return slices.Contains(fieldNames(), e.Key) }
	if slices.ContainsFunc(given.Entries, func(e plugin.Entry) bool { return !isColumn(e) }) {
		names = nil
	}
	done := d.dataOf(data, names)
	done.Place = given.Place
	if given.Has("same_as") { // the texts are those of another task
		done.Entries = slices.DeleteFunc(done.Entries, func(e plugin.Entry) bool {
			return !isColumn(e) || slices.Contains(textFields, e.Key)
		})
	}
	for _, e := range given.Entries {
		if e.Value.Kind != plugin.Null {
			done.Remove(contradicts[e.Key]...)
		}
		if e.Key == "split" {
			e.Value = changedSplit(done.At("split"), e.Value)
		}
		done.Remove(e.Key)
		done.Entries = append(done.Entries, e)
	}

	// a part of the training file takes the place of a file of the run
	for _, part := range []string{Dev, Test} {
		if divides(given.At("split"), part) && !given.Has(part) {
			done.Remove(part)
		}
	}

	// a file of the experiment takes the place of a part of the run's training file
	if split := done.At("split"); split != nil {
		split = changedSplit(split, &plugin.Section{Place: split.Place, Kind: plugin.Mapping})
		for _, part := range []string{Dev, Test} {
			if given.Has(part) && !given.At("split").Has(part) {
				split.Remove(part)
			}
		}
		done.Put("split", split)
		if !divides(split, Dev) && !divides(split, Test) && !given.Has("split") {
			done.Remove("split")
		}
	}
	return done
}

// unsetKeys returns the keys of the data of a kept task, s, that are null, or whose value is left out where it is
// written: else the file of the run would have the base run's again.
func unsetKeys(task *Task, s *plugin.Section) []string {
	var all []string
	if !task.Keep {
		return nil
	}
	for _, e := range s.Entries {
		zero := e.Key == "limit" && e.Value.Text == "0" || e.Key == "stream" && isFalse(e.Value) ||
			e.Key == "header" && e.Value.Kind == plugin.Bool && !isFalse(e.Value)
		if e.Value.Kind == plugin.Null || zero {
			all = append(all, e.Key)
		}
	}
	if by := s.At("split").At("by"); by != nil && by.Kind == plugin.Null {
		all = append(all, "split.by")
	}
	return all
}

// isFalse reports whether a value is false, or another word for it in YAML.
func isFalse(s *plugin.Section) bool {
	return slices.Contains([]string{"false", "no", "off"}, strings.ToLower(s.Text))
}

// divides reports whether a section split takes examples for a part.
func divides(split *plugin.Section, part string) bool {
	if !split.Has(part) {
		return false
	}
	v, err := strconv.ParseFloat(split.At(part).Text, 64)
	return err != nil || v != 0
}

// changedSplit returns the section split with the keys that given has in place of its own.
func changedSplit(split, given *plugin.Section) *plugin.Section {
	if split == nil || split.Kind != plugin.Mapping || given.Kind != plugin.Mapping {
		return given
	}
	done := &plugin.Section{Place: given.Place, Kind: plugin.Mapping, Entries: slices.Clone(split.Entries)}
	for _, e := range given.Entries {
		done.Remove(e.Key)
		done.Entries = append(done.Entries, e)
	}

	// where nothing is divided, the run's keys beside have no effect
	if done.Has(Dev) && !divides(done, Dev) && !divides(done, Test) {
		for _, key := range []string{"seed", "by"} {
			if !given.Has(key) {
				done.Remove(key)
			}
		}
	}
	return done
}

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

// rehearses reports whether kept tasks are rehearsed, so that their data is read: the encoder learns, and rehearse is
// not 0.
func (d *decoding) rehearses() bool {
	if d.e.Model.Fixed() || d.e.root == nil {
		return false
	}
	s := d.e.root.At("training").At("rehearse")
	if s == nil || s.Kind >= plugin.List {
		return false
	}
	v, err := strconv.ParseFloat(s.Text, 64)
	return err == nil && v > 0
}

// keepTasks checks the options of kept tasks, and separates the tasks that are not trained.
func (d *decoding) keepTasks() {
	if !d.files {
		return
	}
	e := d.e
	at, learns := e.Place("training.rehearse"), !e.Model.Fixed()
	var kept, trained []Task
	for _, task := range e.Tasks {
		if task.Keep {
			kept = append(kept, task)
		} else {
			trained = append(trained, task)
		}
	}
	given := e.root.At("training").Has("rehearse")
	inherits := e.Model.LoRA.PerTask && !e.root.At("model").Has("lora") // from the base run
	switch {
	case d.base == nil && e.Model.BaseModel.given() && d.wrongBase() == "": // base_model has a mistake of its own
	case len(kept) == 0 && given && e.Training.Rehearse > 0 && d.base == nil:
		d.mistakes.Add(at, "training: rehearse: there is no base run whose tasks could be rehearsed; want "+
			"model.base_model: RUN, and model.keep_tasks")
	case len(kept) == 0 && given && e.Training.Rehearse > 0:
		d.mistakes.Add(at, "training: rehearse: no task of the run is kept; want model.keep_tasks: all, or a list of "+
			"its tasks")
	case len(kept) > 0 && given && e.Training.Rehearse > 0 && inherits:
		d.mistakes.Add(at, "training: rehearse: no effect: this experiment has lora: {per_task: true} of the run %s, "+
			"beside which the kept tasks stay as they are; leave it out", e.Model.BaseRun.Folder)
	case len(kept) > 0 && given && e.Training.Rehearse > 0 && !learns:
		d.mistakes.Add(at, "training: rehearse: no effect: with freeze: all, or lora: {per_task: true}, the kept "+
			"tasks stay as they are; leave it out")
	case len(kept) > 0 && !given && learns:
		d.mistakes.Add(kept[0].Place, "task %q is kept, but the encoder learns, so that it gets worse; want "+
			"training.rehearse: 0.2, which trains it too, or 0, or model.freeze: all, or model.lora: {per_task: true}",
			kept[0].Name)
	}
	if d.baseLength > 0 && len(kept) > 0 && e.Tokenizer.MaxLength != d.baseLength {
		d.mistakes.Add(e.Place("tokenizer.max_length"), "tokenizer: max_length: the kept tasks read texts of %d "+
			"tokens; leave it out", d.baseLength)
	}
	if len(kept) > 0 && len(trained) == 0 {
		d.mistakes.Add(kept[0].Place, "all tasks are kept, so that nothing is trained; want a task of this experiment")
	}
	d.warnSplit(kept)
	if !d.rehearses() {
		e.Tasks, e.Kept = trained, kept
		e.untie()
	}
}

// untie gives tasks files of their own where same_as names a task that is trained, and they are not, or the other way
// round.
func (e *Experiment) untie() {
	for _, list := range [][]Task{e.Tasks, e.Kept} {
		names, first := map[string]bool{}, map[string]string{} // same_as → the first task that names it
		for _, task := range list {
			names[task.Name] = true
		}
		for i := range list {
			same := &list[i].Data.SameAs
			switch {
			case *same == "" || names[*same]:
			case first[*same] != "":
				*same = first[*same]
			default:
				first[*same], *same = list[i].Name, ""
			}
		}
	}
}

// rehearsable reports whether there are kept tasks beside an encoder that learns.
func (e *Experiment) rehearsable() bool {
	keeps := func(t Task) bool { return t.Keep }
	return !e.Model.Fixed() && (slices.ContainsFunc(e.Tasks, keeps) || len(e.Kept) > 0)
}

// Untrained returns the names of the tasks that are kept and not rehearsed.
func (e *Experiment) Untrained() []string {
	var names []string
	rehearsed := !e.Model.Fixed() && e.Training.Rehearse > 0
	for _, task := range slices.Concat(e.Tasks, e.Kept) {
		if task.Keep && !rehearsed {
			names = append(names, task.Name)
		}
	}
	return names
}
