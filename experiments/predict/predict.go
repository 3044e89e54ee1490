package predict

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
)

// Prediction is the output of the model for one example, or an error. Its JSON is a line of `jenga predict`.
type Prediction struct {
	Err  error // no prediction was made; Tasks may be incomplete
	Line int   // of the input, from 1; 0: not known
	// Fields are what the input has besides its texts, and pass through to the JSON.
	Fields map[string]any
	Text   string
	Pair   string
	// Truncated is the number of tokens that were not read because the text is too long, for the task that lost most.
	Truncated int
	// Windows is the number of windows that the text was read in, of the task with most; 1 if it was read as a whole.
	Windows int
	// Tasks has the JSON of the output kind by task and head. For a single text, tasks that need a pair are missing.
	Tasks map[string]map[string]any

	// Data has the value of the output kind's field in data files, by task and head, for those that have one.
	Data map[string]map[string]any
	// Words are the words of Text, by which tasks with an output for each word read it; nil if there is no such task.
	Words []corpus.Span

	form  Form
	split bool // the text came without words
}

// newPrediction returns a prediction without outputs for an example that was read.
func newPrediction(r reading) Prediction {
	return Prediction{
		Err: r.err, Text: r.Text, Pair: r.Pair, Tasks: map[string]map[string]any{}, split: r.Words == nil,
		Data: map[string]map[string]any{}, form: r.form,
	}
}

// ours are the keys of a prediction's JSON; fields of the input with these names are in an object of their own, input.
var ours = []string{"line", "text", "pair", "truncated", "windows", "input", "tasks", "error"}

// MarshalJSON returns an object with line, id, text, pair, truncated, windows if there are several, the other fields of
// the input by name, and tasks; or with error, line and the fields of the input.
func (p Prediction) MarshalJSON() ([]byte, error) {
	var line object
	if p.Err != nil {
		line.add("error", p.Err.Error())
	}
	if p.Line > 0 {
		line.add("line", p.Line)
	}
	if id, ok := p.Fields["id"]; ok {
		line.add("id", id)
	}
	if p.Err == nil {
		line.add("text", p.Text)
		if p.Pair != "" {
			line.add("pair", p.Pair)
		}
		line.add("truncated", p.Truncated)
		if p.Windows > 1 {
			line.add("windows", p.Windows)
		}
	}
	renamed := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(p.Fields)) {
		switch {
		case slices.Contains(ours, name):
			renamed[name] = p.Fields[name]
		case name != "id":
			line.add(name, p.Fields[name])
		}
	}
	if len(renamed) > 0 {
		line.add("input", renamed)
	}
	if p.Err == nil {
		line.add("tasks", p.Tasks)
	}
	return line.end()
}

// object writes a JSON object whose keys have an order.
type object struct {
	text bytes.Buffer
	err  error
}

func (o *object) add(key string, value any) {
	if o.text.Len() > 0 {
		o.text.WriteByte(',')
	}
	o.encode(key)
	o.text.WriteByte(':')
	o.encode(value)
}

// encode appends a value as JSON.
func (o *object) encode(value any) {
	e := json.NewEncoder(&o.text)
	e.SetEscapeHTML(false) // the caller's encoder escapes <, > and & if it is set to
	if err := e.Encode(value); err != nil && o.err == nil {
		o.err = err
	}
	o.text.Truncate(len(bytes.TrimRight(o.text.Bytes(), "\n")))
}

func (o *object) end() ([]byte, error) {
	return slices.Concat([]byte("{"), o.text.Bytes(), []byte("}")), o.err
}
