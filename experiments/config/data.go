package config

import (
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

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
	// examples of the training file that dev takes: below 1 a fraction of them, from 1 on a number of examples.
	// Default: 0.2 of path, 0.1 of train if there is no dev file, else 0
	Dev  float64 `yaml:"dev" range:"[0,)" default:"(0.2, 0.1 or 0)"`
	Test float64 `yaml:"test" range:"[0,)" doc:"examples that test takes, a fraction or a number of examples as of dev"`
	// random seed of the order in which they are taken; default: the experiment's seed
	Seed uint64 `yaml:"seed" range:"[0,)" default:"(seed)"`
	// field, or path as patient.id, whose examples with the same value stay in one split, which is not stratified then;
	// none: each example by itself. A split takes the groups, in random order, that do not take its number of examples
	// further from the wanted one; where all are too large, the smallest
	By string `yaml:"by,omitempty" takes:"a column name"`
	// field, or path as meta.split, that says which split a record of path or train is of: train (training), dev (val,
	// valid, validation), test (testing), in any case. dev and test above take examples of train where it names none of
	// theirs
	Column string `yaml:"column,omitempty" takes:"a column name"`
}

// Clean says how labels as people write them are read; in the order of its fields.
type Clean struct {
	Trim bool `yaml:"trim,omitempty" doc:"whether labels lose white space at both ends"`
	// labels of the data, as they are written or in lower case, and those that they are read as; of tags of spans also
	// without the B- and the like. One that is read as '' is missing
	Map   map[string]string `yaml:"map,omitempty" takes:"{LABEL: LABEL}"`
	Lower bool              `yaml:"lower,omitempty" doc:"whether labels that map does not have are read in lower case"`
}

// Label returns the label that one of the data is read as. span: it is a tag of spans, as B-PER, of which the label is
// PER.
func (c Clean) Label(name string, span bool) string {
	if c.Trim {
		name = strings.TrimSpace(name)
	}
	if to, mapped := c.Map[name]; mapped {
		return to
	}
	prefix := ""
	if span {
		position, label, tagged := strings.Cut(name, "-")
		if !tagged {
			return name
		}
		prefix, name = position+"-", label
	}
	to, mapped := c.Map[name]
	switch {
	case mapped:
	case c.Lower:
		name = strings.ToLower(name)
		if to, mapped = c.Map[name]; !mapped {
			to = name
		}
	default:
		to = name
	}
	if to == "" {
		return ""
	}
	return prefix + to
}

// IsZero reports whether labels are read as they are written.
func (c Clean) IsZero() bool { return !c.Trim && !c.Lower && len(c.Map) == 0 }

// Data is the section `data` of a task: one file that `split` divides (`path`), or a file for each split, or the
// task whose texts are read (`same_as`). Paths are relative to the experiment file, else to $JENGA_DATA. A file that is
// written in another way than the others is a mapping of its path and its own `format`, `delimiter`, `quote`,
// `encoding`, `comments`, `header` and `columns`, as `dev: {path: dev.csv, header: false, columns: [text, label]}`.
// Several files are a list, or a pattern as `data/part-*.jsonl`, whose files are read in the order of their names. A
// column's name may be a path into JSON: `text: user.text` reads {"user": {"text": "…"}}.
//
// `split` and `limit` take random examples, the latter by the experiment's seed, and keep the order of the file; where
// the first head has one label for each text, each label keeps its share, and at least one training example where there
// are enough. The run folder lists in splits.jsonl which lines of the file are in which split.
//
// `split_words` is where texts without words are split for tasks with an output for each word: at white space and at
// every punctuation mark (`punctuation`), at white space and the marks at a word's ends (`ends`), there and before
// English clitics as 's and n't (`clitics`), there and at hyphens, slashes and brackets, where marks that repeat are
// one word, as treebanks of English do (`treebank`), or at white space alone. `auto` is the way that agrees best with
// the words that the training data gives, else `punctuation`; the run folder's experiment.yaml has it.
type Data struct {
	// task whose texts this one reads too: each is encoded once for both; only columns, missing and clean may be given
	// beside it
	SameAs string `yaml:"same_as,omitempty" takes:"a task's name"`

	// one file, or several as of train, which split divides
	Path File `yaml:"path,omitempty" takes:"a path, a list of paths or {path: …}"`
	// file of the training examples, or several: a list, or a pattern as data/part-*.jsonl, whose files are read in the
	// order of their names; path, dev and test take these too
	Train File `yaml:"train,omitempty" takes:"a path, a list of paths or {path: …}"`
	// file of the examples that select the best checkpoint
	Dev File `yaml:"dev,omitempty" takes:"a path, a list of paths or {path: …}"`
	// file of test examples, or several as of train
	Test File `yaml:"test,omitempty" takes:"a path, a list of paths or {path: …}"`

	Format corpus.Format `yaml:",inline"`

	// where a text without words is split into words, for tasks with an output for each word
	SplitWords string `yaml:"split_words,omitempty" choice:"auto|punctuation|ends|clitics|treebank|whitespace"`

	// how labels are read that are not written alike: {trim: true, lower: true, map: {hi: high}}
	Clean Clean `yaml:"clean,omitempty"`
	// whether a record is left out that has the texts and targets of an earlier one of its file (true), or the texts of
	// an earlier one, whatever its targets are (keep_first)
	Dedupe string `yaml:"dedupe,omitempty" choice:"false|true|keep_first" default:"false"`

	Split Split `yaml:"split"`
	// number of training examples to use, a random sample; 0: all
	Limit int `yaml:"limit,omitempty" range:"[0,)"`

	// whether training examples are read from their file when a batch needs them, for files larger than memory: jsonl,
	// csv, tsv, conll and conllu, unpacked and in utf-8. A first pass finds labels, lengths and the places of records;
	// the weights are the same bytes as without
	Stream bool `yaml:"stream,omitempty"`

	columns `yaml:",inline"` // as they are read; Format.Fields has them

	Formats map[string]corpus.Format `yaml:"-"` // of files with options of their own, by name; without Fields
	given   []plugin.Entry           `yaml:"-"` // of a kept task's data
}

