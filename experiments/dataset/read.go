package dataset

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

type reader struct {
	data     *Dataset
	e        *config.Experiment
	types    []tasks.Task // of e.Tasks
	trained  bool         // the run is trained: a missing file may be replaced by another
	mistakes *plugin.Mistakes
	warnings []plugin.Warning
	// columns that are reported as lacking, by task and field
	lacking map[[2]string]bool

	other bool   // a file is read that is not a training file: no example needs the field of split: by, nor a target
	asked int    // 1 + the number of the task that is given another file than its own, for errors of that; 0: none
	only  string // the split whose records alone are read of an other file with the field of split: column; "": all
	alone string // the task whose targets alone are read of an other file; "": those of all tasks of the group
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
		from := map[string]float64{config.Train: 1, config.Dev: first.Data.Split.Dev,
			config.Test: first.Data.Split.Test}
		if from[split] == 0 && first.Data.Split.Column == "" {
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
		if split == config.Train && !r.trained {
			r.chooseSplitter(group)
		}
	}
}

func (r *reader) training(group *Group, file config.File, splits []string) map[string][]*corpus.Example {
	if streams(r.e, group) {
		return r.stream(group, file, splits)
	}
	first := r.e.Tasks[group.Tasks[0]]
	examples, parts := r.file(group, file), map[string][]*corpus.Example{}
	if examples == nil {
		return parts // the error is reported already
	}
	all := newDivisible(first.Data, r.data.kinds(group),
		func(number int) corpus.Place { return examples[number].Place })
	for _, e := range examples {
		all.add(e)
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
func (r *reader) file(group *Group, file config.File) []*corpus.Example {
	first := r.e.Tasks[group.Tasks[0]]
	records, err := r.records(first, file)
	if err != nil {
		r.fileMistakes(first, file, err)
		return nil
	}
	p := r.newPass(group, file, records)
	for _, record := range records {
		p.scan(record)
	}
	if r.only != "" && !slices.ContainsFunc(records, func(record corpus.Record) bool {
		_, has := corpus.Field(record.Fields, first.Data.Split.Column)
		return has
	}) {
		r.only = ""
	}
	examples := make([]*corpus.Example, len(records))
	record := func(i int) (corpus.Record, error) { return records[i], nil }
	if !p.survey() || !p.examples(func(int, int) {}, record, func(i int, e *corpus.Example) { examples[i] = e }) {
		return nil
	}
	if r.other {
		return r.used(group, file, examples)
	}
	return examples
}

// used returns the examples of another file than the training file that its task's data uses: those of a split that
// their records name, and those that do not repeat earlier ones.
func (r *reader) used(group *Group, file config.File, examples []*corpus.Example) []*corpus.Example {
	task, all, named, counts := r.e.Tasks[group.Tasks[0]], len(examples), examples, map[string]int{}
	if column := task.Data.Split.Column; r.only != "" && column != "" {
		named = nil
		for _, e := range examples {
			counts[e.Split]++
			if split, _ := corpus.SplitNamed(e.Split); split == r.only {
				named = append(named, e)
			}
		}
		if len(named) == 0 {
			r.mistakes.Add(file.Place, "task %q: no record of %s is of %s by field %q, which split: column names: "+
				"it has %s",
				task.Name, file.Name, r.only, column, withCounts(slices.Sorted(maps.Keys(counts)), counts))
			return nil
		}
		if n := len(named); n < all {
			r.warnings = append(r.warnings, taskWarning(task, "%d of %s of %s %s read: those of %s by field %q, which "+
				"split: column names", n, plugin.Count(all, "record"), file.Name, plugin.Agree(n, "is", "are"),
				r.only, column))
		}
	}
	before := newEarlier(task.Data, r.data.kinds(group))
	left := slices.DeleteFunc(named, before.has)
	if n := len(named) - len(left); n > 0 {
		r.warnings = append(r.warnings, taskWarning(task, "%s", repeatedText(task.Data, n, len(named), file.Name)))
	}
	return left
}

// formatOf returns the format of a file of a task, without Fields: each task of a group renames its own.
func formatOf(task config.Task, file config.File) corpus.Format {
	format := task.Data.FormatOf(file.Name)
	format.Fields, format.Numbers = nil, true // each task renames records, and names the integers of its labels
	return format
}

// warningFormat is formatOf, with the doubts about the file as warnings.
func (r *reader) warningFormat(task config.Task, file config.File) corpus.Format {
	format := formatOf(task, file)
	format.AnyRows = r.only != "" // a file in place of the experiment's
	format.Warn = func(at corpus.Place, text string) {
		r.warnings = append(r.warnings, plugin.Warn(file.Place, "task %q: %s: %s", task.Name, at, text))
	}
	return format
}

func trainingFormat(task config.Task) corpus.Format {
	return task.Data.FormatOf(TrainingFile(task.Data).Name)
}

func (r *reader) records(task config.Task, file config.File) (all []corpus.Record, err error) {
	var errs []error
	for _, path := range file.Paths() {
		if r.trained && r.asked == 0 && files.IsPipe(path) {
			errs = append(errs, fmt.Errorf("%s: a named pipe, which a trained run does not read again", path))
			continue
		}
		records, err := corpus.Open(r.data.ctx, path, r.warningFormat(task, file))
		if errs = append(errs, err); all == nil {
			all = records
		} else {
			all = append(all, records...)
		}
	}
	return all, errors.Join(errs...)
}

// several returns the errors that are joined in err, also by files.
func several(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{err}
	}
	for _, one := range joined.Unwrap() {
		all = append(all, several(one)...)
	}
	return all
}

// Read reads the examples of a split for all groups that have a file for it, or only for the group of task if task is
// not "". data maps tasks to files, paths or patterns, that are read in place of the experiment's, for all tasks of the
// group, but of whose targets only those of task are read; a file for a group that is not read is an error. Warnings
// about the examples are added to Warnings.
func (d *Dataset) Read(ctx context.Context, split, task string, data map[string][]string) error {
	d.ctx = ctx // of its tokenizer, and of what encodes the examples
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
		file, asked, err := d.named(group, data)
		if group.inPlace == nil {
			group.inPlace = map[string]string{}
		}
		group.inPlace[split] = file.Name
		switch {
		case err != nil:
			mistakes.Append(err)
		case file.Name != "":
			in.only, in.asked, in.alone = split, asked, task
			group.Examples[split] = in.otherFile(group, file)
		default:
			in.read(group, split)
		}
		if !mistakes.Empty() { // those of the other groups are reported too
			delete(group.Examples, split) // which are not encoded
			continue
		}
		d.number(group, group.Examples[split])
		d.unknownLabels(group, split)
		d.Warnings = append(d.Warnings, d.CheckTargets(group, split, false)...)
		delete(group.surveys, split) // of another file
		if err := d.survey(group, split); err != nil {
			return err
		}
		if err := d.encode(group, split, func(*corpus.Example) {}); err != nil {
			return err
		}
		d.checkTexts(group, split)
		found = found || group.Examples[split] != nil
	}
	if mistakes.Empty() && !found {
		return d.noData(split, task)
	}
	d.Warnings = append(d.Warnings, in.warnings...)
	slices.SortFunc(d.Warnings[before:], plugin.CompareWarnings)
	return mistakes.Err()
}

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

