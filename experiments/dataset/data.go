package dataset

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

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
	warnings []string
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
	r.warnings = append(r.warnings, plugin.Warning(path.Place, "%s", text))
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
