// Package inputs reads lines and records of input as examples, by the columns that the data of a run's tasks has.
package inputs

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// Columns are those of the data that texts are in.
type Columns struct {
	// Names has the names of the columns for text, pair and words, in the order of lookup, and for question, if a task
	// extracts spans of a context.
	Names map[string][]string
	// Missing has the values of a column that stand for no text: a first text that is one is empty, a second one none.
	Missing map[string][]string
}

// ColumnsOf returns the column names in the data of the run's tasks with the given names, of all without names.
func ColumnsOf(data *dataset.Dataset, names ...string) Columns {
	var columns Columns
	for t, task := range data.Experiment.Tasks {
		if len(names) > 0 && !slices.Contains(names, task.Name) {
			continue
		}
		columns.add(task.Data.Format)
		for _, own := range task.Data.Formats { // of single files, without names of columns
			columns.add(own)
		}
		if data.Tasks[t].Output().FromContext {
			columns.Names["question"] = []string{"question"}
		}
	}
	return columns
}

// ColumnsIn returns the column names that formats have.
func ColumnsIn(formats ...corpus.Format) Columns {
	var columns Columns
	for _, f := range formats {
		columns.add(f)
	}
	return columns
}

func (c *Columns) add(f corpus.Format) {
	if c.Names == nil {
		c.Names, c.Missing = map[string][]string{}, map[string][]string{}
	}
	for _, named := range [][2]string{
		{"text", "text"}, {"text", "question"}, {"pair", "pair"}, {"pair", "context"}, {"words", "words"},
	} {
		role, theirs := named[0], f.Fields[named[1]]
		if theirs != "" && !slices.Contains(c.Names[role], theirs) {
			c.Names[role] = append(c.Names[role], theirs)
		}
	}
	for column, marks := range f.Missing {
		if column != "" { // those for all columns are none of texts
			c.Missing[column] = slices.Concat(c.Missing[column], marks)
		}
	}
}

// FormatOf returns the format, without names of fields and rules for records, in which the tasks of a run's experiment
// with the given names, all without names, have files of the same type as the one at path, or else with the same known
// extension; the zero Format if they have none.
func FormatOf(e *config.Experiment, path string, names ...string) (format corpus.Format) {
	kind := corpus.FileType(path)
	for _, task := range e.Tasks {
		if len(names) > 0 && !slices.Contains(names, task.Name) {
			continue
		}
		for _, file := range []config.File{task.Data.Path, task.Data.Train} {
			f, named := task.Data.FormatOf(file.Name), corpus.FileType(file.Name)
			f.Fields, f.Where, f.WhereNot = nil, nil, nil // each record is predicted
			switch {
			case file.Name == "":
			case cmp.Or(f.Type, named) == kind:
				return f
			case kind != "" && named == kind && format.Type == "":
				format = f
			}
		}
	}
	return format
}

// NamedAlike returns one of the run's data files whose name ends as that of path, and its type, where the type is
// not known by the name: as lines, path may be read otherwise than that file is. ok is false if there is none.
func NamedAlike(data *dataset.Dataset, path string) (name, kind string, ok bool) {
	for _, task := range data.Experiment.Tasks {
		for _, file := range []config.File{task.Data.Path, task.Data.Train, task.Data.Dev, task.Data.Test} {
			kind := task.Data.FormatOf(file.Name).Type
			other := kind != "" && kind != "jsonl" && filepath.Ext(path) == filepath.Ext(file.Name)
			if corpus.FileType(path) == "" && other {
				return file.Name, kind, true
			}
		}
	}
	return "", "", false
}

// TargetColumn is the column of a data file that has the targets of a head.
type TargetColumn struct {
	Task, Head, Column string
	PerWord            bool // there is a target for each word
	Blanks             bool // a label has a blank
	// Gold is another column with the head's targets, in a form that predictions do not have; "": there is none
	Gold string
	// Guessed is set where the run's data does not name Gold, or Column without one, nor the kind of outputs does: it
	// may have something else.
	Guessed bool

	field  string        // of the head alone, which the task reads first
	fields []targetField // in the order in which the task reads them
}

type targetField struct {
	column    string
	named     bool // by the run's data: its records have it
	other     bool // than that of the kind of outputs
	different bool // targets in it have another form than predictions
}