func (d *Dataset) reads(g int, task string) bool {
	if task != "" {
		return slices.ContainsFunc(d.Groups[g].Tasks, func(n int) bool { return d.Experiment.Tasks[n].Name == task })
	}
	return d.Skipped == nil || !d.Skipped[g]
}

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

// named returns the files in data for the tasks of a group, and the reader's asked; without a Name for none. They read
// the same texts, so different files are an error.
func (d *Dataset) named(group *Group, data map[string][]string) (file config.File, asked int, err error) {
	var names []string
	of := ""
	for _, number := range group.Tasks {
		name := d.Experiment.Tasks[number].Name
		switch own := data[name]; {
		case own == nil || slices.Equal(own, names):
		case names == nil:
			names, of, asked = own, name, 1+number
		default:
			return file, 0, fmt.Errorf("tasks %q and %q read the same texts, but %w names %s and %s; want "+
				"one file for both", of, name, plugin.Argument("data"), strings.Join(names, ", "),
				strings.Join(own, ", "))
		}
	}
	if names == nil {
		return file, 0, nil
	}
	if file, err = config.FilesNamed(names); err != nil {
		return file, 0, fmt.Errorf("%w %s: %w", plugin.Argument("data"), of, err)
	}
	return file, asked, nil
}

func (r *reader) otherFile(group *Group, file config.File) []*corpus.Example {
	r.other = true
	defer func() { r.other, r.only, r.asked, r.alone = false, "", 0, "" }()
	return r.file(group, file)
}