type ownFile struct {
	Path *plugin.Section `yaml:"path"`

	Format corpus.Format `yaml:",inline"`
}

// columns are the names of the columns, or keys of JSON, that tasks read, where these differ from the defaults. A
// key of an object within a record is a path: `text: user.text` reads {"user": {"text": "…"}}.
type columns struct {
	Text   *plugin.Section `yaml:"text,omitempty" doc:"column of the text"`
	Pair   *plugin.Section `yaml:"pair,omitempty" doc:"column of a second text"`
	Words  *plugin.Section `yaml:"words,omitempty" doc:"column of the text as a list of words"`
	Label  *plugin.Section `yaml:"label,omitempty" doc:"column of the label"`
	Labels *plugin.Section `yaml:"labels,omitempty" doc:"column of a list of labels; without it that of label"`
	Tags   *plugin.Section `yaml:"tags,omitempty" doc:"column of the words' tags"`
	// column of labelled spans, if there are no tags; their start and end count characters
	Entities *plugin.Section `yaml:"entities,omitempty"`
	Value    *plugin.Section `yaml:"value,omitempty" doc:"column of a number; without it that of label, else score"`
	Question *plugin.Section `yaml:"question,omitempty" doc:"column of a question"`
	Context  *plugin.Section `yaml:"context,omitempty" doc:"column of the text that the question is about"`
	// column of the parts of the context that answer it; an answer_start counts characters
	Answers *plugin.Section `yaml:"answers,omitempty"`
}

var dataDefaults = Data{SplitWords: autoSplit}

// fieldNames returns the fields of a record whose columns data may name: those of columns, and those of other
// output kinds.
func fieldNames() []string { return append(plugin.KeysOf(columns{}), targetFields()...) }

