package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

// pass reads the records of a file as examples of a group's tasks: scan is called with each record, by the names in the
// file, then survey, and examples makes the examples.
type pass struct {
	*reader
	group *Group
	file  config.File
	tasks []taskPass
	n     int // records

	by *corpus.FoundFields // that split: by names; nil: none

	splits int           // records whose second text is the name of their split
	unread int           // records with texts that are not read, because others are read before them
	first  corpus.Record // of these

	marks markers
}

type taskPass struct {
	config.Task
	number  int
	about   tasks.Description
	fields  *corpus.FoundFields
	records []corpus.Record // by the task's names: with these its Survey finds what it finds with all so far
	sampled []int           // their numbers
	chosen  int             // how many of them SurveySample has chosen
	wrong   recordErrors
	offsets bool // some of them are of spans that are not where their offsets say

	labelled int // examples with a target
}

func isTarget(t corpus.Target) bool { return t != nil }

// surveyChunk is how many records a task's SurveySample reads at once.
const surveyChunk = 256

// newPass returns the pass over a file of no records yet. Of a file that is not a training file records has all.
func (r *reader) newPass(group *Group, file config.File, records []corpus.Record) *pass {
	p := &pass{reader: r, group: group, file: file}
	if by := r.e.Tasks[group.Tasks[0]].Data.Split.By; by != "" && !r.other {
		p.by = corpus.Format{Fields: map[string]string{"split: by": by}}.FindFields()
		p.by.Beside = true
	}
	for _, number := range group.Tasks {
		task := r.e.Tasks[number]
		task.Data.Format = task.Data.FormatOf(file.Name)
		if r.other {
			task.Data.Format.Fields = withoutEmptyTargets(task.Data.Format.Fields, records)
		}
		p.tasks = append(p.tasks, taskPass{Task: task, number: number, about: tasks.DescriptionOf(r.types[number])})
	}
	if r.alone != "" {
		r.readAlone(p.tasks)
	}
	for i := range p.tasks {
		p.tasks[i].fields = p.tasks[i].Data.Format.FindFields()
	}
	return p
}

func (p *pass) scan(record corpus.Record) {
	if _, _, two := p.tasks[0].Data.Format.TwoTexts(record); two {
		if p.unread == 0 {
			p.first = record
		}
		p.unread++
	}
	if !p.other && !p.trained {
		p.marks.add(record)
	}
	if p.by != nil {
		p.by.Add(record)
	}
	for i := range p.tasks {
		t := &p.tasks[i]
		t.fields.Add(record)
		_, known := p.group.first[t.number]
		if known && t.about.Survey == nil {
			continue
		}
		own := p.surveyed(t.number, &t.Data.Format, record)
		if !known {
			p.group.first[t.number] = own
		}
		if t.about.Survey != nil {
			t.records, t.sampled = append(t.records, own), append(t.sampled, p.n)
		}
		if len(t.records)-t.chosen >= surveyChunk {
			t.choose()
		}
	}
	p.n++
}

func (t *taskPass) choose() {
	if t.about.SurveySample == nil {
		return
	}
	var records []corpus.Record
	var numbers []int
	for _, i := range t.about.SurveySample(t.records) {
		records, numbers = append(records, t.records[i]), append(numbers, t.sampled[i])
	}
	t.records, t.sampled, t.chosen = records, numbers, len(records)
}

// survey lets the tasks survey the records, and reports the fields that no record has. ok is false if there are some.
func (p *pass) survey() (ok bool) {
	before := p.mistakes.Len()
	if p.by != nil {
		if err := p.by.Err(p.file.Name); err != nil {
			name := p.tasks[0].Name
			p.mistakes.Add(p.e.Place("tasks."+name+".data.split.by"), "task %q: %w", name, err)
		}
	}
	for i := range p.tasks {
		t := &p.tasks[i]
		if err := t.fields.Err(p.file.Name); err != nil {
			p.fieldMistakes(t.Task, err)
		}
		t.choose()
		tasks.SurveyRecords(p.types[t.number], t.records)
	}
	p.warnMarks()
	return p.mistakes.Len() == before
}

