package corpus

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// This file reads JSON in which records are not the elements of the file: under keys, or as columns.

// withinKeys reads the value under the path of keys that the option records names: an array of records, or with the
// format columns their columns.
func (d *reader) withinKeys() {
	d.place.Line = 1
	if !d.enter(d.format.Records) {
		return
	}
	switch c, _ := d.skipSpace(); {
	case d.format.Type == columnsForm && c == '{':
		d.in.UnreadByte()
		d.jsonColumns()
	case d.format.Type != columnsForm && c == '[':
		d.array()
	case d.format.Type == columnsForm:
		d.add(d.place, "%q where the columns begin; want an object of lists, {\"text\": […], \"label\": […]}", c)
	default:
		d.add(d.place, "%q where the records begin; want an array of objects under records: %s", c, d.format.Records)
	}
}

// enter reads up to the value under a path of keys, of the file itself if it is "". A key may have dots.
func (d *reader) enter(path string) bool {
	for path != "" {
		if c, ok := d.skipSpace(); !ok || c != '{' {
			d.add(d.place, "%q where the object with the key %q begins; records names a path of keys of objects",
				c, path)
			return false
		}
		var keys []string
		for {
			c, _ := d.skipSpace()
			if c == ',' && keys != nil {
				c, _ = d.skipSpace()
			}
			if c != '"' {
				d.add(d.place, "no key %q, which records names; the object has %s", path, listedCells(keys))
				return false
			}
			d.in.UnreadByte()
			key, ok := d.key()
			if !ok {
				return false
			}
			if len(keys) < mistakesShown {
				keys = append(keys, key)
			}
			rest, below := strings.CutPrefix(path, key+".")
			if key == path || below {
				if path = rest; !below {
					path = ""
				}
				break
			}
			if _, ok := d.value(0); !ok {
				return false
			}
		}
	}
	return true
}

// maxKey is the largest size in bytes of a key, with its quotes, that the option records may name.
const maxKey = 1 << 12

// key reads a key of an object and the colon behind it.
func (d *reader) key() (key string, ok bool) {
	text, ok := d.value(maxKey)
	if !ok {
		return "", false
	}
	if _, err := unmarshal(text, &key, "the key"); err != nil {
		d.add(d.place, "a key that is not a text: %w", err)
		return "", false
	}
	if c, _ := d.skipSpace(); c != ':' {
		d.add(d.place, "%q after the key %q; want a colon", c, start(key))
		return "", false
	}
	return key, true
}

// value reads one value of JSON, of which it parses only quotes and brackets, and returns it. More than most bytes of
// it are a mistake; where most is 0 it may have any size, and is not returned.
func (d *reader) value(most int) (text []byte, ok bool) {
	var depth int
	var quoted, escaped bool
	at := d.place
	for {
		c, err := d.in.ReadByte()
		if err != nil {
			if err == io.EOF {
				err = errors.New("the file ends within this value")
			}
			d.add(at, "%w", err)
			d.stop()
			return nil, false
		}
		ended := false
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped = c == '\\'
			quoted = c != '"'
			ended = !quoted && depth == 0
		case c == '"':
			quoted = true
		case c == '{' || c == '[':
			depth++
		case depth == 0 && strings.IndexByte(",}]:", c) >= 0: // after a number or a word
			d.in.UnreadByte()
			return text, true
		case c == '}' || c == ']':
			depth--
			ended = depth == 0
		}
		if c == '\n' {
			d.place.Line++
		}
		if most > 0 {
			text = append(text, c)
		}
		switch {
		case len(text) > most:
			d.add(at, "a value of more than %d bytes", most)
			return nil, false
		case ended:
			return text, true
		}
	}
}

// oneObject reads a file that begins with an object: one record a line, where it is not one object with the records
// inside, which is a mistake with the option that reads them.
func (d *reader) oneObject() {
	before := len(d.shown)
	d.jsonl()
	if d.read != 1 || len(d.records) != 1 || len(d.shown) > before {
		return
	}
	record := d.records[0]
	given := func(name string) bool { return record.Fields[name] != nil }
	words, _ := cmp.Or(record.Fields["words"], record.Fields["tokens"]).([]any)
	if given("question") || len(words) > 0 && isSingle(words[0]) {
		return
	}
	if text, isText := record.Fields["text"].(string); isText && text != "" {
		return
	}
	text, err := json.Marshal(record.Fields)
	if hint := d.insideHint(text); hint != "" && err == nil {
		d.add(record.Place, "the file is one object%s; a record alone is written in [ ]", hint)
	}
}

// insideHint names the option that reads what is inside of an object, or of that whose first line is text.
func (d *reader) insideHint(text []byte) string {
	if len(bytes.TrimSpace(text)) < 3 { // its first line
		rest, _ := d.in.Peek(1 << 16)
		text = append([]byte("{"), rest...)
	}
	records, columns := inside(bytes.NewReader(text))
	switch {
	case records != "":
		return "; records: " + records + " reads the list of objects in it"
	case columns:
		return "; format: columns reads lists with a value for each record"
	}
	return ""
}