// withoutEmptyTargets returns the fields of a format for records of dev or test: where a target's field is null in all
// that have it, the target has no field. Such records are not labelled; in others a field without a value is a mistake.
func withoutEmptyTargets(fields map[string]string, records []corpus.Record) map[string]string {
	fields = maps.Clone(fields)
	for our, theirs := range fields {
		if slices.Contains(corpus.TextFields, our) {
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

// targetFields returns the fields of a record, by our names, that the targets of a task may be in.
func (r *reader) targetFields(number int) []string {
	kind, about := r.types[number].Output(), tasks.DescriptionOf(r.types[number])
	fields := slices.Concat([]string{kind.Field}, about.SameFields, about.DifferentFields)
	for _, head := range r.e.Tasks[number].Heads {
		fields = append(fields, kind.HeadField(head.Name))
	}
	return fields
}

// readAlone leaves the targets of all tasks but alone out of the formats of a group's tasks.
func (r *reader) readAlone(of []taskPass) {
	columns := map[string]bool{} // of targets; true: of alone
	for i := range of {
		format, ofAlone := &of[i].Data.Format, of[i].Name == r.alone
		theirs := format.Fields
		if !ofAlone {
			format.Fields = map[string]string{}
			maps.Copy(format.Fields, theirs)
		}
		for _, our := range slices.AppendSeq(r.targetFields(of[i].number), maps.Keys(theirs)) {
			if our == "" || slices.Contains(corpus.TextFields, our) {
				continue
			}
			column := cmp.Or(theirs[our], our)
			columns[column] = columns[column] || ofAlone
			if !ofAlone {
				format.Fields[our] = ""
			}
		}
	}
	for i := range of { // missing values of columns that are not read
		format := &of[i].Data.Format
		format.Missing = maps.Clone(format.Missing)
		maps.DeleteFunc(format.Missing, func(column string, _ []string) bool {
			ofAlone, ofTargets := columns[column]
			return ofTargets && !ofAlone
		})
	}
}

// fileMistakes reports the error of opening a task's file, or each of several that are joined.
func (r *reader) fileMistakes(task config.Task, file config.File, err error) {
	errs := several(err)
	if r.asked > 0 {
		task = r.e.Tasks[r.asked-1]
	}
	if r.trained && r.data.Missing != nil && slices.ContainsFunc(file.Paths(), isGone) {
		if hint := r.data.Missing(task, file); hint != "" {
			last := len(errs) - 1
			errs[last] = fmt.Errorf("%w; %s", errs[last], hint)
		}
	}
	for _, err := range errs {
		r.mistakes.Add(file.Place, "task %q: %w%s", task.Name, err, r.ofOneFile(task.Data, file, err.Error()))
	}
}

// ofFile matches the advice of an error to set a key that may be another for each file, or to leave it out.
var ofFile = regexp.MustCompile(`(?:^|; )(leave out )?(encoding|delimiter|offsets): ("(?:[^"\\]|\\.)*"|[^\s,;}]+)`)

// ofOneFile returns the end of an error that advises a key of data: how to set that key for this file alone. It is ""
// for an error that advises none, and for a file that is the only one.
func (r *reader) ofOneFile(data config.Data, file config.File, advice string) string {
	key := ofFile.FindStringSubmatch(advice)
	if key == nil || r.trained {
		return ""
	}
	if key[1] != "" {
		key[3] = "utf-8"
	}
	var entries []string
	others := false
	for _, of := range []struct {
		split string
		file  config.File
	}{{config.Train, data.Train}, {config.Dev, data.Dev}, {config.Test, data.Test}} {
		if of.file.Name == file.Name {
			entries = append(entries, fmt.Sprintf("%s: {path: FILE, %s: %s}", of.split, key[2], key[3]))
		}
		others = others || of.file.Name != "" && of.file.Name != file.Name
	}
	if !others || len(entries) == 0 {
		return ""
	}
	return fmt.Sprintf("; where only this file is written so, data: {%s} reads it", strings.Join(entries, ", "))
}

// isGone reports whether a run that is trained cannot read a file of its data again: it is missing, or a pipe.
func isGone(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist) || files.IsPipe(path)
}

// ExamplesOf returns the examples of a task in a split that is read; nil of a stream.
func (d *Dataset) ExamplesOf(task, split string) []*corpus.Example {
	for g := range d.Groups {
		if d.reads(g, task) {
			return d.Groups[g].Examples[split]
		}
	}
	return nil
}