// fieldMistakes reports columns that a file does not have, each at its key, and once where several files lack it.
func (p *pass) fieldMistakes(task config.Task, err error) {
	for _, one := range several(err) {
		var field *corpus.FieldError
		if !errors.As(one, &field) {
			p.fileMistakes(task, p.file, one)
			continue
		}
		if p.lacking == nil {
			p.lacking = map[[2]string]bool{}
		}
		if key := [2]string{task.Name, field.Field}; !p.lacking[key] {
			p.lacking[key] = true
			p.mistakes.Add(p.e.Place("tasks."+task.Name+".data."+field.Field), "task %q: %w", task.Name, one)
		}
	}
}

// examples calls add with the example of each record, and reports the records' mistakes. ok is false after one.
func (p *pass) examples(progress func(done, of int), record func(i int) (corpus.Record, error),
	add func(i int, e *corpus.Example)) (ok bool) {
	before := p.mistakes.Len()
	err := inOrder(p.data.ctx, progress, p.n, record, func(i int, record corpus.Record) error {
		var e *corpus.Example
		mistaken := false
		for t := range p.tasks {
			t := &p.tasks[t]
			var err error
			e, err = p.addTo(e, p.group, t.number, &t.Data.Format, record)
			if _, differs := errors.AsType[differError](err); differs {
				return err // other records would give the same error
			}
			if err != nil {
				t.wrong.add(recordError{record.Place, err})
				_, ofOffsets := errors.AsType[*corpus.OffsetsError](err)
				t.offsets, mistaken = t.offsets || ofOffsets, true
			} else if own := e.Targets[len(e.Targets)-len(t.Heads):]; slices.ContainsFunc(own, isTarget) {
				t.labelled++
			}
		}
		if !mistaken {
			if add(i, e); e.Split != "" && e.Pair == e.Split {
				p.splits++
			}
		}
		return nil
	})
	for _, t := range p.tasks {
		p.recordMistakes(t, p.file.Name, p.n)
		if t.offsets {
			p.suggestOffsets(t.Task, record)
		}
	}
	if err != nil {
		p.mistakes.Append(err)
	}
	if p.mistakes.Len() == before {
		p.reportUnread()
		p.reportSplits()
	}
	return p.mistakes.Len() == before
}

// suggestOffsets names the unit in which the spans of all records are where their offsets say, if there is one, or how
// else they are counted.
func (p *pass) suggestOffsets(task config.Task, record func(i int) (corpus.Record, error)) {
	renamed := func(i int) (corpus.Record, error) {
		r, err := record(i)
		return task.Data.Format.RenameRecord(r), err
	}
	unit, other := corpus.FitOffsets(p.n, renamed, task.Data.Format.Fields)
	if unit == cmp.Or(task.Data.Format.Offsets, corpus.Characters.String()) {
		return
	}
	if unit != "" {
		or := ""
		if other != "" {
			or = fmt.Sprintf(" if an end is %s; {offsets: %s} if it is %s", corpus.EndOfWords(unit), other,
				corpus.EndOfWords(other))
		}
		own := p.ofOneFile(p.tasks[0].Data, p.file, "offsets: "+unit)
		p.mistakes.Append(fmt.Errorf("%s: task %q: the offsets of all spans fit in another unit; data: {offsets: %s} "+
			"reads them%s%s", p.file.Name, task.Name, unit, or, own))
	} else if wrong := corpus.MisplacedOffsets(p.n, renamed); wrong != "" {
		p.mistakes.Append(fmt.Errorf("%s: task %q: %s", p.file.Name, task.Name, wrong))
	}
}

