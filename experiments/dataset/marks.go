package dataset

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
)

// markers finds fields of a training file that look as if they said which split a record is of, or whether it is to be
// used, and that the data does not name.
type markers struct {
	n      int                // records
	fields map[string]*marker // of the first records; nil for one that is none
}

// marker is how often each value of a field occurs; split and mark are what it may be.
type marker struct {
	values      map[string]int
	split, mark bool
}

const mostMarkValues = 12

// add adds a record, by the names in its file.
func (m *markers) add(r corpus.Record) {
	const first = 1000 // records whose fields are looked at: the first may lack some
	if m.fields == nil {
		m.fields = map[string]*marker{}
	}
	if m.n < first {
		m.find("", r.Fields)
	}
	for name, found := range m.fields {
		if found == nil {
			continue
		}
		value, _ := corpus.Field(r.Fields, name)
		if text, single := markText(oneValue(value)); !single || !found.add(name, text) {
			m.fields[name] = nil
		}
	}
	m.n++
}

// find adds the fields of an object whose values may be marks.
func (m *markers) find(prefix string, fields map[string]any) {
	const most = 200 // fields
	for name, value := range fields {
		object, nested := value.(map[string]any)
		switch _, single := markText(oneValue(value)); {
		case len(m.fields) >= most:
			return
		case nested && prefix == "":
			m.find(name+".", object)
		case single:
			if _, known := m.fields[prefix+name]; !known {
				m.fields[prefix+name] = newMarker(prefix+name, m.n)
			}
		}
	}
}

// newMarker returns the marker of a field that some records before do not have.
func newMarker(name string, without int) *marker {
	_, isSplit := corpus.LikeSplit(name, "")
	f := &marker{values: map[string]int{}, split: without == 0 || isSplit, mark: true}
	if without > 0 {
		f.values[""] = without
	}
	return f
}

// oneValue returns the value that all items of a list have, as those of the rows of a sentence; else the value itself.
func oneValue(value any) any {
	switch list := value.(type) {
	case []string:
		if len(slices.Compact(slices.Clone(list))) == 1 {
			return list[0]
		}
	case []any:
		for _, item := range list {
			if text, is := item.(string); !is || text != list[0] {
				return value
			}
		}
		if len(list) > 0 {
			return list[0]
		}
	}
	return value
}

func markText(value any) (text string, single bool) {
	switch v := value.(type) {
	case nil:
		return "", true
	case string:
		return strings.TrimSpace(v), true
	case bool:
		return fmt.Sprint(v), true
	case json.Number:
		return v.String(), true
	}
	return "", false
}

// add adds the value of a field, and reports whether it may still be a mark.
func (f *marker) add(name, value string) bool {
	const longest = 24 // characters of a mark
	if len(value) > longest {
		return false
	}
	if f.values[value]++; len(f.values) > mostMarkValues {
		return false
	}
	if f.values[value] > 1 {
		return true
	}
	if _, like := corpus.LikeSplit(name, value); !like {
		f.split = false
	}
	f.mark = f.mark && corpus.MayMark(name, value)
	return f.split || f.mark
}

// remedy returns the keys of data that use the field, "" if it is no mark, and whether its values are those of splits.
func (f *marker) remedy(name string) (text string, isSplit bool) {
	if f.split {
		if text := f.splitRemedy(name); text != "" {
			return text, true
		}
	}
	if !f.mark {
		return "", false
	}
	marks := corpus.MarksOf(name, f.values)
	if marks.Tool {
		marks.Leave = append(marks.Leave, marks.Open...)
	}
	if len(marks.Use) == 0 || len(marks.Leave) == 0 {
		return "", false
	}
	return fmt.Sprintf("where_not: {%s: %s} leaves such records out, where: {%[1]s: %[3]s} uses the others alone",
		flow(name), flowList(marks.Leave), flowList(marks.Use)), false
}

// splitRemedy returns the keys of data that use a field of splits, "" if its values are of one alone.
func (f *marker) splitRemedy(name string) string {
	like, known := map[string]bool{}, map[string]bool{}
	var others, training []string
	for _, value := range slices.Sorted(maps.Keys(f.values)) {
		split, _ := corpus.LikeSplit(name, value)
		if like[split] = split != ""; split == "train" {
			training = append(training, value)
		}
		if split, ok := corpus.SplitNamed(value); ok {
			known[split] = true
		} else {
			others = append(others, value)
		}
	}
	delete(like, "")
	switch field := flow(name); {
	case len(like) < 2:
		return ""
	case len(known) < 2 && len(training) > 0:
		return fmt.Sprintf("where: {%s: %s} uses the records of train alone; split: {column: %[1]s} reads train, dev "+
			"and test", field, flowList(training))
	case len(known) < 2 || len(others) == 0:
		return fmt.Sprintf("split: {column: %s} reads train, dev and test as the splits of its records", field)
	default:
		return fmt.Sprintf("split: {column: %s} reads train, dev and test as the splits of its records, with "+
			"where_not: {%[1]s: %s} to leave out those of no split that it knows", field, flowList(others))
	}
}

// warnMarks warns of each field that looks like a mark and that no task of the group uses.
func (p *pass) warnMarks() {
	task := p.tasks[0].Task
	for _, name := range slices.Sorted(maps.Keys(p.marks.fields)) {
		found := p.marks.fields[name]
		if found == nil || p.uses(name) {
			continue
		}
		remedy, isSplit := found.remedy(name)
		if remedy == "" || isSplit && task.Data.Split.Column != "" {
			continue
		}
		what := "a mark of records to use or not"
		if isSplit {
			what = "the split of its records"
		}
		values := withCounts(slices.Sorted(maps.Keys(found.values)), found.values)
		p.warnings = append(p.warnings, taskWarning(task, "field %q of %s looks like %s and is not used: %s; data: %s",
			name, p.file.Name, what, values, remedy))
	}
}

// uses reports whether a task of the group reads a field of the file, or its data names it.
func (p *pass) uses(name string) bool {
	data := p.tasks[0].Data
	_, where := data.Format.Where[name]
	_, whereNot := data.Format.WhereNot[name]
	if where || whereNot || name == data.Split.By || name == data.Split.Column {
		return true
	}
	for _, t := range p.tasks {
		for _, our := range slices.Concat(corpus.TextFields, p.targetFields(t.number)) {
			theirs, renamed := t.Data.Format.Fields[our]
			if renamed && theirs == name || !renamed && our == name {
				return true
			}
		}
	}
	return false
}
