package predict

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"

	"github.com/jenga-nlp/jenga/internal/printable"
)

// JSON is a line of JSON in parts. Attention maps, which may have many megabytes, are encoded as they are written.
type JSON struct {
	texts [][]byte // one more than the maps, which are between them
	maps  []AttentionWeights
}

// JSONOf returns the JSON of an answer, or of a value that has some: the lines of the commands, and the bodies of a
// server. It has no escapes for HTML, but some for characters that a terminal obeys. It returns an error for a value
// without JSON, as a number that is not finite.
func JSONOf(value any) (JSON, error) {
	switch x := value.(type) {
	case Explanation:
		return x.json()
	case Prediction: // an encoder would parse what it writes again
		text, err := x.MarshalJSON()
		return JSON{texts: [][]byte{append(text, '\n')}}, err
	}
	text, err := marshal(value)
	return JSON{texts: [][]byte{text}}, err
}

// Bytes returns the length of the line without attention maps.
func (j JSON) Bytes() (n int64) {
	for _, text := range j.texts {
		n += int64(len(text))
	}
	return n
}

// Write writes the line.
func (j JSON) Write(w io.Writer) error {
	for i, text := range j.texts {
		if i > 0 {
			if err := j.maps[i-1].write(w); err != nil {
				return err
			}
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	return nil
}

// json returns the JSON of an explanation: that of one with marks in place of its attention maps, divided at those.
func (x Explanation) json() (j JSON, err error) {
	mark := AttentionWeights{{{{2}}}} // which is no weight
	x.Readings = slices.Clone(x.Readings)
	for i := range x.Readings {
		windows := slices.Clone(x.Readings[i].Windows)
		for k := range windows {
			if len(windows[k].Attention) > 0 {
				j.maps = append(j.maps, windows[k].Attention)
				windows[k].Attention = mark
			}
		}
		x.Readings[i].Windows = windows
	}
	text, err := marshal(x)
	if err != nil {
		return JSON{}, err
	}

	// the marks are the last ones: fields of the input, which may be anything, come before the readings
	const key, value = `"attention":`, `[[[[2]]]]`
	j.texts = make([][]byte, len(j.maps)+1)
	for i := len(j.maps); i > 0; i-- {
		at := bytes.LastIndex(text, []byte(key+value))
		text, j.texts[i] = text[:at+len(key)], text[at+len(key+value):]
	}
	j.texts[0] = text
	return j, nil
}

// marshal returns a value's JSON and the end of its line, without escapes for HTML.
func marshal(value any) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	err := e.Encode(value)
	return printable.Escape(text.Bytes()), err
}

// ours are the keys of a prediction's JSON; fields of the input with these names are in an object of their own, input.
var ours = []string{"line", "text", "pair", "truncated", "windows", "input", "tasks", "error"}

// MarshalJSON returns an object with line, id, text, pair, truncated, windows if there are several, the other fields of
// the input by name, and tasks; or with error, line and the fields of the input.
func (p Prediction) MarshalJSON() ([]byte, error) {
	var line bytes.Buffer
	encoder, first := json.NewEncoder(&line), error(nil)
	encoder.SetEscapeHTML(false) // the caller's encoder escapes <, > and & if it is set to
	encode := func(value any) {
		if err := encoder.Encode(value); err != nil {
			first = cmp.Or(first, err)
			return
		}
		line.Truncate(line.Len() - len("\n"))
	}
	add := func(key string, value any) {
		line.WriteByte(',')
		encode(key)
		line.WriteByte(':')
		encode(value)
	}
	if p.Err != nil {
		add("error", p.Err.Error())
	}
	if p.Line > 0 {
		add("line", p.Line)
	}
	if id, ok := p.Fields["id"]; ok {
		add("id", id)
	}
	if p.Err == nil {
		add("text", p.Text)
		if p.Paired || p.Pair != "" {
			add("pair", p.Pair)
		}
		add("truncated", p.Truncated)
		if p.Windows > 1 {
			add("windows", p.Windows)
		}
	}
	renamed := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(p.Fields)) {
		switch {
		case slices.Contains(ours, name):
			renamed[name] = p.Fields[name]
		case name != "id":
			add(name, p.Fields[name])
		}
	}
	if len(renamed) > 0 {
		add("input", renamed)
	}
	if p.Err == nil {
		add("tasks", p.Tasks)
	}
	text := append(line.Bytes(), '}')
	text[0] = '{' // in place of the first comma
	return printable.Escape(text), first
}

// MarshalJSON returns the weights with six decimals.
func (a AttentionWeights) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := a.write(&b)
	return b.Bytes(), err
}

// write writes the weights, which are finite, as JSON with six decimals, a row at a time.
func (a AttentionWeights) write(w io.Writer) error {
	out := bufio.NewWriterSize(w, 1<<16)
	var row []byte
	list := func(n int, each func(i int)) {
		out.WriteByte('[')
		for i := range n {
			if i > 0 {
				out.WriteByte(',')
			}
			each(i)
		}
		out.WriteByte(']')
	}
	list(len(a), func(layer int) {
		list(len(a[layer]), func(head int) {
			list(len(a[layer][head]), func(i int) {
				row = append(row[:0], '[')
				for j, v := range a[layer][head][i] {
					if j > 0 {
						row = append(row, ',')
					}
					row = strconv.AppendFloat(row, math.Round(1e6*float64(v))/1e6, 'f', -1, 64)
				}
				out.Write(append(row, ']'))
			})
		})
	})
	return out.Flush() // with the first error of a write
}