// reportUnread warns of texts that are not read. If the first task extracts answers from a context, that is a mistake:
// its answers may be of the other one.
func (p *pass) reportUnread() {
	if p.unread == 0 {
		return
	}
	task := p.tasks[0]
	read, unread, _ := task.Data.Format.TwoTexts(p.first)
	text := fmt.Sprintf("task %q: %s of %s has fields %q and %q, of which %[4]q is read; first: %[6]s; name the "+
		"one to read, data: {%[4]s: %[4]s} or {%[5]s: %[5]s}", task.Name, plugin.Count(p.unread, "record"), p.file.Name,
		read, unread, p.first.Place)
	if p.types[task.number].Output().FromContext {
		p.mistakes.Add(p.file.Place, "%s", text)
		return
	}
	p.warnings = append(p.warnings, plugin.Warn(p.file.Place, "%s", text))
}

// reportSplits warns of a column that names the splits and has our name of a second text, which it is read as.
func (p *pass) reportSplits() {
	data := p.tasks[0].Data
	_, named := data.Format.Fields[data.Split.Column]
	if p.splits == 0 || p.splits < p.n || named || data.Split.Column != "pair" && data.Split.Column != "context" {
		return
	}
	p.warnings = append(p.warnings, plugin.Warn(p.file.Place, "task %q: field %q of %s, which split: column names, is "+
		"read as the second text too; data: {%[2]s: ''} leaves it out", p.tasks[0].Name, data.Split.Column,
		p.file.Name))
}

// differError is the error of a task whose text of a record is not that of the first task of its group.
type differError struct{ error }

// surveyed returns a record of a file as a task's Survey reads it.
func (r *reader) surveyed(number int, format *corpus.Format, record corpus.Record) corpus.Record {
	own, err := r.cleaning(number, format).record(format.RenameRecord(record))
	if err != nil {
		return record // the record is a mistake, which example returns
	}
	return own
}

// addTo returns the example of a record of a file for a task of a group, or e, which earlier tasks of the group have
// made, with the task's targets.
func (r *reader) addTo(e *corpus.Example, group *Group, number int, format *corpus.Format, record corpus.Record) (
	*corpus.Example, error) {
	example, err := r.example(number, format, record)
	if err != nil {
		return e, err
	}
	if e == nil {
		return &example, nil
	}
	if what := different(example, *e); what != "" {
		return e, differError{fmt.Errorf("%s: task %q: its %s differ from those of task %q, which same_as names; "+
			"leave text, pair, words, question and context out of its data, or give it files of its own",
			record.Place, r.e.Tasks[number].Name, what, r.e.Tasks[group.Tasks[0]].Name)}
	}
	e.Targets = append(e.Targets, example.Targets...)
	if e.Words == nil {
		e.Words = example.Words
	}
	return e, nil
}

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

func (r *reader) example(number int, format *corpus.Format, record corpus.Record) (corpus.Example, error) {
	task, clean := &r.e.Tasks[number], r.cleaning(number, format)
	// Fields of split are the file's own, also those that have one of our names.
	inFile := corpus.Format{Missing: format.Missing, Numbers: true}.RenameRecord(record)
	record, err := clean.record(format.RenameRecord(record))
	if err != nil {
		return corpus.Example{}, err
	}
	example, err := r.types[number].Example(record)
	if err != nil {
		return example, err
	}
	if !r.other && task.Data.SameAs == "" {
		if example.Group, err = splitField(inFile, "by", task.Data.Split.By); err != nil {
			return example, splitError{"by", err}
		}
	}
	if (!r.other || r.only != "") && task.Data.SameAs == "" {
		if example.Split, err = splitField(inFile, "column", task.Data.Split.Column); err != nil {
			return example, splitError{"column", err}
		}
	}
	return example, clean.targets(record.Place, example.Targets)
}

type recordError struct {
	at  corpus.Place
	err error
}

// sameShown is how many errors of one kind are listed for a task's file, each label with an error once; the others are
// counted.
const sameShown = 5

