package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// reader reads the data of an experiment's tasks.
type reader struct {
	data     *Dataset
	e        *config.Experiment
	types    []tasks.Task // of e.Tasks
	trained  bool         // the run is trained: a missing file may be replaced by another
	mistakes *plugin.Mistakes
	warnings []plugin.Warning
	other    bool // a file is read that is not a training file: no example needs the field of split: by, nor a target
	// trainingRead is called when the training examples of a group are read, before its other files; nil: not called
	trainingRead func(*Group)
}

// read reads the examples of a group's splits: those with a file of their own, and those that are taken from the
// training file. The others stay nil. Training, if it is among them, is the first.
func (r *reader) read(group *Group, splits ...string) {
	first := r.e.Tasks[group.Tasks[0]]
	own := map[string]config.File{config.Dev: first.Data.Dev, config.Test: first.Data.Test}
	var divided map[string][]*corpus.Example // by split
	for _, split := range splits {
		if file := own[split]; file.Name != "" {
			group.Examples[split] = r.otherFile(group, file)
			continue
		}
		if split == config.Dev && first.Data.Split.Dev == 0 || split == config.Test && first.Data.Split.Test == 0 {
			continue
		}
		if TrainingFile(first.Data).Name == "" {
			continue // it does not exist, which is reported already
		}
		if divided == nil {
			divided = r.training(group, TrainingFile(first.Data), splits)
		}
		if examples := divided[split]; examples != nil {
			group.Examples[split] = examples
		}
		if split == config.Train && r.trainingRead != nil {
			r.trainingRead(group)
		}
	}
}

// training returns the examples of the splits of a group's training file.
func (r *reader) training(group *Group, file config.File, splits []string) map[string][]*corpus.Example {
	if streams(r.e, group) {
		return r.stream(group, file, splits)
	}
	first := r.e.Tasks[group.Tasks[0]]
	examples, parts := r.file(group, file), map[string][]*corpus.Example{}
	if examples == nil {
		return parts // the error is reported already
	}
	all := newDivisible(func(number int) corpus.Place { return examples[number].Place })
	for _, e := range examples {
		all.add(e, r.types[group.Tasks[0]].Output(), first.Data.Split.By != "")
	}
	divided, warnings := r.divide(group, all)
	r.warnOf(splits, warnings)
	for split, numbers := range divided {
		part := make([]*corpus.Example, len(numbers))
		for i, n := range numbers {
			part[i] = examples[n]
		}
		parts[split] = part
	}
	return parts
}

// file returns the examples of a file's records, with the targets of all tasks of the group; nil if one has a mistake.
// The file is read once: it may be a pipe.
func (r *reader) file(group *Group, path config.File) []*corpus.Example {
	first := r.e.Tasks[group.Tasks[0]]
	records, err := r.records(first, path)
	if err != nil {
		r.fileMistakes(first, path, err)
		return nil
	}
	examples := make([]*corpus.Example, len(records))
	wrong := false
	for _, number := range group.Tasks {
		task := r.e.Tasks[number]
		format := task.Data.Format
		if r.other {
			format.Fields = withoutEmptyTargets(format.Fields, records)
		}
		own, err := format.Rename(path.Name, records)
		if err != nil {
			r.fileMistakes(task, path, err)
			return nil
		}
		if _, known := group.first[number]; !known && len(own) > 0 {
			group.first[number] = own[0]
		}
		tasks.SurveyRecords(r.types[number], own)

		errs, differ := r.addExamples(examples, number, own, first.Name)
		all := newRecordErrors()
		all.add(errs...)
		r.recordMistakes(task, path.Name, all, len(own))
		if number == group.Tasks[0] && len(errs) == 0 {
			r.checkTexts(number, path, records)
		}
		if differ != nil {
			r.mistakes.Append(differ)
			return nil // other records would give the same error
		}
		wrong = wrong || len(errs) > 0
	}
	if wrong {
		return nil
	}
	return examples
}

// records returns the records of a file, or of several, one after the other, by the names in the files.
func (r *reader) records(task config.Task, file config.File) (all []corpus.Record, err error) {
	format := task.Data.FormatOf(file.Name)
	format.Fields = nil // each task renames its own
	var errs []error
	for _, path := range file.Paths() {
		records, err := corpus.Open(path, format)
		if joined, several := err.(interface{ Unwrap() []error }); several {
			errs = append(errs, joined.Unwrap()...)
		} else if err != nil {
			errs = append(errs, err)
		}
		if all == nil {
			all = records
		} else {
			all = append(all, records...)
		}
	}
	if len(errs) == 1 {
		return nil, errs[0]
	}
	return all, errors.Join(errs...)
}

// unreadTexts counts records with texts that are not read, because others are read before them.
type unreadTexts struct {
	n     int
	first corpus.Record
}

// add adds a record, by the names in its file.
func (u *unreadTexts) add(format corpus.Format, record corpus.Record) {
	if _, _, two := format.TwoTexts(record); two {
		if u.n == 0 {
			u.first = record
		}
		u.n++
	}
}

