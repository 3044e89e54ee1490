package config

import (
	"math"
	"reflect"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// Data is the location and format of a task's examples. Where SameAs names a task, all except Format.Fields are copied
// from that task.
type Data struct {
	Train, Dev, Test File
	Path             File // one file that Split divides, instead of the three
	SameAs           string
	Format           corpus.Format
	Formats          map[string]corpus.Format // of files with options of their own, by name; without Fields
	Split            Split
	Limit            int  // number of training examples that are used; 0: all
	Stream           bool // training examples are read when they are needed, and not kept in memory
	// SplitWords is how texts without words are split into words (corpus.Splitter); "": as agrees best with the words
	// of the training data
	SplitWords string

	unset []string // keys of a kept task that have their defaults in place of the base run's values
}

// autoSplit is the value of split_words for Data.SplitWords "".
const autoSplit = "auto"

// Path is the key of one file of a task's data for all splits.
const Path = "path"

// Splits of a task's data.
const (
	Train = "train"
	Dev   = "dev"
	Test  = "test"
)

// FormatOf returns the format of a file of the data, or of another file in place of one.
func (d Data) FormatOf(name string) corpus.Format {
	format, own := d.Formats[name]
	if !own {
		return d.Format
	}
	format.Fields = d.Format.Fields
	return format
}

// Split is how many examples dev and test take from the training examples. A value below 1 is a fraction, from 1 on a
// number of examples; 0 is none.
type Split struct {
	Dev  float64 `yaml:"dev" range:"[0,)" default:"(0.2, 0.1 or 0)"`
	Test float64 `yaml:"test" range:"[0,)" doc:"examples that test takes, a fraction or a number of examples as of dev"`
	Seed uint64  `yaml:"seed" range:"[0,)" default:"(seed)"`
	By   string  `yaml:"by,omitempty" takes:"a column name"`
}

// fieldNames returns the fields of a record whose columns data may name: those of columnOptions, and those of other
// output kinds.
func fieldNames() []string { return append(plugin.KeysOf(columnOptions{}), targetFields()...) }

// targetFields returns the fields of output kinds that are not in columnOptions, as of a kind of another module.
func targetFields() []string {
	known := plugin.KeysOf(columnOptions{})
	var names []string
	for _, kind := range outputs.Kinds() {
		if field := kind.Field(); field != "" && !slices.Contains(known, field) && !slices.Contains(names, field) {
			names = append(names, field)
		}
	}
	return names
}

// shared are the fields that have one column for all heads of a task.
var shared = []string{"text", "pair", "words", "entities", "question", "context", "answers"}

// perHead returns the prefix of a field for a single head: "label." for "label". It is "" for a field that all heads
// have in common.
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
	raw := dataDefaults
	if s != nil && s.Kind != plugin.Null && s.Kind != plugin.Mapping {
		d.mistakes.Add(s.Place, "%s: data: want a mapping as {train: FILE, dev: FILE}, have %s", owner, s)
		return Data{}
	}
	s = orEmpty(s, of)
	s.Decode(owner+": data", &raw, &d.mistakes, targetFields()...)

	var data Data
	data.Format = raw.format()
	data.Format.Fields = d.fields(owner, task, s)
	data.Limit, data.Stream = raw.Limit, raw.Stream
	if data.SplitWords = raw.SplitWords; raw.SplitWords == autoSplit {
		data.SplitWords = ""
	}
	data.unset = unsetKeys(task, s)
	if data.SameAs = raw.SameAs; raw.SameAs != "" {
		d.onlyFields(owner, s, dataPath)
		return data
	}

	path, what := raw.Path, "data: path"
	if dataPath != nil && dataPath.Kind != plugin.Null {
		if s.Has("path") {
			d.mistakes.Add(raw.Path.Place, "%s: data: path and data_path mean the same; leave one out", owner)
		}
		path, what = dataPath, "data_path"
	}
	read, own := map[string]corpus.Format{}, map[string]corpus.Format{} // of the files so far, by name
	file := func(s *plugin.Section, what string) File {
		file, format := d.file(raw.fileOptions, s, owner, what)
		if file.Name == "" {
			return file
		}
		if before, again := read[file.Name]; again && !reflect.DeepEqual(before, format) && d.files { // a run trained with it still opens
			d.mistakes.Add(file.Place, "%s: %s: %s has other options in another split; give it the same in both",
				owner, what, file.Name)
		} else if s.Kind == plugin.Mapping {
			own[file.Name] = format
		}
		read[file.Name] = format
		return file
	}
	data.Path = file(path, what)
	data.Train = file(raw.Train, "data: train")
	data.Dev = file(raw.Dev, "data: dev")
	data.Test = file(raw.Test, "data: test")
	if len(own) > 0 {
		data.Formats = own
	}
	d.checkFiles(owner, data, s)
	d.checkStream(owner, data, s)
	data.Split = d.split(owner, data, raw.Split)
	return data
}

