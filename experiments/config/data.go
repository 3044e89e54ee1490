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

	written dataOptions // keys of files as they are written, which a kept task of a later run takes over
	unset   []string    // keys of a kept task that have their defaults in place of the base run's values
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
}

// dataOptions are the keys of a task's `data`: one file that `split` divides (`path`), or a file for each split, or the
// task whose texts are read (`same_as`). Paths are relative to the experiment file, else to $JENGA_DATA. A file that is
// written in another way than the others is a mapping of its path and its own `format`, `delimiter`, `quote`,
// `encoding`, `header` and `columns`, as `dev: {path: dev.csv, header: false, columns: [text, label]}`. Several files
// are a list, or a pattern as `data/part-*.jsonl`, whose files are read in the order of their names. A column's name
// may be a path into JSON: `text: user.text` reads {"user": {"text": "…"}}.
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
type dataOptions struct {
	// task whose texts this one reads too: each is encoded once for both; only columns may be given beside it
	SameAs string `yaml:"same_as,omitempty" takes:"a task's name"`

	// one file, or several as of train, which split divides
	Path *plugin.Section `yaml:"path,omitempty" takes:"a path, a list of paths or {path: …}"`
	// file of the training examples, or several: a list, or a pattern as data/part-*.jsonl, whose files are read in the
	// order of their names; path, dev and test take these too
	Train *plugin.Section `yaml:"train,omitempty" takes:"a path, a list of paths or {path: …}"`
	// file of the examples that select the best checkpoint
	Dev *plugin.Section `yaml:"dev,omitempty" takes:"a path, a list of paths or {path: …}"`
	// file of test examples, or several as of train
	Test *plugin.Section `yaml:"test,omitempty" takes:"a path, a list of paths or {path: …}"`

	fileOptions `yaml:",inline"`

	// where a text without words is split into words, for tasks with an output for each word
	SplitWords string `yaml:"split_words,omitempty" choice:"auto|punctuation|ends|clitics|treebank|whitespace"`

	Split *plugin.Section `yaml:"split,omitempty"`
	// number of training examples to use, a random sample; 0: all
	Limit int `yaml:"limit,omitempty" range:"[0,)"`

	// whether training examples are read from their file when a batch needs them, for files larger than memory: jsonl,
	// csv, tsv, conll and conllu, unpacked and in utf-8. A first pass finds labels, lengths and the places of records;
	// the weights are the same bytes as without
	Stream bool `yaml:"stream,omitempty"`

	columnOptions `yaml:",inline"`
}

// fileOptions are how files are written; the keys of a file's mapping beside its path.
type fileOptions struct {
	// format of the files; slots is a folder with seq.in, seq.out and label
	Format string `yaml:"format,omitempty" takes:"csv, tsv, json, jsonl, parquet, conll, conllu or slots" default:"(by file extension)"`
	// what stands between columns; default: a comma in csv, a tab in tsv, a tab or spaces in conll
	Delimiter string `yaml:"delimiter,omitempty" takes:"any text" default:"(by format)"`
	// quoting of csv and tsv cells: none leaves quotation marks as they are; default: they are read as in RFC 4180
	Quote string `yaml:"quote,omitempty" takes:"the word none" default:"(RFC 4180)"`
	// character encoding of the files, by a name of IANA or the WHATWG: cp1252, utf-16, …
	Encoding string `yaml:"encoding,omitempty" takes:"a name" default:"utf-8"`
	Header   bool   `yaml:"header" doc:"whether the first line of csv and tsv names the columns"`
	// names of the columns by position, in place of a header; _ is a column that is not read
	Columns []string `yaml:"columns,omitempty" takes:"a list of column names"`
}

// ownFile are the keys of the mapping of a file with options of its own.
type ownFile struct {
	Path *plugin.Section `yaml:"path"`

	fileOptions `yaml:",inline"`
}