// checkTexts warns of records with texts that are not read.
func (r *reader) checkTexts(number int, path config.File, records []corpus.Record) {
	var unread unreadTexts
	for _, record := range records {
		unread.add(r.e.Tasks[number].Data.Format, record)
	}
	r.reportUnread(number, path, unread)
}

// reportUnread warns of texts that are not read. If the task extracts answers from a context, that is a mistake: its
// answers may be of the other one.
func (r *reader) reportUnread(number int, path config.File, of unreadTexts) {
	if of.n == 0 {
		return
	}
	task := r.e.Tasks[number]
	read, unread, _ := task.Data.Format.TwoTexts(of.first)
	text := fmt.Sprintf("task %q: %s of %s has fields %q and %q, of which %[4]q is read; first: %[6]s; name the "+
		"one to read, data: {%[4]s: %[4]s} or {%[5]s: %[5]s}", task.Name, plugin.Count(of.n, "record"), path.Name, read,
		unread, of.first.Place)
	if r.types[number].Output().FromContext {
		r.mistakes.Add(path.Place, "%s", text)
		return
	}
	r.warnings = append(r.warnings, plugin.Warn(path.Place, "%s", text))
}

// addExamples adds the examples of a task's records, or the targets of the task to examples that other tasks of the
// group have made. errs are the errors of records; differ is the error of a text that is not that of the first task.
func (r *reader) addExamples(examples []*corpus.Example, number int, records []corpus.Record, first string) (
	errs []recordError, differ error) {
	for i, record := range records {
		example, err := r.example(number, record)
		if err != nil {
			errs = append(errs, recordError{record.Place, err})
			continue
		}
		if examples[i] == nil {
			examples[i] = &example
			continue
		}
		if what := different(example, *examples[i]); what != "" {
			return errs, fmt.Errorf("%s: task %q: its %s differ from those of task %q, which same_as names; leave "+
				"text, pair, words, question and context out of its data, or give it files of its own",
				record.Place, r.e.Tasks[number].Name, what, first)
		}
		examples[i].Targets = append(examples[i].Targets, example.Targets...)
		if examples[i].Words == nil {
			examples[i].Words = example.Words
		}
	}
	return errs, nil
}

// different returns what differs between two examples of the same record, "" if nothing does.
func different(a, b corpus.Example) string {
	switch {
	case a.Text != b.Text:
		return "texts"
	case a.Pair != b.Pair || a.Paired != b.Paired:
		return "pairs"
	case a.Words != nil && b.Words != nil && !slices.Equal(a.Words, b.Words):
		return "words"
	}
	return ""
}

// example returns the example of a record for a task.
func (r *reader) example(number int, record corpus.Record) (corpus.Example, error) {
	task := r.e.Tasks[number]
	example, err := r.types[number].Example(record)
	if err != nil {
		return example, err
	}
	if !r.other && task.Data.Split.By != "" && task.Data.SameAs == "" {
		if example.Group, err = splitGroup(record, task.Data.Split.By); err != nil {
			return example, splitByError{err}
		}
	}
	r.rename(task, r.types[number].Output(), example.Targets)
	return example, nil
}

// rename replaces numbers of labels in targets by their names in label_maps.
func (r *reader) rename(task config.Task, kind *outputs.Kind, targets []corpus.Target) {
	for h := range targets {
		names := task.LabelMaps[task.Heads[h].Name]
		if names == nil && kind.NamedByID(targets[h]) {
			names = byNumber(task, task.Heads[h])
		}
		if names == nil {
			continue
		}
		kind.Names(targets[h], func(name *string) { *name = renamed(names, *name) })
	}
}

// byNumber returns the labels of a head by number, in the order of the experiment, for targets that are a list of 0 and
// 1.
func byNumber(t config.Task, head config.Head) map[int]string {
	labels := head.Labels
	if labels == nil {
		labels = t.Labels
	}
	names := map[int]string{}
	for i, label := range labels {
		names[i] = label
	}
	return names
}