// file reads a file's path, or a mapping with its path and options of its own, which are otherwise those of data. The
// format is without Fields.
func (d *decoding) file(options fileOptions, s *plugin.Section, owner, what string) (File, corpus.Format) {
	if s == nil || s.Kind != plugin.Mapping {
		return d.dataFiles(s, owner, what), options.format()
	}
	own := ownFile{fileOptions: options}
	s.Decode(owner+": "+what, &own, &d.mistakes)
	if !s.Has("path") {
		d.mistakes.Add(s.Place, "%s: %s: no path; want a path, or {path: FILE, header: false} and the like", owner,
			what)
		return File{Place: s.Place}, corpus.Format{}
	}
	return d.dataFiles(own.Path, owner, what), own.format()
}

// format returns the options as a format without Fields.
func (o fileOptions) format() corpus.Format {
	return corpus.Format{
		Type: o.Format, NoHeader: !o.Header, Columns: o.Columns,
		Delimiter: o.Delimiter, Quote: o.Quote, Encoding: o.Encoding,
	}
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
					d.mistakes.Add(e.Place, "%s: data: %s: %s", owner, name,
						plugin.Unknown("head", e.Key, task.HeadNames()))
				case e.Value.Kind >= plugin.List || e.Value.Kind == plugin.Null:
					d.mistakes.Add(e.Value.Place, "%s: data: %s: want a column's name, have %s", owner, name, e.Value)
				default:
					fields[perHead(name)+e.Key] = e.Value.Text
				}
			}
		case perHead(name) != "":
			d.mistakes.Add(column.Place, "%s: data: %s: want a column's name, or one for each head, have %s", owner,
				name, column)
		default:
			d.mistakes.Add(column.Place, "%s: data: %s: want a column's name, have %s", owner, name, column)
		}
	}
	for _, name := range []string{"question", "context"} {
		if other := sameText[name]; fields[name] != "" && fields[other] != "" && d.files {
			d.mistakes.Add(s.At(name).Place, "%s: data: %s: %s names the same text; leave one out", owner, name, other)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// onlyFields rejects all keys of data except columns, for a task with same_as.
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

// checkFiles rejects files that contradict one another or their format.
func (d *decoding) checkFiles(owner string, data Data, s *plugin.Section) {
	if !data.Path.given() && !data.Train.given() {
		d.mistakes.Add(s.Place,
			"%s: no training data; want data: {train: FILE, dev: FILE}, or data: {path: FILE} to divide", owner)
	}
	for _, split := range []string{Train, Dev, Test} {
		if data.Path.given() && data.file(split).given() {
			d.mistakes.Add(data.file(split).Place, "%s: data: %s: unexpected beside path or data_path; leave one out",
				owner, split)
		}
	}
	for _, f := range []File{data.Path, data.Train, data.Dev, data.Test} {
		for _, path := range f.Paths() {
			if path == "" || !runfolder.Exists(path) || runfolder.IsFolder(path) {
				continue
			}
			if err := data.FormatOf(f.Name).Check(path); err != nil {
				d.mistakes.Add(f.Place, "%s: %s: %w", owner, path, err)
				return
			}
		}
	}
}

// split reads how many training examples dev and test take.
func (d *decoding) split(owner string, data Data, s *plugin.Section) Split {
	split := Split{Seed: d.e.Seed}
	switch {
	case data.Path.given():
		split.Dev = 0.2
	case !data.Dev.given():
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
			d.mistakes.Add(s.At(part.name).Place,
				"%s: data: split: %s: want a fraction below 1 or a whole number, have %v", owner, part.name, part.value)
		case part.value > 0 && part.file.given():
			d.mistakes.Add(s.At(part.name).Place, "%s: data: split: %s: data has a %s file; leave one out", owner,
				part.name, part.name)
		}
	}
	if split.Dev < 1 && split.Test < 1 && split.Dev+split.Test >= 1 {
		d.mistakes.Add(s.Place, "%s: data: split: dev and test take all examples; leave some to train on", owner)
	}
	if split.Dev > 0 || split.Test > 0 {
		return split
	}
	for _, key := range []string{"seed", "by"} {
		if s.Has(key) && d.files { // a run trained with it still opens
			d.mistakes.Add(s.At(key).Place,
				"%s: data: split: %s: nothing is divided; leave it out, or say how much goes to dev or test", owner,
				key)
		}
	}
	return Split{}
}
