package config

import (
	"cmp"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// Task is one entry of tasks.
type Task struct {
	Name        string
	Place       plugin.Place
	Part        plugin.Choice[tasks.Env, tasks.Task]
	Data        Data
	Heads       []Head
	Labels      []string                  // for its heads without labels of their own; nil: those of the data
	LabelMaps   map[string]map[int]string // head → label number in the data → label
	Windowing   corpus.Windowing          // how long texts are truncated or split into windows
	HidesTokens bool                      // the task masks tokens of its texts
	From        string                    // task of the base run whose heads it takes over; "": none
	Keep        bool                      // it is a task of the base run, and not of this experiment
	Adapter     string                    // of the encoder, if a checkpoint has one for the task; see encoders.Env
	Teacher     File                      // run that has the task, of which it learns; no Name: none of its own

	kind    *outputs.Kind  // of its heads; nil after a mistake of the part
	metrics []tasks.Metric // of a head's evaluation, without values

	mistaken bool // its section has mistakes, apart from files that do not exist
}

// HeadNames returns the names of the task's heads.
func (t Task) HeadNames() []string {
	all := make([]string, len(t.Heads))
	for i, h := range t.Heads {
		all[i] = h.Name
	}
	return all
}

// Head is one entry of a task's `heads`; the keys of its `type` stand beside its own.
type Head struct {
	// name of the head; required beside other heads
	Name   string  `yaml:"name" takes:"a name" default:"(the task's)"`
	Weight float64 `yaml:"weight" range:"[0,)" doc:"factor of its loss in the sum of all losses"`
	// expected number of labels in the data; an error if it differs
	NumLabels int `yaml:"num_labels,omitempty" range:"[1,)" default:""`
	// its labels, in the order of their numbers; none: the task's
	Labels []string `yaml:"labels,omitempty" takes:"a list of labels"`

	Place plugin.Place                         `yaml:"-"`
	Part  plugin.Choice[heads.Env, heads.Head] `yaml:"-"`
}

func (h Head) learns() bool { return !heads.TraitsOf(h.Part.Options).Fitted }

// taskOptions are the keys of an entry of `tasks`; those of its `type` stand beside them.
type taskOptions struct {
	Name string `yaml:"name" takes:"a name" doc:"1 to 64 letters, digits, _, - or spaces within; required"`
	// task of the run that base_model names, whose heads this one takes over and trains on; default: that of its name,
	// if there is one. With keep: true another name for a task that is kept
	From string `yaml:"from,omitempty" takes:"a task's name" default:"(its name)"`
	// whether it is a task of the run that base_model names as model.keep_tasks has them: not trained; keys that are
	// left out, of data too, are those of the run
	Keep bool `yaml:"keep,omitempty"`
	// run that has the task, its teacher: its probabilities are what the task's heads learn on texts of other tasks,
	// and beside gold labels by training.teacher_weight (docs/multi-task.md). Encoder and tokenizer may be others
	Teacher *plugin.Section `yaml:"teacher,omitempty" takes:"a path"`
	// for files of Jenga-NLP: the same as data: {path: …}
	DataPath *plugin.Section `yaml:"data_path,omitempty" listed:"no" takes:"a path"`
	// files and columns of its examples: the section data; required
	Data *plugin.Section `yaml:"data" takes:"{KEY: …}"`

	// texts of more than max_length tokens are truncated, or divided into windows whose predictions are merged: the
	// mean of the probabilities of labels, of numbers and of distances; for a word the logits of the window where it is
	// furthest from the ends, of which crf finds the best tags of the whole text; the best answer to a question
	// (docs/formulas.md). Default: windows for question_answering, else truncate
	Long string `yaml:"long,omitempty" choice:"truncate|windows" default:"(by type)"`
	// tokens that two windows have in common, at most half of a window. Default: 64, or half of a window if that is
	// less
	Stride int `yaml:"stride" range:"[0,)" default:"(64 or less)"`
	// for its heads without labels of their own, in the order of their numbers; none: those of the training data
	Labels []string `yaml:"labels,omitempty" takes:"a list of labels"`

	// names of labels that are numbers in the data, from 0 on
	LabelMaps map[string]map[int]string `yaml:"label_maps,omitempty" takes:"{HEAD: {NUMBER: LABEL}}"`

	// its heads, mappings with the keys of the section head; none: one, with the task's name and the default type for
	// its outputs
	Heads *plugin.Section `yaml:"heads" takes:"a list of heads" default:"(one head)"`
}

var taskDefaults = taskOptions{Long: "truncate", Stride: 64}

var headDefaults = Head{Weight: 1}

func (d *decoding) tasks(s *plugin.Section) {
	if s.Kind != plugin.List || len(s.Items) == 0 {
		d.mistakes.Add(s.Place, "tasks: want a list of at least one task, have %s", s)
		return
	}
	taken := map[string]plugin.Place{}
	for i, item := range s.Items {
		if item.Kind != plugin.Mapping {
			d.mistakes.Add(item.Place, "task %d: want a mapping, have %s", i+1, item)
			continue
		}
		before := d.mistakes.Len() - d.absent
		task := d.taskOrKept(item, i+1)
		d.unique("task", task.Name, item, taken)
		task.mistaken = d.mistakes.Len()-d.absent > before
		d.e.Tasks = append(d.e.Tasks, task)
	}
	d.resolveSameAs()
}

// unique rejects a name that another of its kind has, ignoring case and whether accents are letters' own: names become
// file names.
func (d *decoding) unique(kind, name string, s *plugin.Section, taken map[string]plugin.Place) {
	if name == "" {
		return
	}
	key := corpus.FoldName(name)
	if first, duplicate := taken[key]; duplicate {
		d.mistakes.Add(s.At("name").Place, "%s %q: duplicate name, first in line %d; names must differ in more than "+
			"case and the encoding of accents", kind, name, first.Line)
		return
	}
	taken[key] = s.Place
}

func (d *decoding) task(s *plugin.Section, number int) Task {
	t := taskDefaults
	t.Stride = min(t.Stride, corpus.MaxStride(d.e.Tokenizer.MaxLength))
	owner := fmt.Sprintf("task %d", number)
	if name := s.At("name"); s.Has("name") {
		d.checkName(owner+": name", name)
		owner = fmt.Sprintf("task %q", name.Text)
	} else {
		d.mistakes.Add(s.Place, "%s without a name", owner)
	}
	s.Decode(owner, &t, &d.mistakes, keys(s)...) // the part rejects unknown keys

	task := Task{Name: t.Name, Place: s.Place, Labels: t.Labels, LabelMaps: t.LabelMaps, From: t.From, Keep: t.Keep}
	d.inheritLabels(&task, s)
	part := *s
	part.Entries = slices.Clone(s.Entries)
	part.Remove("data_path") // not one of the keys that errors list
	d.inheritPart(&part)
	task.Part = tasks.Registry().Choose(&part, "", plugin.KeysOf(taskDefaults), &d.mistakes)
	d.check(&task)
	kind := task.kind
	if d.was != nil && s.At("heads") == nil {
		task.Heads = slices.Clone(d.was.Heads)
	} else {
		task.Heads = d.heads(owner, t.Heads, s, t.Name, heads.Default(cmp.Or(kind, outputs.Label)))
	}
	for _, h := range task.Heads {
		if kind != nil && h.Part.Options != nil {
			if err := heads.CheckOutput(h.Part.Type, kind); err != nil {
				d.mistakes.Add(h.Place, "%s: head %q: type %s: %w", owner, h.Name, h.Part.Type, err)
			}
		}
	}
	var traits outputs.Traits
	if kind != nil {
		traits = kind.Traits
	}
	if task.HidesTokens = traits.HidesTokens; task.HidesTokens && len(task.Heads) > 1 {
		d.mistakes.Add(task.Heads[1].Place,
			"%s: unexpected second head: a task that hides tokens has one head; leave the others out", owner)
	}
	task.Data = d.data(owner, &task, t.Data, t.DataPath, s)
	d.taskTeacher(owner, &task, s)
	windows := t.Long == "windows" || !s.Has("long") && traits.WholeText
	task.Windowing = corpus.Windowing{
		MaxLength: d.e.Tokenizer.MaxLength, Windows: windows, Stride: t.Stride,
		SlideOverContext: traits.FromContext, Separate: traits.Separate,
	}
	d.inheritLong(&task, s)
	d.windowing(owner, task, s)
	d.labels(owner, &task, s)
	task.Data.Format.Numbers = task.numbered()
	return task
}

// numbered reports whether the experiment says what the integers of labels are: names that the data file has for them
// are not read then.
func (t Task) numbered() bool {
	numbers := func(labels []string) bool {
		return len(labels) > 0 && !slices.ContainsFunc(labels, func(label string) bool {
			_, err := strconv.Atoi(label)
			return err != nil
		})
	}
	return len(t.LabelMaps) > 0 || numbers(t.Labels) ||
		slices.ContainsFunc(t.Heads, func(h Head) bool { return numbers(h.Labels) })
}

func (d *decoding) windowing(owner string, task Task, s *plugin.Section) {
	for _, key := range []string{"long", "stride"} {
		if s.Has(key) && task.Data.SameAs != "" {
			d.mistakes.Add(s.At(key).Place, "%s: %s: the texts are those of data: same_as; leave it out", owner, key)
		}
	}
	switch at := s.At("stride"); {
	case !s.Has("stride"):
	case !task.Windowing.Windows:
		d.mistakes.Add(at.Place, "%s: stride has no effect without long: windows", owner)
	default:
		if err := task.Windowing.Check(); err != nil {
			d.mistakes.Add(at.Place, "%s: %w", owner, err)
		}
	}
}

func keys(s *plugin.Section) []string {
	all := make([]string, len(s.Entries))
	for i, e := range s.Entries {
		all[i] = e.Key
	}
	return all
}

// check builds a task's part, once its options are known, for the output kind of its heads and its metrics. Examples
// are made by another, which splits texts as the tokenizer does.
func (d *decoding) check(task *Task) {
	if task.Part.Options == nil {
		return
	}
	split := corpus.Splitter(corpus.SplitWhitespace, nil)
	made, err := task.Part.Build(tasks.Env{Name: task.Name, Split: split})
	if err != nil {
		d.mistakes.Append(err)
		return
	}
	task.kind, task.metrics = made.Output(), made.Evaluate(nil, nil)
}

// heads reads a task's heads; the default is one head with the task's name. of is the task's section, missing the
// default type of a head.
func (d *decoding) heads(owner string, s, of *plugin.Section, task, missing string) []Head {
	if s == nil || s.Kind == plugin.Null {
		if missing == "" {
			d.mistakes.Add(of.Place, "%s: no registered head has outputs of its kind; name one in heads", owner)
			return nil
		}
		part := heads.Registry().Choose(nil, missing, nil, &d.mistakes)
		part.Place = of.Place // mistakes of the default head are reported at the task
		return []Head{{Name: task, Place: of.Place, Part: part, Weight: 1}}
	}
	if s.Kind != plugin.List || len(s.Items) == 0 {
		d.mistakes.Add(s.Place, "%s: heads: want a list of at least one head, have %s", owner, s)
		return nil
	}
	var all []Head
	taken := map[string]plugin.Place{}
	for i, item := range s.Items {
		if item.Kind != plugin.Mapping {
			d.mistakes.Add(item.Place, "%s: head %d: want a mapping, have %s", owner, i+1, item)
			continue
		}
		h := headDefaults
		name := fmt.Sprintf("%s: head %d", owner, i+1)
		switch {
		case item.Has("name"):
			d.checkName(name+": name", item.At("name"))
			name = fmt.Sprintf("%s: head %q", owner, item.At("name").Text)
		case len(s.Items) == 1:
			h.Name = task
		default:
			d.mistakes.Add(item.Place, "%s without a name", name)
		}
		item.Decode(name, &h, &d.mistakes, keys(item)...)
		h.Place = item.Place
		h.Part = heads.Registry().Choose(item, missing, plugin.KeysOf(headDefaults), &d.mistakes)
		d.unique(owner+": head", h.Name, item, taken)
		d.checkLabels(name+": labels", item.At("labels"), h.Labels)
		all = append(all, h)
	}
	return all
}

func (d *decoding) labels(owner string, task *Task, s *plugin.Section) {
	d.checkLabels(owner+": labels", s.At("labels"), task.Labels)
	section := s.At("label_maps")
	for _, name := range slices.Sorted(maps.Keys(task.LabelMaps)) {
		at := orEmpty(section.At(name), s)
		if !slices.ContainsFunc(task.Heads, func(h Head) bool { return h.Name == name }) {
			d.mistakes.Add(at.Place, "%s: label_maps: %s", owner, plugin.Unknown("head", name, task.HeadNames()))
		}
		labels := task.LabelMaps[name]
		numbers := slices.Sorted(maps.Keys(labels))
		if len(numbers) > 0 && numbers[0] < 0 {
			d.mistakes.Add(at.Place, "%s: label_maps: %s: labels are numbered from 0, not %d", owner, name, numbers[0])
		}
		var values []string
		for _, n := range numbers {
			values = append(values, labels[n])
		}
		d.checkLabels(owner+": label_maps: "+name, at, values)
	}
	for _, h := range task.Heads {
		d.countLabels(owner, task, h)
	}
	d.warnMappedAgain(owner, task, s)
}

// warnMappedAgain warns of labels that label_maps or clean give and would read as others: predictions that are written
// as data have them.
func (d *decoding) warnMappedAgain(owner string, task *Task, s *plugin.Section) {
	if !d.files { // a trained run
		return
	}
	clean := func(label string) string { return task.Data.Clean.Label(label, false) }
	data := orEmpty(s.At("data"), s)
	d.warnOther(orEmpty(data.At("clean"), data), owner+": data: clean", maps.Values(task.Data.Clean.Map), clean)
	section := orEmpty(s.At("label_maps"), s)
	for _, name := range slices.Sorted(maps.Keys(task.LabelMaps)) {
		labels := task.LabelMaps[name]
		d.warnOther(orEmpty(section.At(name), section), owner+": label_maps: "+name, maps.Values(labels),
			func(label string) string {
				if n, err := strconv.Atoi(label); err == nil && labels[n] != "" {
					return labels[n]
				}
				return clean(label)
			})
	}
}

// warnOther warns of labels that read returns others for.
func (d *decoding) warnOther(at *plugin.Section, what string, labels iter.Seq[string], read func(string) string) {
	const most = 3
	var changed []string
	for _, label := range slices.Compact(slices.Sorted(labels)) {
		if again := read(label); label != "" && again != label {
			changed = append(changed, fmt.Sprintf("%q as %q", label, again))
		}
	}
	if len(changed) == 0 {
		return
	}
	if n := len(changed) - most; n > 0 {
		changed = append(changed[:most], plugin.Count(n, "other"))
	}
	d.warn(at.Place, "%s: labels that result are themselves read as others, %s: what predict --out and errors write "+
		"would change when it is read as data; want names that are read as themselves", what,
		strings.Join(changed, ", "))
}

func (d *decoding) checkLabels(what string, s *plugin.Section, labels []string) {
	seen := map[string]bool{}
	for _, label := range labels {
		switch {
		case label == "":
			d.mistakes.Add(s.Place, "%s: empty label; leave it out or give it a name", what)
		case seen[label]:
			d.mistakes.Add(s.Place, "%s: duplicate label %q", what, label)
		}
		seen[label] = true
	}
	if labels != nil && len(labels) == 0 {
		d.mistakes.Add(s.Place, "%s: want at least one label", what)
	}
}

// countLabels compares num_labels with the number of labels in the file. num_labels of Jenga-NLP's files is often
// wrong.
func (d *decoding) countLabels(owner string, task *Task, h Head) {
	named, where := len(h.Labels), "labels"
	if named == 0 {
		named, where = len(task.LabelMaps[h.Name]), "label_maps"
	}
	if named == 0 {
		named, where = len(task.Labels), "the task's labels"
	}
	switch {
	case h.NumLabels == 0 || named == 0 || h.NumLabels == named:
	case d.e.JengaNLP:
		d.warn(h.Place, "%s: head %q: num_labels %d is ignored: %s has %d", owner, h.Name, h.NumLabels, where,
			named)
	default:
		d.mistakes.Add(h.Place, "%s: head %q: num_labels is %d, but %s has %d; leave one of them out", owner, h.Name,
			h.NumLabels, where, named)
	}
}

func (f *writing) task(task Task) *plugin.Section {
	heads := &plugin.Section{Kind: plugin.List}
	for _, head := range task.Heads {
		heads.Items = append(heads.Items, f.head(head))
	}
	o := taskOptions{
		Name: task.Name, From: task.From, Keep: task.Keep, Data: f.data(task.Data),
		// written even if truncate: the default of some tasks is windows
		Long: "truncate", Stride: task.Windowing.Stride,
		Labels: task.Labels, LabelMaps: task.LabelMaps, Heads: heads,
	}
	o.Teacher = f.path(task.Teacher.Name)
	switch {
	case task.Data.SameAs != "":
		o.Long = ""
	case task.Windowing.Windows:
		o.Long = "windows"
	}
	s := plugin.SectionOf(o)
	if o.Long != "windows" {
		s.Remove("stride")
	}
	s.Entries = slices.Insert(s.Entries, 1, task.Part.Section().Entries...) // after the name
	return s
}

func (f *writing) head(head Head) *plugin.Section {
	if f.e.JengaNLP { // the written file has our keys, so that a wrong num_labels would be an error
		head.NumLabels = 0
	}
	s := plugin.SectionOf(head)
	s.Entries = append(s.Entries, head.Part.Section().Entries...)
	return s
}

// KeepsAll reports whether a group, by the numbers of its tasks, has only tasks that are kept of a base run.
func (e *Experiment) KeepsAll(group []int) bool {
	return !slices.ContainsFunc(group, func(number int) bool { return !e.Tasks[number].Keep })
}

// Groups groups the tasks that read the same texts, and returns the task numbers of each group. A task with same_as
// belongs to the group of the task that same_as names.
func (e *Experiment) Groups() [][]int {
	var groups [][]int
	of := map[string]int{} // task name → its group
	for len(of) < len(e.Tasks) {
		for i, task := range e.Tasks {
			if _, done := of[task.Name]; done {
				continue
			}
			g, found := of[task.Data.SameAs]
			switch {
			case found:
				groups[g] = append(groups[g], i)
			case task.Data.SameAs == "":
				g = len(groups)
				groups = append(groups, []int{i})
			default:
				continue // the task of same_as has no group yet
			}
			of[task.Name] = g
		}
	}
	return groups
}

// Readable returns an experiment with the tasks whose data can be read, of one that Read returned with an error: those
// without mistakes of their own, apart from files that do not exist.
func (e *Experiment) Readable() *Experiment {
	readable := *e
	readable.Tasks = nil
	names := map[string]bool{"": true} // same_as may name them
	for found := true; found; {
		found = false
		for _, task := range e.Tasks {
			if !task.mistaken && !names[task.Name] && names[task.Data.SameAs] {
				names[task.Name], found = true, true
				readable.Tasks = append(readable.Tasks, task)
			}
		}
	}
	return &readable
}

// resolveSameAs copies the data of the task that same_as names to each task with same_as.
func (d *decoding) resolveSameAs() {
	byName := map[string]*Task{}
	for i := range d.e.Tasks {
		byName[d.e.Tasks[i].Name] = &d.e.Tasks[i]
	}
	for i := range d.e.Tasks {
		task := &d.e.Tasks[i]
		from, at := task, d.e.Place("tasks."+task.Name+".data.same_as")
		for n := 0; from.Data.SameAs != ""; n++ {
			next := byName[from.Data.SameAs]
			if next == nil {
				if from == task {
					others := slices.DeleteFunc(slices.Collect(maps.Keys(byName)),
						func(name string) bool { return name == task.Name })
					d.mistakes.Add(at, "task %q: data: same_as: %s", task.Name,
						plugin.Unknown("task", task.Data.SameAs, others))
				}
				break
			}
			if n == len(d.e.Tasks) {
				d.mistakes.Add(at, "task %q: data: same_as is circular; one of these tasks must have files",
					task.Name)
				break
			}
			from = next
		}
		if from != task && from.Data.SameAs == "" {
			if task.Windowing.Separate != from.Windowing.Separate {
				d.mistakes.Add(at, "task %q: data: same_as: task %q reads pairs in another way: one of the two "+
					"encodes the texts of a pair separately; give each files of its own", task.Name, from.Name)
			}
			if task.HidesTokens || from.HidesTokens {
				d.mistakes.Add(at, "task %q: data: same_as: of tasks %q and %q one hides tokens that the other "+
					"would read; give each files of its own", task.Name, task.Name, from.Name)
			}
			task.Data, task.Windowing = from.Data.withFields(task.Data), from.Windowing
		}
	}
}

// sameText has the two names of the first text, and of the second.
var sameText = map[string]string{"text": "question", "question": "text", "pair": "context", "context": "pair"}

// withFields returns d with the fields of own. Fields of the texts that own does not name are those of d.
func (d Data) withFields(own Data) Data {
	fields := maps.Clone(own.Format.Fields)
	for _, name := range corpus.TextFields {
		if column, named := d.Format.Fields[name]; named && fields[name] == "" && fields[sameText[name]] == "" {
			if fields == nil {
				fields = map[string]string{}
			}
			fields[name] = column
		}
	}
	d.SameAs, d.Format.Fields, d.given, d.Clean = own.SameAs, fields, own.given, own.Clean
	if own.Format.Missing != nil {
		d.Format.Missing, d.Formats = own.Format.Missing, maps.Clone(d.Formats)
		for name, format := range d.Formats {
			format.Missing = own.Format.Missing
			d.Formats[name] = format
		}
	}
	return d
}