// renamed returns the name of a label that is a number, or the label itself.
func renamed(names map[int]string, label string) string {
	if n, err := strconv.Atoi(label); err == nil {
		if name, ok := names[n]; ok {
			return name
		}
	}
	return label
}

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
	slices.SortFunc(d.Warnings[before:], plugin.CompareWarnings)
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
				return fmt.Errorf("%w %s=%s: no head of its texts is read; leave it out", plugin.Argument("data"), name,
					strings.Join(data[name], ", "))
			default:
				return fmt.Errorf("%w %s=%s: task %q, which %w selects, reads other texts; leave one of them out",
					plugin.Argument("data"), name, strings.Join(data[name], ", "), task, plugin.Argument("task"))
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
			return config.File{}, fmt.Errorf("tasks %q and %q read the same texts, but %w names %s and %s; want "+
				"one file for both", of, name, plugin.Argument("data"), strings.Join(names, ", "),
				strings.Join(own, ", "))
		}
	}
	if names == nil {
		return config.File{}, nil
	}
	file, err := config.FilesNamed(names)
	if err != nil {
		return file, fmt.Errorf("%w %s: %w", plugin.Argument("data"), of, err)
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

// otherFile returns the examples of a file that is not a training file.
func (r *reader) otherFile(group *Group, file config.File) []*corpus.Example {
	r.other = true
	defer func() { r.other = false }()
	return r.file(group, file)
}

// textFields are the fields of a format that are not targets.
var textFields = []string{"text", "pair", "words", "question", "context"}

// withoutEmptyTargets returns the fields of a format for records of dev or test: where a target's field is null in all
// that have it, the target has no field. Such records are not labelled; in others a field without a value is a mistake.
func withoutEmptyTargets(fields map[string]string, records []corpus.Record) map[string]string {
	fields = maps.Clone(fields)
	for our, theirs := range fields {
		if slices.Contains(textFields, our) {
			continue
		}
		there, filled := false, false
		for _, record := range records {
			value, has := corpus.Field(record.Fields, theirs)
			there, filled = there || has, filled || value != nil
		}
		if there && !filled {
			fields[our] = ""
		}
	}
	return fields
}

// recordError is an error of one record.
type recordError struct {
	at  corpus.Place
	err error
}

// sameShown is how many errors of one kind are listed for a task's file; the others are counted.
const sameShown = 5

// values matches what differs between errors of one kind: quoted words and numbers.
var values = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[0-9]+`)

// recordErrors are the errors of a task's records in a file: the first of each kind, and how many there are.
type recordErrors struct {
	shown  []recordError // at most sameShown of a kind
	counts map[string]int
}

func newRecordErrors() *recordErrors { return &recordErrors{counts: map[string]int{}} }

// add adds errors.
func (r *recordErrors) add(errs ...recordError) {
	for _, e := range errs {
		kind := e.kind()
		if r.counts[kind]++; r.counts[kind] <= sameShown {
			r.shown = append(r.shown, e)
		}
	}
}

// text returns the error without its place.
func (e recordError) text() string { return strings.TrimPrefix(e.err.Error(), e.at.String()+": ") }

// kind returns what errors of one kind have in common.
func (e recordError) kind() string { return values.ReplaceAllString(e.text(), "_") }

// recordMistakes reports the errors of a task's records in a file. If all records have one of the same kind, the task
// has a wrong type or the data wrong columns: one error at the task's type, or at split: by, has
// the first of them.
func (r *reader) recordMistakes(task config.Task, file string, errs *recordErrors, records int) {
	seen := map[string]int{}
	for _, e := range errs.shown {
		all := errs.counts[e.kind()]
		if all == records && all > sameShown {
			key, what := "type", "type "+task.Part.Type
			if _, byField := errors.AsType[splitByError](e.err); byField {
				key, what = "data.split.by", "data: split: by"
			}
			r.mistakes.Add(r.e.Place("tasks."+task.Name+"."+key),
				"task %q: %s: all %d records of %s have the same mistake; the first, %s: %s", task.Name, what, records,
				file, e.at, e.text())
			return
		}
		seen[e.kind()]++
		r.mistakes.Append(fmt.Errorf("%s: task %q: %s", e.at, task.Name, e.text()))
		if seen[e.kind()] == sameShown && all > sameShown {
			r.mistakes.Append(fmt.Errorf("%s: task %q: and %s like %s", file, task.Name,
				plugin.Count(all-sameShown, "more record"), e.at))
		}
	}
}

// fileMistakes reports the error of opening a task's file, or each of several that are joined.
func (r *reader) fileMistakes(task config.Task, file config.File, err error) {
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = slices.Clone(joined.Unwrap())
	}
	if r.trained && r.data.Missing != nil && slices.ContainsFunc(file.Paths(), isMissing) {
		if hint := r.data.Missing(task, file); hint != "" {
			last := len(errs) - 1
			errs[last] = fmt.Errorf("%w; %s", errs[last], hint)
		}
	}
	for _, err := range errs {
		r.mistakes.Add(file.Place, "task %q: %w", task.Name, err)
	}
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// splitByError is the error of a record without a value of split: by.
type splitByError struct{ error }

// splitGroup returns the value of a record's field, which may be a path, that split: by names. A record without one is
// an error: it may belong to any of the groups.
func splitGroup(record corpus.Record, by string) (string, error) {
	value, found := corpus.Field(record.Fields, by)
	if !found {
		return "", fmt.Errorf("%s: no field %q, which split: by names; available: %s", record.Place, by,
			record.FieldNames())
	}
	group, given, err := corpus.Record{Place: record.Place, Fields: map[string]any{by: value}}.String(by)
	if err == nil && !given {
		err = fmt.Errorf("%s: field %q, which split: by names, is empty; want a value of its own for a record that "+
			"belongs to no other", record.Place, by)
	}
	return group, err
}