// columnOptions are the names of the columns, or keys of JSON, that tasks read, where these differ from the defaults. A
// key of an object within a record is a path: `text: user.text` reads {"user": {"text": "…"}}.
type columnOptions struct {
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

var dataDefaults = dataOptions{fileOptions: fileOptions{Header: true}, SplitWords: autoSplit}

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

func (d *decoding) data(owner string, task *Task, s, dataPath, of *plugin.Section) Data {
	raw := dataDefaults
	if s != nil && s.Kind != plugin.Null && s.Kind != plugin.Mapping {
		d.mistakes.Add(s.Place, "%s: data: want a mapping as {train: FILE, dev: FILE}, have %s", owner, s)
		return Data{}
	}
	s = orEmpty(s, of)
	s.Decode(owner+": data", &raw, &d.mistakes, targetFields()...)
	d.inheritFiles(&raw, s)

	var data Data
	data.Format = raw.format()
	data.Format.Fields = d.inheritColumns(d.fields(owner, task, s), task, s)
	data.Limit, data.Stream = raw.Limit, raw.Stream
	if data.SplitWords = raw.SplitWords; raw.SplitWords == autoSplit {
		data.SplitWords = ""
	}
	data.unset = unsetKeys(task, raw, s)
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
	data.written, data.written.Path = raw, path
	read, own := map[string]corpus.Format{}, map[string]corpus.Format{} // of the files so far, by name
	file := func(s *plugin.Section, what string) File {
		file, format := d.file(raw.fileOptions, s, owner, what)
		if file.Name == "" {
			return file
		}
		if before, again := read[file.Name]; again && d.files && !reflect.DeepEqual(before, format) {
			// a run trained with it still opens
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

func (o fileOptions) format() corpus.Format {
	return corpus.Format{
		Type: o.Format, NoHeader: !o.Header, Columns: o.Columns,
		Delimiter: o.Delimiter, Quote: o.Quote, Encoding: o.Encoding,
	}
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
	for split, file := range map[string]File{Train: data.Train, Dev: data.Dev, Test: data.Test} {
		if data.Path.given() && file.given() {
			d.mistakes.Add(file.Place, "%s: data: %s: unexpected beside path or data_path; leave one out", owner,
				split)
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
	d.inheritSplit(&split, data, s)
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
	s := plugin.SectionOf(f.files(d))
	if !d.Format.NoHeader || d.SameAs != "" {
		s.Remove("header")
	}
	fields := d.Format.Fields
	for _, name := range fieldNames() {
		if column, named := fields[name]; named {
			s.Put(name, plugin.SectionOf(column))
		}
	}
	for _, key := range d.unset { // of a kept task
		in, null := s, plugin.SectionOf((*plugin.Section)(nil))
		if inner, ok := strings.CutPrefix(key, "split."); ok {
			in, key = s.At("split"), inner
		}
		if in != nil && in.Kind == plugin.Mapping && in.At(key) == nil {
			in.Put(key, null)
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
	return plugin.SectionOf(ownFile{Path: f.paths(file), fileOptions: optionsOf(format)})
}

func optionsOf(f corpus.Format) fileOptions {
	return fileOptions{
		Format: f.Type, Delimiter: f.Delimiter, Quote: f.Quote, Encoding: f.Encoding, Header: !f.NoHeader,
		Columns: f.Columns,
	}
}

// files returns the options of a task's data without the columns.
func (f *writing) files(d Data) dataOptions {
	if d.SameAs != "" {
		return dataOptions{SameAs: d.SameAs}
	}
	o := dataOptions{
		Path: f.file(d, d.Path), Train: f.file(d, d.Train), Dev: f.file(d, d.Dev), Test: f.file(d, d.Test),
		fileOptions: optionsOf(d.Format), SplitWords: d.SplitWords, Limit: d.Limit, Stream: d.Stream,
	}
	if d.Split != (Split{}) || d.Dev.Name == "" {
		o.Split = plugin.SectionOf(d.Split)
		if d.Split == (Split{}) {
			o.Split.Remove("seed")
		}
	}
	return o
}