// targetFields returns the fields of output kinds that are not in columns, as of a kind of another module.
func targetFields() []string {
	known := plugin.KeysOf(columns{})
	var names []string
	for _, kind := range outputs.Kinds() {
		if field := kind.Field; field != "" && !slices.Contains(known, field) && !slices.Contains(names, field) {
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
	if slices.Contains(shared, field) {
		return ""
	}
	for _, kind := range outputs.Kinds() {
		if kind.Field == field {
			return kind.HeadField("")
		}
	}
	return field + "."
}

func (d *decoding) data(owner string, task *Task, s, dataPath, of *plugin.Section) Data {
	if s != nil && s.Kind != plugin.Null && s.Kind != plugin.Mapping {
		d.mistakes.Add(s.Place, "%s: data: want a mapping as {train: FILE, dev: FILE}, have %s", owner, s)
		return Data{}
	}
	s = orEmpty(s, of)
	data := dataDefaults
	s.Decode(owner+": data", &data, &d.mistakes, targetFields()...)
	d.inheritData(&data, s)
	data.columns = columns{}
	data.Format.Fields = d.inheritColumns(d.fields(owner, task, s), task, s)
	if data.SplitWords == autoSplit {
		data.SplitWords = ""
	}
	if task.Keep {
		data.given = s.Entries
	}
	if data.SameAs != "" {
		d.onlyFields(owner, s, dataPath)
		return Data{SameAs: data.SameAs, Format: corpus.Format{Fields: data.Format.Fields,
			Missing: data.Format.Missing},
			Clean: data.Clean, given: data.given}
	}

	path := "data: path"
	if dataPath != nil && dataPath.Kind != plugin.Null {
		if data.Path.given() {
			d.mistakes.Add(data.Path.Place, "%s: data: path and data_path mean the same; leave one out", owner)
		}
		data.Path, path = File{section: dataPath}, "data_path"
	}
	read := map[string]corpus.Format{} // formats of the files so far, by name
	for i, file := range data.files() {
		what := []string{path, "data: train", "data: dev", "data: test"}[i]
		format, own := d.file(file, data.Format, owner, what)
		if file.Name == "" {
			continue
		}
		if before, again := read[file.Name]; again && d.files && !reflect.DeepEqual(before, format) {
			// a run trained with it still opens
			d.mistakes.Add(file.Place, "%s: %s: %s has other options in another split; give it the same in both",
				owner, what, file.Name)
		} else if own {
			if data.Formats == nil {
				data.Formats = map[string]corpus.Format{}
			}
			data.Formats[file.Name] = format
		}
		read[file.Name] = format
	}
	d.checkFiles(owner, data, s)
	d.checkStream(owner, data, s)
	d.split(owner, &data, s.At("split"))
	return data
}

// files returns the files of the data; those that there are not have no name.
func (d *Data) files() []*File { return []*File{&d.Path, &d.Train, &d.Dev, &d.Test} }

// file finds a file by its section: a path, or a mapping with its path and options of its own, which are otherwise
// those of data. The format that it returns is without Fields.
func (d *decoding) file(file *File, format corpus.Format, owner, what string) (f corpus.Format, own bool) {
	s := file.section
	defer func() { file.section = s }()
	format.Fields = nil
	if s == nil || s.Kind != plugin.Mapping {
		*file = d.dataFiles(s, owner, what)
		return format, false
	}
	o := ownFile{Format: format}
	s.Decode(owner+": "+what, &o, &d.mistakes)
	if !s.Has("path") {
		d.mistakes.Add(s.Place, "%s: %s: no path; want a path, or {path: FILE, header: false} and the like", owner,
			what)
		*file = File{Place: s.Place}
		return format, false
	}
	*file = d.dataFiles(o.Path, owner, what)
	return o.Format, true
}

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
				case !slices.Contains(task.HeadNames(), e.Key) && slices.Contains(plugin.KeysOf(Clean{}), e.Key):
					d.mistakes.Add(e.Place, "%s: data: %s has the columns of heads; clean: {%s: …} cleans labels",
						owner,
						name, e.Key)
				case !slices.Contains(task.HeadNames(), e.Key):
					d.mistakes.Add(e.Place, "%s: data: %s: %s", owner, name,
						plugin.Unknown("head", e.Key, task.HeadNames()))
				case e.Value.Kind >= plugin.List || e.Value.Kind == plugin.Null:
					d.mistakes.Add(e.Value.Place, "%s: data: %s: want a column's name, have %s", owner, name, e.Value)
				default:
					fields[perHead(name)+e.Key] = e.Value.Text
				}
			}
		default:
			or := ""
			if perHead(name) != "" {
				or = ", or one for each head"
			}
			d.mistakes.Add(column.Place, "%s: data: %s: want a column's name%s, have %s", owner, name, or, column)
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

func (d *decoding) onlyFields(owner string, s, dataPath *plugin.Section) {
	if dataPath != nil && dataPath.Kind != plugin.Null {
		d.mistakes.Add(dataPath.Place, "%s: data_path: the texts are those of data: same_as; leave one out", owner)
	}
	for _, e := range s.Entries {
		if !slices.Contains([]string{"same_as", "missing", "clean"}, e.Key) && !slices.Contains(fieldNames(), e.Key) &&
			!isUnknown(e) {
			d.mistakes.Add(e.Place, "%s: data: %s: the texts are those of same_as; leave one out", owner, e.Key)
		}
	}
}

// isUnknown reports whether an entry of data has no key of it, which is a mistake already.
func isUnknown(e plugin.Entry) bool {
	return !slices.Contains(plugin.KeysOf(dataDefaults), e.Key) && !slices.Contains(targetFields(), e.Key)
}