// columnsForm is the format of a JSON object of columns.
const columnsForm = "columns"

// jsonColumns reads an object of columns: lists of the same length, as datasets.Dataset.to_dict returns, or objects of
// the same keys, as pandas writes by default.
func (d *reader) jsonColumns() {
	at := d.place
	text, ok := d.value(maxSquad)
	if !ok {
		return
	}
	fields, lines, err := object([]byte(d.decode(text, at)))
	if err != nil {
		at.Line += lines
		d.add(at, "%w; want an object of lists, {\"text\": […], \"label\": […]}", err)
		return
	}
	names, columns := slices.Sorted(maps.Keys(fields)), map[string][]any{}
	for _, name := range names {
		values, isColumn := columnOf(fields[name])
		if !isColumn {
			d.add(at, "column %q is %s; want a list with a value for each record", start(name), kind(fields[name]))
			return
		}
		columns[name] = values
		if n, want := len(values), len(columns[names[0]]); n != want {
			d.add(at, "column %q has %s, and column %q has %d; want one for each record", start(name),
				counted(n, "value"), start(names[0]), want)
			return
		}
	}
	if len(names) == 0 {
		return
	}
	for i := range columns[names[0]] {
		record := make(map[string]any, len(columns))
		for name, values := range columns {
			record[name] = values[i]
		}
		at.Entry = fmt.Sprint("record ", i+1)
		d.addRecord(Record{Place: at, Fields: record})
	}
}

// columnOf returns the values of a list, or of an object whose keys are numbers in their order.
func columnOf(value any) (values []any, ok bool) {
	switch v := value.(type) {
	case []any:
		return v, true
	case map[string]any:
		numbers := make([]int, 0, len(v))
		for key := range v {
			n, err := strconv.Atoi(key)
			if err != nil || strconv.Itoa(n) != key {
				return nil, false
			}
			numbers = append(numbers, n)
		}
		slices.Sort(numbers)
		for _, n := range numbers {
			values = append(values, v[strconv.Itoa(n)])
		}
		return values, true
	}
	return nil, false
}

// Inside describes a JSON text that is one object: the path of keys to the list of objects in it that is called train,
// else to the longest, or of lists that are records; or that its values are columns, lists of other values. The text
// may be truncated, as it is where it nests deeper than records do, or ctx ends.
func Inside(ctx context.Context, text []byte) (records string, columns bool) {
	return inside(ending{ctx, bytes.NewReader(text)})
}

func inside(text io.Reader) (records string, columns bool) {
	decoder := json.NewDecoder(text)
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return "", false
	}
	var path, ofRecords, ofLists []string // keys, which are joined once: hostile paths are long, and of many arrays
	most, mostOfLists := 0, 0
	lists, others, longest, differ := 0, 0, 0, false // at the top
	for {
		token, err := decoder.Token()
		if token == json.Delim('}') && len(path) > 0 {
			path = path[:len(path)-1]
			continue
		}
		if err != nil || token == json.Delim('}') {
			break
		}
		key, _ := token.(string)
		if token, err = decoder.Token(); err != nil || len(path) == maxDepth || len(key) > maxKey {
			break
		}
		switch token {
		case json.Delim('{'):
			path = append(path, key)
			others++
		case json.Delim('['):
			first, n, whole := elements(decoder)
			switch {
			case first == json.Delim('{') && strings.EqualFold(key, "train"):
				most = math.MaxInt // however many descriptions of labels, or test records, there are
				ofRecords = append(append(ofRecords[:0], path...), key)
			case first == json.Delim('{') && n > most:
				most = n
				ofRecords = append(append(ofRecords[:0], path...), key)
			case first == json.Delim('[') && n > mostOfLists:
				mostOfLists = n
				ofLists = append(append(ofLists[:0], path...), key)
			}
			if lists++; lists > 1 && (whole && n != longest || n > longest) {
				differ = true
			}
			longest = max(longest, n)
		default:
			others++
		}
	}
	if ofRecords == nil && (differ || others > 0) && mostOfLists == longest {
		ofRecords = ofLists
	}
	records = strings.Join(ofRecords, ".")
	return records, records == "" && lists > 0 && others == 0
}

// elements reads the rest of an array, and returns what its first element begins with, how many there are, and whether
// the text has its end.
func elements(decoder *json.Decoder) (first json.Token, n int, whole bool) {
	for depth := 1; ; {
		token, err := decoder.Token()
		if err != nil {
			return first, n, false
		}
		closes := token == json.Delim(']') || token == json.Delim('}')
		if depth == 1 && !closes {
			if n++; n == 1 {
				first = token
			}
		}
		switch {
		case closes:
			depth--
		case token == json.Delim('[') || token == json.Delim('{'):
			depth++
		}
		if depth == 0 {
			return first, n, true
		}
	}
}