// TargetColumns returns the columns, by the names in their data, of the heads of the run's tasks with the given names,
// of all without names, except for tasks whose targets are made from the texts.
func TargetColumns(data *dataset.Dataset, names ...string) []TargetColumn {
	var all []TargetColumn
	for t, task := range data.Experiment.Tasks {
		kind := data.Tasks[t].Output()
		if kind.Field == "" || len(names) > 0 && !slices.Contains(names, task.Name) {
			continue
		}
		about := tasks.DescriptionOf(data.Tasks[t])
		same, different := about.SameFields, about.DifferentFields
		for _, head := range task.Heads {
			target := TargetColumn{Task: task.Name, Head: head.Name, PerWord: kind.PerWord,
				field: kind.HeadField(head.Name)}
			if labels := data.Labels[multitask.HeadName{Task: task.Name, Head: head.Name}]; labels != nil {
				target.Blanks = slices.ContainsFunc(labels.Names(),
					func(name string) bool { return strings.Contains(name, " ") })
			}
			for _, field := range slices.Concat([]string{target.field, kind.Field}, same, different) {
				theirs := task.Data.Format.Fields[field]
				isDifferent := slices.Contains(different, field)
				target.fields = append(target.fields, targetField{cmp.Or(theirs, field), theirs != "",
					isDifferent || slices.Contains(same, field), isDifferent})
				if theirs != "" && target.Column == "" && !isDifferent {
					target.Column = theirs
				}
			}
			target.Column = cmp.Or(target.Column, kind.Field)
			all = append(all, target)
		}
	}
	return all
}

// TargetsIn returns targets with the columns that their tasks read in a file with some columns. A column that the run's
// data does not name is not read for two tasks. Where several heads of a task read one column, each has another one of
// its own, which the task reads before that.
func TargetsIn(columns []string, targets []TargetColumn) []TargetColumn {
	taken := map[string]bool{}
	for _, t := range targets {
		taken[t.Column] = true
	}
	targets = slices.Clone(targets)
	for i, t := range targets {
		at := slices.IndexFunc(t.fields, func(f targetField) bool {
			return f.named || slices.Contains(columns, f.column) && (f.column == t.Column || !taken[f.column])
		})
		if at < 0 {
			continue
		}
		f := t.fields[at]
		targets[i].Guessed = f.other && !f.named
		if f.different {
			targets[i].Gold = f.column
			continue
		}
		targets[i].Column = f.column
		taken[f.column] = true
	}
	heads := map[[2]string]int{} // by task and column
	for _, t := range targets {
		heads[[2]string{t.Task, t.Column}]++
	}
	for i, t := range targets {
		if heads[[2]string{t.Task, t.Column}] > 1 {
			targets[i].Gold, targets[i].Column, targets[i].Guessed = cmp.Or(t.Gold, t.Column), t.field, false
		}
	}
	return targets
}

// Line is a line of input, or a record of a data file: an example, and what it has besides.
type Line struct {
	Number  int             // from 1, of the line that it begins on
	Err     error           // it cannot be read; begins with its place
	Example *corpus.Example // not to be used with Err
	Given   map[string]any  // the fields of a JSON object or record, by their own names; with Err if they can be read
	Fields  map[string]any  // those of Given but for the two texts
	Text    string          // the name in Given of the text's field; "" if only words are given
}

// Parse parses line number n: plain text, or a JSON object with text, pair or words, by these names or those that
// columns has, or with question and context, a pair too, which goes before ours where a task asks for it. Errors begin
// with the line, and come with the fields of an object that has no text that can be read.
func Parse(line string, n int, columns Columns) (Line, error) {
	place := corpus.Place{File: fmt.Sprintf("line %d", n)}
	if n == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	if err := corpus.CheckUTF8(line); err != nil {
		return Line{}, fmt.Errorf("%s: %w", place, err)
	}
	if !strings.HasPrefix(strings.TrimSpace(line), "{") {
		e, err := corpus.Record{Place: place, Fields: map[string]any{"text": line}}.Example()
		return Line{Number: n, Example: &e}, err
	}
	given, err := corpus.ParseObject(line)
	if err != nil {
		return Line{}, fmt.Errorf("%s: %w; %s", place, err, wantText)
	}
	read, err := Object(given, place, columns)
	read.Number = n
	return read, err
}

const wantText = "want plain text, or a JSON object with text, pair or words, or with question and context"

// Object is Parse for the fields of a JSON object at a place.
func Object(given map[string]any, place corpus.Place, columns Columns) (Line, error) {
	fields, rest, text := columns.apply(given, nil)
	if fields["text"] == nil && fields["words"] == nil && fields["question"] == nil {
		return Line{Given: given, Fields: rest}, fmt.Errorf(
			"%s: a JSON object with no text, words or question, its keys: %s; %s", place,
			corpus.Record{Fields: given}.FieldNames(), wantText)
	}
	e, err := corpus.Record{Place: place, Fields: fields}.Example()
	return Line{Example: &e, Given: given, Fields: rest, Text: text}, err
}

