package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/plugin"
)

func (d *decoding) baseNames() []string { return d.base.taskNames() }

func (e *Experiment) taskNames() []string {
	var all []string
	for _, task := range e.Tasks {
		all = append(all, task.Name)
	}
	return all
}

func (d *decoding) baseTask(name string) *Task {
	i := slices.Index(d.baseNames(), name)
	if i < 0 {
		return nil
	}
	return &d.base.Tasks[i]
}

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

	d.names = map[string]string{}
	for _, item := range s.Items {
		if item.Has("name") {
			d.names[sourceOf(item)] = item.At("name").Text
		}
	}
	all := &plugin.Section{Place: s.Place, Kind: plugin.List, Items: slices.Clone(s.Items)}
	for _, name := range d.keptNames(keep, d.names) {
		d.names[name] = name
		item := &plugin.Section{Place: keep.Place, Kind: plugin.Mapping}
		item.Put("name", &plugin.Section{Place: keep.Place, Kind: plugin.Text, Text: name})
		item.Put("keep", &plugin.Section{Place: keep.Place, Kind: plugin.Bool, Text: "true"})
		all.Items = append(all.Items, item)
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

// taskOrKept reads an entry of tasks. The data of a kept task that is not rehearsed need not be there.
func (d *decoding) taskOrKept(s *plugin.Section, number int) Task {
	if !d.files {
		return d.task(s, number)
	}

	// its task of the base run
	source, owner := sourceOf(s), fmt.Sprintf("task %d", number)
	known := d.base != nil && slices.Contains(d.baseNames(), source)
	if s.Has("name") {
		owner = fmt.Sprintf("task %q", s.At("name").Text)
	}
	if continues := s.Has("from") || isKept(s); continues && !known {
		if d.base != nil {
			d.mistakes.Add(s.Place, "%s: %s", owner, plugin.Unknown("task of the base run", source, d.baseNames()))
		} else if wrong := d.wrongBase(); wrong != "" {
			d.mistakes.Add(s.Place, "%s: from and keep are for tasks of a run: %s, or leave them out", owner, wrong)
		}
		return Task{Place: s.Place}
	}

	// its keys
	if isKept(s) {
		d.rejectNulls(owner, s)
		d.files, d.kept, d.was = d.e.rehearses(), s, d.baseTask(source)
	}
	task := d.task(s, number)
	d.files, d.kept, d.was = true, nil, nil
	if known {
		task.From = source
	}
	for _, other := range d.e.Tasks {
		if task.From != "" && other.From == task.From {
			d.mistakes.Add(s.Place, "%s: task %q continues the run's task %q too; one of them needs another name, and "+
				"a head of its own", owner, other.Name, task.From)
		}
	}
	return task
}

// rejectNulls rejects keys without a value in a kept task: they could mean the default, or the run's value.
func (d *decoding) rejectNulls(owner string, s *plugin.Section) {
	for _, e := range s.Entries {
		where := owner + ": " + e.Key
		if e.Value.Kind == plugin.Null {
			d.mistakes.Add(e.Value.Place, "%s: want a value, or leave the key out for that of the run, have nothing",
				where)
		}
		d.rejectNulls(where, e.Value)
	}
}

// warnSplit warns of kept tasks whose texts the base run reads word by word, for a task that is not kept beside them:
// they are read as they are now, and may have other tokens.
func (d *decoding) warnSplit(kept []Task) {
	if d.base == nil {
		return
	}
	still := map[string]Task{} // by the task of the run
	for _, task := range kept {
		still[task.From] = task
	}
	for _, group := range d.base.Groups() {
		var tagged []string // those with an output for each word
		for _, number := range group {
			if task := d.base.Tasks[number]; task.kind != nil && task.kind.PerWord {
				tagged = append(tagged, task.Name)
			}
		}
		isKept := func(name string) bool { _, is := still[name]; return is }
		if len(tagged) == 0 || slices.ContainsFunc(tagged, isKept) {
			continue
		}
		for _, number := range group {
			if task, is := still[d.base.Tasks[number].Name]; is {
				d.warn(task.Place, "task %q is kept without %q of the run, for which it reads texts word by word: a "+
					"text that it reads as it is may have other tokens; keep both for the same predictions", task.Name,
					tagged[0])
			}
		}
	}
}

func (d *decoding) inheritPart(part *plugin.Section) {
	if d.was == nil || part.Has("type") && part.At("type").Text != d.was.Part.Type {
		return
	}
	for _, e := range d.was.Part.Section().Entries {
		if part.At(e.Key) == nil {
			part.Put(e.Key, e.Value)
		}
	}
}

func (d *decoding) inheritLabels(task *Task, s *plugin.Section) {
	if d.was == nil {
		return
	}
	if s.At("labels") == nil {
		task.Labels = d.was.Labels
	}
	if s.At("label_maps") == nil {
		task.LabelMaps = d.was.LabelMaps
	}
}

// inheritLong reads long texts of a kept task, the section s, as the run does. How they are read belongs to the data,
// which may be of another task.
func (d *decoding) inheritLong(task *Task, s *plugin.Section) {
	if d.was == nil || s.At("long") != nil || task.Data.SameAs != "" {
		return
	}
	task.Windowing.Windows = d.was.Windowing.Windows
	if task.Windowing.Windows && s.At("stride") == nil {
		task.Windowing.Stride = d.was.Windowing.Stride
	}
}

// inheritData gives a kept task's data, the section s, what the run's has and s lacks and does not contradict.
func (d *decoding) inheritData(data *Data, s *plugin.Section) {
	if d.was == nil || s.Has("same_as") { // the texts are those of another task
		return
	}
	was := d.was.Data
	was.SameAs, was.Split = "", Split{} // see inheritSplit
	if !slices.ContainsFunc(s.Entries, func(e plugin.Entry) bool { return !slices.Contains(fieldNames(), e.Key) }) {
		was.SameAs = d.sharedText() // else the data has files of its own
	}
	if s.Has(Path) {
		was.Train, was.Dev, was.Test = File{}, File{}, File{}
	}
	if s.Has(Train) {
		was.Path = File{}
	}

	// a part of the training file takes the place of a file of the run
	if s.At("split").Has(Dev) && data.Split.Dev != 0 {
		was.Dev = File{}
	}
	if s.At("split").Has(Test) && data.Split.Test != 0 {
		was.Test = File{}
	}
	s.Inherit(data, was)
}

// sharedText returns the name of the task whose texts the kept task reads in the run and in this experiment. It is ""
// if there is none, also because that task is dropped: the data then has its files.
func (d *decoding) sharedText() string {
	for name := d.was.Data.SameAs; name != ""; name = d.baseTask(name).Data.SameAs {
		if now, is := d.names[name]; is {
			return now
		}
	}
	return ""
}

// inheritColumns returns the columns of a kept task's data, the section s, and those of the run's that s does not
// replace.
func (d *decoding) inheritColumns(columns map[string]string, task *Task, s *plugin.Section) map[string]string {
	if d.was == nil || len(d.was.Data.Format.Fields) == 0 {
		return columns
	}
	all, was := map[string]string{}, d.was.Data.Format.Fields
	for name, column := range was {
		key, head, ofHead := strings.Cut(name, ".")
		if _, both := was[key]; ofHead && both {
			key += "s" // as it is written
		}
		isOther := s.Has("same_as") && slices.Contains(corpus.TextFields, key)
		isGone := ofHead && !slices.Contains(task.HeadNames(), head)
		if s.At(key) == nil && !s.Has(sameText[key]) && !isOther && !isGone {
			all[name] = column
		}
	}
	maps.Copy(all, columns)
	return all
}

// inheritSplit gives the split s of a kept task's data what the run's has and s lacks. A file takes the place of a part
// of the training file.
func (d *decoding) inheritSplit(data *Data, s *plugin.Section) {
	if d.was == nil || s != nil && s.Kind != plugin.Mapping {
		return
	}
	was := d.was.Data.Split
	if was == (Split{}) {
		if d.was.Data.Dev.given() {
			return // the run's file does not say that nothing is divided
		}
		was.Seed = d.e.Seed
	}
	if data.Dev.given() {
		was.Dev = 0
	}
	if data.Test.given() {
		was.Test = 0
	}
	s.Inherit(&data.Split, was)
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

// rehearses reports whether kept tasks are rehearsed, so that their data is read.
func (e *Experiment) rehearses() bool { return !e.Model.Fixed() && e.Training.Rehearse > 0 }

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
	if d.base != nil && len(kept) > 0 && e.Tokenizer.MaxLength != d.base.Tokenizer.MaxLength {
		d.mistakes.Add(e.Place("tokenizer.max_length"), "tokenizer: max_length: the kept tasks read texts of %d "+
			"tokens; leave it out", d.base.Tokenizer.MaxLength)
	}
	if len(kept) > 0 && len(trained) == 0 {
		d.mistakes.Add(kept[0].Place, "all tasks are kept, so that nothing is trained; want a task of this experiment")
	}
	d.warnSplit(kept)
	if !e.rehearses() {
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
	for _, task := range slices.Concat(e.Tasks, e.Kept) {
		if task.Keep && !e.rehearses() {
			names = append(names, task.Name)
		}
	}
	return names
}