// values matches what differs between errors of one kind: quoted words and numbers.
var values = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[0-9]+`)

// recordErrors are the errors of a task's records in a file: the first of each kind, and how many there are.
type recordErrors struct {
	shown  []recordError // at most sameShown of a kind
	counts map[string]int
	listed map[string]int         // of each kind, how many are in shown
	values map[string]*wrongValue // of kinds whose errors are those of values
}

func (r *recordErrors) add(e recordError) {
	if r.counts == nil {
		r.counts, r.listed = map[string]int{}, map[string]int{}
	}
	kind := e.kind()
	if value, is := errors.AsType[*corpus.ValueError](e.err); is {
		if r.values == nil {
			r.values = map[string]*wrongValue{}
		}
		if r.values[kind] == nil {
			r.values[kind] = &wrongValue{first: value, counts: map[string]int{}}
		}
		r.values[kind].add(value.Value)
	}
	r.counts[kind]++
	_, ofLabel := errors.AsType[labelError](e.err)
	same := func(shown recordError) bool { return shown.text() == e.text() }
	if r.listed[kind] < sameShown && !(ofLabel && slices.ContainsFunc(r.shown, same)) {
		r.listed[kind]++
		r.shown = append(r.shown, e)
	}
}

func (e recordError) text() string { return strings.TrimPrefix(e.err.Error(), e.at.String()+": ") }

func (e recordError) kind() string { return values.ReplaceAllString(e.text(), "_") }

// recordMistakes reports the errors of a task's records in a file. If all records have one of the same kind, the task
// has a wrong type or the data wrong columns: one error at the task's type, or at split: by, has
// the first of them.
func (r *reader) recordMistakes(of taskPass, file string, records int) {
	task, errs, seen := of.Task, of.wrong, map[string]int{}
	for _, e := range errs.shown {
		all := errs.counts[e.kind()]
		if all == records && all > sameShown {
			key, what := "type", "type "+task.Part.Type
			if field, is := errors.AsType[splitError](e.err); is {
				key, what = "data.split."+field.key, "data: split: "+field.key
			}
			r.mistakes.Add(r.e.Place("tasks."+task.Name+"."+key),
				"task %q: %s: all %d records of %s have the same mistake; the first, %s: %s", task.Name, what, records,
				file, e.at, e.text())
			return
		}
		value := errs.values[e.kind()]
		if seen[e.kind()]++; value != nil && of.labelled > 0 {
			if seen[e.kind()] == 1 {
				column := cmp.Or(task.Data.Format.Fields[value.first.Field], value.first.Field)
				r.mistakes.Append(fmt.Errorf("%s: task %q: %s", e.at, task.Name, value.mistake(column, of.labelled)))
			}
			continue
		}
		r.mistakes.Append(fmt.Errorf("%s: task %q: %s", e.at, task.Name, e.text()))
		if listed := errs.listed[e.kind()]; seen[e.kind()] == listed && all > listed {
			r.mistakes.Append(fmt.Errorf("%s: task %q: and %s like %s", file, task.Name,
				plugin.Count(all-listed, "more record"), e.at))
		}
	}
}

type splitError struct {
	key string
	error
}

// splitField returns the value of a record's field, which may be a path, that a key of split names; "" for none. A
// record without one is a group of its own for split: by, and an error for split: column.
func splitField(record corpus.Record, key, field string) (string, error) {
	if field == "" {
		return "", nil
	}
	value, found := corpus.Field(record.Fields, field)
	if !found && key != "by" {
		return "", fmt.Errorf("%s: no field %q, which split: %s names; available: %s", record.Place, field, key,
			record.FieldNames())
	}
	text, given, err := corpus.Record{Place: record.Place, Fields: map[string]any{field: oneValue(value)}}.String(field)
	if err == nil && !given && key != "by" {
		err = fmt.Errorf("%s: field %q, which split: %s names, is empty; want train, dev or test; where_not: {%s: ''} "+
			"leaves such records out", record.Place, field, key, flow(field))
	}
	return text, err
}