// Read returns the records of the data file or folder at path as lines. A warning counts the texts that are read as
// empty since Missing of the columns lists them.
func Read(ctx context.Context, path string, format corpus.Format, columns Columns) ([]Line, error) {
	own := format
	if own.Missing = nil; format.Sentence != "" { // all other values pass through
		if marks := slices.Concat(format.Missing[""], format.Missing[format.Sentence]); len(marks) > 0 {
			own.Missing = map[string][]string{format.Sentence: marks}
		}
	}
	records, err := corpus.Open(ctx, path, own)
	if err != nil {
		return nil, err
	}
	lines := make([]Line, len(records))
	texts, missing := 0, missingTexts{}
	for i, r := range records {
		fields, rest, text := columns.apply(r.Fields, func(value string) { missing.add(r.Place, value) })
		if fields["text"] != nil || fields["words"] != nil || fields["question"] != nil {
			texts++
		}
		e, err := corpus.Record{Place: r.Place, Fields: fields}.Example()
		lines[i] = Line{r.Place.Line, err, &e, r.Fields, rest, text}
	}
	if texts == 0 && len(records) > 0 {
		of := columns.Names
		names := slices.Concat(of["text"], of["words"], of["question"], []string{"text", "words"})
		return nil, fmt.Errorf("%s: no field for the text; want %s; available: %s", path,
			strings.Join(names, " or "), records[0].FieldNames())
	}
	missing.warn(format)
	return lines, nil
}

// missingTexts counts texts that are missing.
type missingTexts struct {
	n     int
	first corpus.Place
	value string // of the first
}

func (m *missingTexts) add(at corpus.Place, value string) {
	if m.n++; m.n == 1 {
		m.first, m.value = at, value
	}
}

func (m *missingTexts) warn(format corpus.Format) {
	if m.n > 0 && format.Warn != nil {
		format.Warn(m.first, fmt.Sprintf("%s by missing, as %q, %s read as empty", plugin.Count(m.n, "text"), m.value,
			plugin.Agree(m.n, "is", "are")))
	}
}

// apply returns given fields with the roles text, pair and words added by their columns, and the given fields that are
// neither of the two texts; text is the name of the first one's, "" if there are words alone. report, which may be nil,
// gets each text that is missing.
func (c Columns) apply(given map[string]any, report func(value string)) (fields, rest map[string]any, text string) {
	fields, rest = maps.Clone(given), maps.Clone(given) // a column of one role may have the name of another
	for role, names := range map[string][]string{"text": {"text", "question"}, "pair": {"pair", "context"}} {
		for _, name := range names {
			reported := report
			if slices.Contains(c.Names[role], name) {
				reported = nil // below
			}
			if given[name] != nil {
				fields[name] = c.text(given[name], name, role, reported)
			}
		}
	}
	taken := map[string]bool{}    // a field is one text, though several tasks may name it
	column := map[string]string{} // role → the field that columns give
	for _, role := range []string{"text", "pair", "words"} {
		for _, name := range c.Names[role] {
			if taken[name] {
				continue
			}
			value, _ := corpus.Field(given, name)
			if value = c.text(value, name, role, report); value != nil {
				fields[role], taken[name], column[role] = value, true, name
				break
			}
		}
	}
	question, context := fields["question"], fields["context"]
	questioned := c.Names["question"] != nil && question != nil && context != nil
	if questioned && column["text"] == "" && column["words"] == "" {
		// they overrule other fields
		fields["text"], fields["pair"], fields["words"] = question, context, nil
		column["text"], column["pair"] = "question", "context"
	}
	first, second := corpus.Record{Fields: fields}.TextFields()
	delete(rest, cmp.Or(column["text"], first))
	delete(rest, cmp.Or(column["pair"], second))
	if fields[first] != nil {
		text = cmp.Or(column["text"], first)
	}
	return fields, rest, text
}

// text returns the value of a column for a role, without a text that is missing, which report gets.
func (c Columns) text(value any, name, role string, report func(value string)) any {
	text, isText := value.(string)
	if role == "words" || !isText || !corpus.IsMissingMark(text, c.Missing[name]) {
		return value
	}
	if report != nil {
		report(text)
	}
	if role == "text" {
		return ""
	}
	return nil
}
