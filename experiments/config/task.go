package config

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

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
		task := d.task(item, i+1)
		d.unique("task", task.Name, item, taken)
		d.e.Tasks = append(d.e.Tasks, task)
	}
	d.follow()
}

// unique refuses a name that another of its kind has, if only in other case: names become files.
func (d *decoding) unique(kind, name string, s *plugin.Section, taken map[string]plugin.Place) {
	if name == "" {
		return
	}
	key := strings.ToLower(name)
	if first, twice := taken[key]; twice {
		d.mistakes.Add(s.At("name").Place, "%s %q: the name is taken, in line %d; another one is needed, not only in case", kind, name, first.Line)
		return
	}
	taken[key] = s.Place
}

func (d *decoding) task(s *plugin.Section, number int) Task {
	t := taskDefaults
	t.Stride = min(t.Stride, corpus.MostStride(d.e.Tokenizer.MaxLength))
	owner := fmt.Sprintf("task %d", number)
	if name := s.At("name"); s.Has("name") {
		d.checkName(owner+": name", name)
		owner = fmt.Sprintf("task %q", name.Text)
	} else {
		d.mistakes.Add(s.Place, "%s without a name", owner)
	}
	s.Decode(owner, &t, &d.mistakes, keys(s)...) // the part refuses what nobody knows

	task := Task{Name: t.Name, Place: s.Place, Labels: t.Labels, LabelMaps: t.LabelMaps}
	task.Part = tasks.Registry().Choose(s, "", []string{"name", "data_path", "data", "heads", "label_maps", "labels", "long", "stride"}, &d.mistakes)
	kind := output(task)
	task.Heads = d.heads(owner, t.Heads, s, t.Name, heads.Default(kind))
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
	if task.Hides = traits.HidesTokens; task.Hides && len(task.Heads) > 1 {
		d.mistakes.Add(task.Heads[1].Place, "%s: a second head: one alone says which tokens are hidden; leave the others out", owner)
	}
	task.Data = d.data(owner, &task, t.Data, t.DataPath, s)
	windows := t.Long == "windows" || !s.Has("long") && traits.WholeText
	task.Cut = corpus.Cut{
		MaxLength: d.e.Tokenizer.MaxLength, Windows: windows, Stride: t.Stride,
		Context: traits.FromContext, Apart: traits.Separate,
	}
	d.cut(owner, task, s)
	d.labels(owner, &task, s)
	return task
}