func (d *decoding) checkFiles(owner string, data Data, s *plugin.Section) {
	if !data.Path.given() && !data.Train.given() && !slices.ContainsFunc(s.Entries, isUnknown) {
		d.mistakes.Add(s.Place,
			"%s: no training data; want data: {train: FILE, dev: FILE}, or data: {path: FILE} to divide", owner)
	}
	for split, file := range map[string]File{Train: data.Train, Dev: data.Dev, Test: data.Test} {
		if data.Path.given() && file.given() {
			d.mistakes.Add(file.Place, "%s: data: %s: unexpected beside path or data_path; leave one out", owner,
				split)
		}
	}
	for _, f := range data.files() {
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

func (d *decoding) split(owner string, data *Data, s *plugin.Section) {
	split := &data.Split
	if !s.Has("seed") {
		split.Seed = d.e.Seed
	}
	switch {
	case s.Has(Dev):
	case data.Path.given():
		split.Dev = 0.2
	case !data.Dev.given():
		split.Dev = 0.1
	}
	d.inheritSplit(data, s)
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
	if split.Dev > 0 || split.Test > 0 || split.Column != "" {
		return
	}
	for _, key := range []string{"seed", "by"} {
		if s.Has(key) && d.files { // a run trained with it still opens
			d.mistakes.Add(s.At(key).Place,
				"%s: data: split: %s: nothing is divided; leave it out, or say how much goes to dev or test", owner,
				key)
		}
	}
	*split = Split{}
}

// checkStream rejects stream: true where the files or the heads of a task cannot be read from any place.
func (d *decoding) checkStream(owner string, data Data, s *plugin.Section) {
	if !data.Stream || !d.files {
		return
	}
	train := data.Train
	if data.Path.Name != "" {
		train = data.Path
	}
	if train.Name == "" {
		return
	}
	at := orEmpty(s.At("stream"), s).Place // a kept task may have it of the run
	for _, path := range train.Paths() {
		if runfolder.IsFolder(path) {
			d.mistakes.Add(at, "%s: data: stream: %s is a folder, which is read as a whole; want a file", owner, path)
			return
		}
		if err := data.FormatOf(train.Name).CheckStream(path); err != nil {
			d.mistakes.Add(at, "%s: data: stream: %s: %w", owner, path, err)
			return
		}
	}
}

func (f *writing) data(d Data) *plugin.Section {
	fields, given := d.Format.Fields, d.given
	if d.SameAs != "" {
		d = Data{SameAs: d.SameAs, Format: corpus.Format{Missing: d.Format.Missing}, Clean: d.Clean}
	}
	for _, file := range d.files() {
		file.section = f.file(d, *file)
	}
	s := plugin.SectionOf(d)
	if !d.Format.NoHeader {
		s.Remove("header")
	}
	shortMissing(s)
	switch {
	case d.Split != (Split{}):
	case d.SameAs != "" || d.Dev.Name != "":
		s.Remove("split")
	default:
		s.At("split").Remove("seed")
	}
	for _, name := range fieldNames() {
		if column, named := fields[name]; named {
			s.Put(name, plugin.SectionOf(column))
		}
	}
	for _, e := range given { // a key that is left out has the base run's value
		if s.At(e.Key) == nil && !slices.Contains(fieldNames(), e.Key) {
			s.Put(e.Key, e.Value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		kind, head, ok := strings.Cut(name, ".")
		if !ok {
			continue
		}
		if _, both := fields[kind]; both {
			kind += "s" // the singular key has the column of the other heads
		}
		if s.At(kind) == nil {
			s.Put(kind, &plugin.Section{Kind: plugin.Mapping})
		}
		s.At(kind).Put(head, plugin.SectionOf(fields[name]))
	}
	return s
}

// file returns the path of a file of the data, with its options if it has some of its own; nil for none.
func (f *writing) file(d Data, file File) *plugin.Section {
	format, own := d.Formats[file.Name]
	if !own {
		return f.paths(file)
	}
	s := plugin.SectionOf(ownFile{Path: f.paths(file), Format: format})
	shortMissing(s)
	return s
}

// shortMissing writes missing values of all columns as the list that they are.
func shortMissing(s *plugin.Section) {
	if missing := s.At("missing"); missing != nil && len(missing.Entries) == 1 && missing.At("") != nil {
		s.Put("missing", missing.At(""))
	}
}
