package predict

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
)

// Columns has the names of the columns for text, pair and words, in the order of lookup, and for question, if a task
// extracts spans of a context.
type Columns map[string][]string

// Columns returns the column names in the data of a run's tasks.
func (o *Opened) Columns() Columns {
	columns := Columns{}
	for t, task := range o.Data.Experiment.Tasks {
		for _, named := range [][2]string{
			{"text", "text"}, {"text", "question"}, {"pair", "pair"}, {"pair", "context"}, {"words", "words"},
		} {
			role, theirs := named[0], task.Data.Format.Fields[named[1]]
			if theirs != "" && !slices.Contains(columns[role], theirs) {
				columns[role] = append(columns[role], theirs)
			}
		}
		if o.Data.Tasks[t].Output().FromContext {
			columns["question"] = []string{"question"}
		}
	}
	return columns
}

// Input makes an example of line number n: plain text, or a JSON object with text, pair or words, by these names or
// those that columns has, or with question and context, a pair too, which goes before ours where a task asks for it;
// what else that has is left alone. Errors begin with the line.
func Input(line string, n int, columns Columns) (*corpus.Example, error) {
	place := corpus.Place{File: fmt.Sprintf("line %d", n)}
	if n == 1 {
		line = strings.TrimPrefix(line, "\ufeff")
	}
	if !utf8.ValidString(line) {
		return nil, fmt.Errorf("%s: not UTF-8", place)
	}
	record := corpus.Record{Place: place, Fields: map[string]any{"text": line}}
	if strings.HasPrefix(strings.TrimSpace(line), "{") {
		var err error
		if record.Fields, err = object(line, columns); err != nil {
			return nil, fmt.Errorf("%s: %w; want plain text, or a JSON object with text, pair or words, or with "+
				"question and context", place, err)
		}
	}
	e, err := record.Example()
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// object reads a line's JSON object, which has a text, words or a question.
func object(line string, columns Columns) (map[string]any, error) {
	fields, err := corpus.ParseObject(line)
	if err != nil {
		return nil, err
	}
	given := maps.Clone(fields) // a column of one may have the name of another
	taken := map[string]bool{}  // a field is one text, though several tasks may name it
	named := map[string]bool{}  // what columns give
	for _, role := range []string{"text", "pair", "words"} {
		names := columns[role]
		free := func(name string) bool { value, _ := corpus.Field(given, name); return value != nil && !taken[name] }
		if at := slices.IndexFunc(names, free); at >= 0 {
			fields[role], _ = corpus.Field(given, names[at])
			taken[names[at]], named[role] = true, true
		}
	}
	questioned := columns["question"] != nil && given["question"] != nil && given["context"] != nil
	if questioned && !named["text"] && !named["words"] {
		// they overrule other fields
		fields["text"], fields["pair"], fields["words"] = given["question"], given["context"], nil
	}
	if fields["text"] == nil && fields["words"] == nil && fields["question"] == nil {
		return nil, fmt.Errorf("a JSON object with no text, words or question, its keys: %s",
			corpus.Record{Fields: given}.FieldNames())
	}
	return fields, nil
}
