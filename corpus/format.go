package corpus

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Format describes how a data file is written and what its columns are named. Its fields are keys of the section data;
// docs/parts.md has their comments. The zero value means the format of the file's extension, before a .gz if there is
// one. In csv and tsv a blank as the delimiter is for files of a label and a text: any number of blanks separate
// columns, and the last column is the rest of the line, unchanged. Without a header the columns are named by Columns,
// and further ones of a row are skipped; without Columns they are 1, 2, ….
type Format struct {
	// format of the files: csv, tsv, json, jsonl, parquet, conll or conllu; slots, a folder with seq.in, seq.out and
	// label; columns, JSON of columns; fasttext, lines with __label__; label_studio; brat, texts with .ann beside them
	Type string `yaml:"format,omitempty" takes:"a format" default:"(by file extension)"`
	// path of keys to the list of records in a file of JSON, as data.items; default: the file is the list
	Records string `yaml:"records,omitempty" takes:"a path of keys" default:"(the file)"`
	// what stands between columns; default: a comma in csv, a tab in tsv, a tab or spaces in conll
	Delimiter string `yaml:"delimiter,omitempty" takes:"any text" default:"(by format)"`
	// quoting of csv and tsv cells: none leaves quotation marks as they are; default: they are read as in RFC 4180
	Quote string `yaml:"quote,omitempty" takes:"the word none" default:"(RFC 4180)"`
	// character encoding of the files, by a name of IANA or the WHATWG: cp1252, utf-16, …
	Encoding string `yaml:"encoding,omitempty" takes:"a name" default:"utf-8"`
	NoHeader bool   `yaml:"header" opposite:"yes" doc:"whether the first line of csv and tsv names the columns"`
	// how lines that are no data begin, as "#" or "# id": lines of conll, csv and tsv that begin so are skipped
	Comments string `yaml:"comments,omitempty" takes:"any text" default:"(none)"`
	// names of the columns by position, in place of a header; _ is a column that is not read
	Columns []string `yaml:"columns,omitempty" takes:"a list of column names"`
	// what start and end of entities and answer_start count, from 0: characters (code points, as Python), bytes of
	// UTF-8, utf16 (code units, as JavaScript and Java), words, of which an entity has its first and its last, or
	// word_bounds, its first and the one after its last
	Offsets string `yaml:"offsets,omitempty" takes:"characters, bytes, utf16, words, word_bounds" default:"characters"`
	// records to use: those whose field, or path as meta.status, has the value or one of a list, for each field named,
	// itself or as an element of its list; '' is an empty or absent one
	Where map[string][]string `yaml:"where,omitempty" one:"yes" takes:"{FIELD: VALUE or [VALUE, …]}"`
	// records to leave out: those in which any of these fields has the value, or one of a list
	WhereNot map[string][]string `yaml:"where_not,omitempty" one:"yes" takes:"{FIELD: VALUE or [VALUE, …]}"`
	// AnyRows reports that a record without a field of Where is used too, as of a file that has no such fields.
	AnyRows bool `yaml:"-"`
	// values that stand for no target, as -1 or n/a: a list for all columns but those of the texts, or one for each of
	// some columns. The targets are as if the field were empty
	Missing map[string][]string `yaml:"missing,omitempty" one:"yes" unnamed:"yes" takes:"a list or {COLUMN: a list}"`
	// field of a file that has a word a row: rows with the same value, one after the other, are a sentence; rows
	// without a value belong to the row before
	Sentence string `yaml:"sentence,omitempty" takes:"a column name"`
	// Fields maps our names (text, pair, words, label, labels, tags, entities, value, question, context, answers, and
	// label.HEAD, tags.HEAD or value.HEAD for one head's own) to the file's: a name, or into an object of a JSON record
	// a path of names, as user.text. One that maps to "" is not read.
	Fields map[string]string `yaml:"-"`
	// Numbers: integers of labels that the file has names for stay integers
	Numbers bool `yaml:"-"`
	// Warn is called with what is likely to be wrong in a file that can be read, once for each kind; it may be nil.
	Warn func(at Place, text string) `yaml:"-"`
}

const formats = "jsonl, json, csv, tsv, parquet, conll, conllu, columns, fasttext, label_studio, brat"

// FormatTypes lists the values of the key format.
func FormatTypes() []string { return append(strings.Split(formats, ", "), "slots") }

// Lines returns f for files that have a text in each line: a table of one column, text.
func (f Format) Lines() Format {
	f.Type, f.Quote, f.Delimiter = "csv", "none", "\x00"
	f.NoHeader, f.Columns = true, []string{"text"}
	return f
}

var extensions = map[string]string{
	".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "json",
	".csv": "csv", ".tsv": "tsv", ".parquet": "parquet", ".conll": "conll", ".conllu": "conllu",
}