// cut checks what becomes of long texts.
func (d *decoding) cut(owner string, task Task, s *plugin.Section) {
	for _, key := range []string{"long", "stride"} {
		if s.Has(key) && task.Data.SameAs != "" {
			d.mistakes.Add(s.At(key).Place, "%s: %s: the texts are those of data: same_as; leave it out", owner, key)
		}
	}
	switch at := s.At("stride"); {
	case !s.Has("stride"):
	case !task.Cut.Windows:
		d.mistakes.Add(at.Place, "%s: stride has no effect without long: windows", owner)
	default:
		if err := task.Cut.Check(); err != nil {
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

// output is the kind of outputs of a task's heads; nil where the task is a mistake itself.
func output(task Task) *outputs.Kind {
	if task.Part.Options == nil {
		return nil
	}
	made, err := task.Part.Build(tasks.Site{Name: task.Name, Split: splitBlanks})
	if err != nil {
		return nil // said where the task is made
	}
	return made.Output()
}

// heads reads a task's heads; the default is one with the task's name.
func (d *decoding) heads(owner string, s, of *plugin.Section, task, missing string) []Head {
	if s == nil || s.Kind == plugin.Null {
		if missing == "" {
			d.mistakes.Add(of.Place, "%s: no registered head has outputs of its kind; name one in heads", owner)
			return nil
		}
		part := heads.Registry().Choose(nil, missing, nil, &d.mistakes)
		part.Place = of.Place // what is wrong with it is wrong with the task
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
		part := heads.Registry().Choose(item, missing, []string{"name", "weight", "num_labels", "labels"}, &d.mistakes)
		d.unique(owner+": head", h.Name, item, taken)
		d.checkLabels(name+": labels", item.At("labels"), h.Labels)
		all = append(all, Head{Name: h.Name, Place: item.Place, Part: part, Weight: h.Weight, NumLabels: h.NumLabels, Labels: h.Labels})
	}
	return all
}

// labels checks what a task says of its heads' labels.
func (d *decoding) labels(owner string, task *Task, s *plugin.Section) {
	d.checkLabels(owner+": labels", s.At("labels"), task.Labels)
	section := s.At("label_maps")
	for _, name := range slices.Sorted(maps.Keys(task.LabelMaps)) {
		at := section.At(name)
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
}

func (d *decoding) checkLabels(what string, s *plugin.Section, labels []string) {
	seen := map[string]bool{}
	for _, label := range labels {
		switch {
		case label == "":
			d.mistakes.Add(s.Place, "%s: a label is not empty", what)
		case seen[label]:
			d.mistakes.Add(s.Place, "%s: label %q is there twice", what, label)
		}
		seen[label] = true
	}
	if labels != nil && len(labels) == 0 {
		d.mistakes.Add(s.Place, "%s: want at least one label", what)
	}
}

// countLabels compares num_labels with the labels that the file names. Those of Jenga-NLP's files are often wrong.
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
		d.remark(h.Place, "%s: head %q: num_labels is %d, but %s has %d: they count", owner, h.Name, h.NumLabels, where, named)
	default:
		d.mistakes.Add(h.Place, "%s: head %q: num_labels is %d, but %s has %d; leave one of them out", owner, h.Name, h.NumLabels, where, named)
	}
}

// fieldNames lists the fields of a record whose columns data may name: those of texts, and of all kinds of targets.
func fieldNames() []string {
	names := []string{
		"text", "pair", "words", "label", "labels", "tags", "entities", "value", "question", "context", "answers",
	}
	for _, kind := range outputs.Kinds() {
		if field := kind.Field(); field != "" && !slices.Contains(names, field) {
			names = append(names, field)
		}
	}
	return names
}

// shared are the fields that all heads of a task have in common.
var shared = []string{"text", "pair", "words", "entities", "question", "context", "answers"}

// perHead is what the fields of a head's own begin with in the place of a field: "label." of "label"; "" where no head
// has one of its own.
func perHead(field string) string {
	switch {
	case slices.Contains(shared, field):
		return ""
	case field == "labels":
		return "label."
	}
	return field + "."
}

// data reads where a task's examples are.
func (d *decoding) data(owner string, task *Task, s, dataPath, of *plugin.Section) Data {
	raw := struct {
		Train     *plugin.Section `yaml:"train"`
		Dev       *plugin.Section `yaml:"dev"`
		Test      *plugin.Section `yaml:"test"`
		Path      *plugin.Section `yaml:"path"`
		SameAs    string          `yaml:"same_as"`
		Format    string          `yaml:"format"`
		Header    bool            `yaml:"header"`
		Columns   []string        `yaml:"columns"`
		Delimiter string          `yaml:"delimiter"`
		Quote     string          `yaml:"quote"`
		Encoding  string          `yaml:"encoding"`
		Split     *plugin.Section `yaml:"split"`
		Limit     int             `yaml:"limit" range:"[0,)"`
	}{Header: true}
	if s != nil && s.Kind != plugin.Null && s.Kind != plugin.Mapping {
		d.mistakes.Add(s.Place, "%s: data: want a mapping as {train: FILE, dev: FILE}, have %s", owner, s)
		return Data{}
	}
	s = orEmpty(s, of)
	s.Decode(owner+": data", &raw, &d.mistakes, fieldNames()...)

	var data Data
	data.Format.Type, data.Format.NoHeader, data.Format.Columns = raw.Format, !raw.Header, raw.Columns
	data.Format.Delimiter, data.Format.Quote, data.Format.Encoding = raw.Delimiter, raw.Quote, raw.Encoding
	data.Format.Fields = d.fields(owner, task, s)
	data.Limit = raw.Limit
	if data.SameAs = raw.SameAs; raw.SameAs != "" {
		d.onlyFields(owner, s, dataPath)
		return data
	}

	path, what := raw.Path, "data: path"
	if dataPath != nil && dataPath.Kind != plugin.Null {
		if s.Has("path") {
			d.mistakes.Add(raw.Path.Place, "%s: data: path and data_path are one; leave one out", owner)
		}
		path, what = dataPath, "data_path"
	}
	data.Path = d.dataFile(path, owner, what)
	data.Train = d.dataFile(raw.Train, owner, "data: train")
	data.Dev = d.dataFile(raw.Dev, owner, "data: dev")
	data.Test = d.dataFile(raw.Test, owner, "data: test")
	d.checkFiles(owner, data, s)
	data.Split = d.split(owner, data, raw.Split)
	if raw.Split != nil {
		data.SplitPlace = raw.Split.Place
	}
	return data
}

// fields reads the columns' names.
func (d *decoding) fields(owner string, task *Task, s *plugin.Section) map[string]string {
	fields := map[string]string{}
	for _, name := range fieldNames() {
		column := s.At(name)
		switch {
		case column == nil || column.Kind == plugin.Null:
		case column.Kind < plugin.List:
			fields[name] = column.Text
		case column.Kind == plugin.Mapping && perHead(name) != "":
			for _, e := range column.Entries {
				switch {
				case !slices.Contains(task.HeadNames(), e.Key):
					d.mistakes.Add(e.Place, "%s: data: %s: %s", owner, name, plugin.Unknown("head", e.Key, task.HeadNames()))
				case e.Value.Kind >= plugin.List || e.Value.Kind == plugin.Null:
					d.mistakes.Add(e.Value.Place, "%s: data: %s: want a column's name, have %s", owner, name, e.Value)
				default:
					fields[perHead(name)+e.Key] = e.Value.Text
				}
			}
		case perHead(name) != "":
			d.mistakes.Add(column.Place, "%s: data: %s: want a column's name, or one for each head, have %s", owner, name, column)
		default:
			d.mistakes.Add(column.Place, "%s: data: %s: want a column's name, have %s", owner, name, column)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// onlyFields refuses what a task that reads another's texts cannot say of them.
func (d *decoding) onlyFields(owner string, s, dataPath *plugin.Section) {
	if dataPath != nil && dataPath.Kind != plugin.Null {
		d.mistakes.Add(dataPath.Place, "%s: data_path: the texts are those of data: same_as; leave one out", owner)
	}
	for _, e := range s.Entries {
		if e.Key != "same_as" && !slices.Contains(fieldNames(), e.Key) {
			d.mistakes.Add(e.Place, "%s: data: %s: the texts are those of same_as; leave one out", owner, e.Key)
		}
	}
}

// checkFiles refuses files that contradict one another or their format.
func (d *decoding) checkFiles(owner string, data Data, s *plugin.Section) {
	given := func(f File) bool { return f.Place != (plugin.Place{}) }
	if !given(data.Path) && !given(data.Train) {
		d.mistakes.Add(s.Place, "%s: no training data; want data: {train: FILE, dev: FILE}, or data_path: FILE to divide", owner)
	}
	for _, split := range []string{Train, Dev, Test} {
		if given(data.Path) && given(data.File(split)) {
			d.mistakes.Add(data.File(split).Place, "%s: data: %s: beside one file that is divided; leave one out", owner, split)
		}
	}
	for _, f := range []File{data.Path, data.Train, data.Dev, data.Test} {
		if f.Name == "" || !runfolder.Exists(f.Name) || runfolder.IsFolder(f.Name) {
			continue
		}
		if err := data.Format.Check(f.Name); err != nil {
			d.mistakes.Add(f.Place, "%s: %s: %w", owner, f.Name, err)
			return
		}
	}
}

// split reads what is taken from the training examples for dev and test.
func (d *decoding) split(owner string, data Data, s *plugin.Section) Split {
	split := Split{Seed: d.e.Seed}
	switch {
	case data.Path.Place != (plugin.Place{}):
		split.Dev = 0.2
	case data.Dev.Place == (plugin.Place{}):
		split.Dev = 0.1
	}
	if s != nil && s.Kind != plugin.Null {
		s.Decode(owner+": data: split", &split, &d.mistakes)
	}
	for _, part := range []struct {
		name  string
		value float64
		file  File
	}{{Dev, split.Dev, data.Dev}, {Test, split.Test, data.Test}} {
		switch {
		case !s.Has(part.name):
		case part.value > 1 && part.value != math.Trunc(part.value):
			d.mistakes.Add(s.At(part.name).Place, "%s: data: split: %s: want a share below 1 or a whole number, have %v", owner, part.name, part.value)
		case part.value > 0 && part.file.Place != (plugin.Place{}):
			d.mistakes.Add(s.At(part.name).Place, "%s: data: split: %s: data has a %s file; leave one out", owner, part.name, part.name)
		}
	}
	if split.Dev < 1 && split.Test < 1 && split.Dev+split.Test >= 1 {
		d.mistakes.Add(s.Place, "%s: data: split: dev and test take all examples; leave some to train on", owner)
	}
	if split.Dev > 0 || split.Test > 0 {
		return split
	}
	for _, key := range []string{"seed", "by"} {
		if s.Has(key) && d.files { // a run that was trained so answers
			d.mistakes.Add(s.At(key).Place, "%s: data: split: %s: nothing is divided; leave it out, or say how much goes to dev or test", owner, key)
		}
	}
	return Split{}
}

// follow gives tasks that say same_as the texts of the task they name.
func (d *decoding) follow() {
	byName := map[string]*Task{}
	for i := range d.e.Tasks {
		byName[d.e.Tasks[i].Name] = &d.e.Tasks[i]
	}
	for i := range d.e.Tasks {
		task := &d.e.Tasks[i]
		from := task
		for n := 0; from.Data.SameAs != ""; n++ {
			next := byName[from.Data.SameAs]
			if next == nil {
				if from == task {
					others := slices.DeleteFunc(slices.Collect(maps.Keys(byName)), func(name string) bool { return name == task.Name })
					d.mistakes.Add(task.Place, "task %q: data: same_as: %s", task.Name, plugin.Unknown("task", task.Data.SameAs, others))
				}
				break
			}
			if n == len(d.e.Tasks) {
				d.mistakes.Add(task.Place, "task %q: data: same_as leads back to itself; one of the tasks has a file", task.Name)
				break
			}
			from = next
		}
		if from != task && from.Data.SameAs == "" {
			if task.Cut.Apart != from.Cut.Apart {
				d.mistakes.Add(task.Place, "task %q: data: same_as: task %q reads pairs in another way: one of them encodes their texts apart; give each files of its own", task.Name, from.Name)
			}
			if task.Hides || from.Hides {
				d.mistakes.Add(task.Place, "task %q: data: same_as: of tasks %q and %q one hides tokens that the other would read; give each files of its own", task.Name, task.Name, from.Name)
			}
			task.Data, task.Cut = from.Data.seenBy(task.Data), from.Cut
		}
	}
}

// seenBy returns the data of a task that reads the texts of d under fields of its own.
func (d Data) seenBy(own Data) Data {
	own.Train, own.Dev, own.Test, own.Path, own.Limit = d.Train, d.Dev, d.Test, d.Path, d.Limit
	own.Split, own.SplitPlace = d.Split, d.SplitPlace
	fields := maps.Clone(own.Format.Fields)
	own.Format = d.Format
	for _, name := range []string{"text", "pair", "words", "question", "context"} {
		if column, named := d.Format.Fields[name]; named && fields[name] == "" {
			if fields == nil {
				fields = map[string]string{}
			}
			fields[name] = column
		}
	}
	own.Format.Fields = fields
	return own
}
