package corpus

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// jsonl reads one JSON object per line; empty lines are skipped.
func (d *reader) jsonl() {
	for line, ok := d.next(); ok; line, ok = d.next() {
		if strings.TrimSpace(line) == "" {
			continue
		}
		fields, _, err := object([]byte(line))
		if err != nil {
			if d.format.Type == "json" && len(d.records) == 0 {
				d.add(d.place, "%w; want an array of JSON objects, one object a line, or SQuAD's form, which begins "+
					"with \"version\" or \"data\"", err)
				return
			}
			d.add(d.place, "%w; want one JSON object a line", err)
			continue
		}
		d.addRecord(Record{Place: d.place, Fields: fields})
	}
}

// json reads an array of JSON objects, one object per line, or SQuAD's form.
func (d *reader) json() {
	if d.isSquad() {
		d.squad()
		return
	}
	d.place.Line = 1
	c, ok := d.skipSpace()
	switch {
	case !ok:
		return
	case c == '[':
		d.array()
	case c == '{':
		d.in.UnreadByte()
		d.place.Line--
		d.jsonl()
	default:
		d.add(d.place, "the file begins with %q; want an array of JSON objects, or one object a line", c)
	}
}

// array reads the rest of an array of objects.
func (d *reader) array() {
	for n := 1; ; n++ {
		c, ok := d.skipSpace()
		if c == ']' && len(d.records) == 0 && len(d.shown) == 0 {
			break
		}
		at := d.place
		at.Entry = fmt.Sprint("record ", n)
		if ok {
			d.in.UnreadByte()
		}
		text, ok := d.element(at)
		if !ok {
			return
		}
		if len(text) == 0 {
			d.add(d.place, "a comma without a record; want commas only between records")
		} else if fields, lines, err := object([]byte(d.decode(text, at))); err != nil {
			at.Line += lines
			d.add(at, "%w; want an array of JSON objects", err)
		} else {
			d.addRecord(Record{Place: at, Fields: fields})
		}
		if c, _ := d.in.ReadByte(); c == ']' {
			break
		}
	}
	if c, ok := d.skipSpace(); ok {
		d.add(d.place, "%q after the array's end; want nothing there", c)
	}
}

// skipSpace returns the next byte that is not white space.
func (d *reader) skipSpace() (byte, bool) {
	for {
		c, err := d.in.ReadByte()
		switch {
		case err == io.EOF:
			return 0, false
		case err != nil:
			d.add(d.place, "%w", err)
			return 0, false
		case c == '\n':
			d.place.Line++
		case c != ' ' && c != '\t' && c != '\r':
			return c, true
		}
	}
}

// element reads up to the comma or bracket that ends an element of the array. Of the element it parses only quotes and
// brackets, so that a malformed record does not hide the next.
func (d *reader) element(at Place) ([]byte, bool) {
	d.line = d.line[:0]
	var depth int
	var quoted, escaped bool
	for {
		c, err := d.in.ReadByte()
		switch {
		case err == io.EOF:
			d.add(at, "the file ends within this record; want ] at its end")
			return nil, false
		case err != nil:
			d.add(d.place, "%w", err)
			return nil, false
		case len(d.line) == maxRecord:
			d.add(at, "the record has more than %d MiB; want one record an element", maxRecord>>20)
			return nil, false
		case c == '\n':
			d.place.Line++
		}
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped = c == '\\'
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case depth == 0 && (c == ',' || c == ']'):
			d.in.UnreadByte()
			return d.line, true
		case c == '}' || c == ']':
			depth--
		}
		d.line = append(d.line, c)
	}
}

// maxDepth is how deep a record's lists and objects may nest.
const maxDepth = 100

// ParseObject parses a text that is a JSON object, as a line of a jsonl file is parsed.
func ParseObject(text string) (map[string]any, error) {
	fields, _, err := object([]byte(text))
	return fields, err
}

// object reads a JSON object. With an error, lines is the number of line ends before it.
func object(text []byte) (fields map[string]any, lines int, err error) {
	text, deep := plain(text)
	if deep {
		return nil, 0, fmt.Errorf("lists and objects nest more than %d deep", maxDepth)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var value any
	if err := decoder.Decode(&value); err != nil {
		at := len(text)
		if syntax := (*json.SyntaxError)(nil); errors.As(err, &syntax) {
			at = min(max(0, int(syntax.Offset)-1), at) // Offset is past the byte that is wrong
		}
		err = errors.New("the record ends early")
		if at < len(text) {
			err = fmt.Errorf("not JSON from %q on", start(string(text[at:])))
		}
		return nil, bytes.Count(text[:at], []byte("\n")), err
	}
	if rest := bytes.TrimSpace(text[decoder.InputOffset():]); len(rest) > 0 {
		return nil, 0, fmt.Errorf("%q after the record's end", start(string(rest)))
	}
	fields, ok := value.(map[string]any)
	if !ok {
		return nil, 0, fmt.Errorf("the record is %s", kind(value))
	}
	return fields, 0, nil
}

// plain returns text with the control bytes in its strings escaped, which JSON requires and some writers omit, and
// reports whether it nests too deep.
func plain(text []byte) (escaped []byte, deep bool) {
	var out []byte // text[:done] with its control bytes escaped, once there is one
	var done, depth int
	var quoted, backslash bool
	for i, c := range text {
		switch {
		case backslash:
			backslash = false
		case quoted && c < ' ':
			out = fmt.Appendf(append(out, text[done:i]...), `\u%04x`, c)
			done = i + 1
		case quoted:
			backslash = c == '\\'
			quoted = c != '"'
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
			deep = deep || depth > maxDepth
		case c == '}' || c == ']':
			depth--
		}
	}
	if out == nil {
		return text, deep
	}
	return append(out, text[done:]...), deep
}