// FileType returns the type of the file at path by its extension, before a .gz if there is one; "" if it is not known.
func FileType(path string) string {
	return extensions[strings.ToLower(filepath.Ext(strings.TrimSuffix(path, ".gz")))]
}

// Check returns an error if f is not a valid format for the file at path. It does not read the file.
func (f Format) Check(path string) error {
	f, err := f.settled(path, false)
	if err != nil {
		return err
	}
	if _, err := encodingOf(f.Encoding); err != nil {
		return err
	}
	table := f.Type == "csv" || f.Type == "tsv"
	switch {
	case f.Type == "parquet" && !f.IsUTF8():
		return errors.New("format parquet has no encoding option; its texts are UTF-8")
	case f.Records != "" && f.Type != "json" && f.Type != columnsForm && f.Type != "label_studio":
		return fmt.Errorf("format %s has no records option; json, columns and label_studio have one", f.Type)
	case f.Offsets != "" && !slices.Contains(units, f.Offsets):
		return fmt.Errorf("no offsets %q; want one of %s", f.Offsets, strings.Join(units, ", "))
	case f.Quote != "" && f.Quote != "none":
		return fmt.Errorf("no quote %q; want none, or leave it out for the quotes of RFC 4180", f.Quote)
	case f.Quote != "" && !table:
		return fmt.Errorf("format %s has no quote; csv and tsv have one", f.Type)
	case f.NoHeader && !table:
		return fmt.Errorf("format %s has no header; csv and tsv have one", f.Type)
	case f.Columns != nil && !table && f.Type != "conll":
		return fmt.Errorf("format %s has no columns option; csv, tsv and conll have one", f.Type)
	case f.Columns != nil && len(f.Columns) == 0:
		return errors.New("columns is empty; name them, or leave columns out")
	case f.Sentence != "" && slices.Contains([]string{"conll", "conllu", "slots", "fasttext", bratForm}, f.Type):
		return fmt.Errorf("format %s has no sentence, as no record of it is a word: leave it out; csv, tsv, json, "+
			"jsonl, columns, label_studio and parquet have one", f.Type)
	case f.Delimiter != "" && !table && f.Type != "conll":
		return fmt.Errorf("format %s has no delimiter; csv, tsv and conll have one", f.Type)
	case f.Comments != "" && !table && f.Type != "conll":
		return fmt.Errorf("format %s has no comments option; csv, tsv and conll have one", f.Type)
	case strings.ContainsAny(f.Comments, "\"\r\n") || f.Comments != "" && strings.Trim(f.Comments, " \t") == "":
		return fmt.Errorf("comments %q; want how such lines begin, as \"#\", without quotes and line ends", f.Comments)
	case strings.ContainsAny(f.Delimiter, "\r\n") || table && f.quoted() && strings.Contains(f.Delimiter, `"`):
		return fmt.Errorf("delimiter %q cannot separate columns; it takes any text without quotes and line ends",
			f.Delimiter)
	case table && f.blank() && f.NoHeader && len(f.Columns) == 0:
		return fmt.Errorf("delimiter %q without columns; columns: [label, text] sets how many there are", f.Delimiter)
	}
	if err := f.checkRowKeys(); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, c := range f.Columns {
		if c != "" && c != "_" && seen[c] {
			return fmt.Errorf("two columns are named %q; each has a name of its own, _ skips one", c)
		}
		seen[c] = true
	}
	return nil
}

// settled returns f with its defaults filled in for the file at path.
func (f Format) settled(path string, folder bool) (Format, error) {
	if f.Type == "" {
		f.Type = FileType(path)
		switch {
		case f.Type == "" && folder:
			f.Type = "slots"
		case f.Type == "" && f.Delimiter != "":
			f.Type = "csv"
		case f.Type == "":
			extension := strings.ToLower(filepath.Ext(strings.TrimSuffix(path, ".gz")))
			return f, fmt.Errorf("extension %q has no known format; format: TYPE sets it, one of %s", extension,
				formats)
		}
	}
	switch f.Type {
	case "jsonl", "json", "parquet", "conll", "conllu", "slots", columnsForm, "fasttext", "label_studio", bratForm:
	case "csv", "tsv":
		if f.Delimiter == "" {
			f.Delimiter = map[string]string{"csv": ",", "tsv": "\t"}[f.Type]
		}
	default:
		return f, fmt.Errorf("no format %q; available: %s, and slots for a folder", f.Type, formats)
	}
	if f.Encoding == "" {
		f.Encoding = "utf-8"
	}
	return f, nil
}

func (f Format) blank() bool { return f.Delimiter != "" && strings.Trim(f.Delimiter, " ") == "" }

func (f Format) quoted() bool { return f.Quote == "" && !f.blank() }
