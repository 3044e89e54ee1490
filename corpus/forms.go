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

// KeysAsLabels is the advice about an object that has the texts of each label under its name.
const KeysAsLabels = `write an object for each text, {"text": TEXT, "label": KEY}, in a file of JSON lines`

// insideHint names the option that reads what is inside of an object, or of that whose first line is text.
func (d *reader) insideHint(text []byte) string {
	if len(bytes.TrimSpace(text)) < 3 { // its first line
		rest, _ := d.in.Peek(1 << 16)
		text = append([]byte("{"), rest...)
	}
	l, columns, numbered := inside(bytes.NewReader(text))
	switch {
	case l.ofRecords != nil:
		return "; records: " + strings.Join(l.ofRecords, ".") + " reads the list of objects in it"
	case numbered:
		return "; format: columns reads its numbered records"
	case columns && l.differ && l.objects == 0:
		return "; it has lists of different lengths; where they are the texts of a label each, " + KeysAsLabels
	case columns:
		return "; format: columns reads lists with a value for each record"
	}
	return ""
}

// columnsForm is the format of a JSON object of columns.
const columnsForm = "columns"

// jsonColumns reads an object of columns: lists of the same length, as datasets.Dataset.to_dict returns, or objects of
// the same keys, as pandas writes by default; or an object of numbered records, as pandas writes with orient="index".
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
	if rows := numberedRows(fields); rows != nil {
		for i, row := range rows {
			at.Entry = fmt.Sprint("record ", i+1)
			d.addRecord(Record{Place: at, Fields: row})
		}
		return
	}
	names, columns := slices.Sorted(maps.Keys(fields)), map[string][]any{}
	var keys []int // of the first column
	for i, name := range names {
		values, numbers, isColumn := columnOf(fields[name])
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
		if i == 0 {
			keys = numbers
		} else if n, differ := firstOther(keys, numbers); differ {
			d.add(at, "columns %q and %q are not of the same records: one alone has number %d", start(names[0]),
				start(name), n)
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

// numberedRows returns the objects of one whose keys are numbers in their order, if their own keys are none; else nil.
func numberedRows(fields map[string]any) (rows []map[string]any) {
	values, _, _ := columnOf(fields)
	for _, value := range values {
		row, isObject := value.(map[string]any)
		if _, _, isColumn := columnOf(value); !isObject || isColumn {
			return nil
		}
		rows = append(rows, row)
	}
	return rows
}

// columnOf returns the values of a list, or of an object whose keys are numbers in their order, and these numbers.
func columnOf(value any) (values []any, keys []int, ok bool) {
	switch v := value.(type) {
	case []any:
		for i := range v {
			keys = append(keys, i)
		}
		return v, keys, true
	case map[string]any:
		for key := range v {
			n, err := strconv.Atoi(key)
			if err != nil || strconv.Itoa(n) != key {
				return nil, nil, false
			}
			keys = append(keys, n)
		}
		slices.Sort(keys)
		for _, n := range keys {
			values = append(values, v[strconv.Itoa(n)])
		}
		return values, keys, true
	}
	return nil, nil, false
}

// firstOther returns the first number of two sorted lists of the same length that one alone has, if they differ.
func firstOther(a, b []int) (n int, differ bool) {
	for i := range a {
		if a[i] != b[i] {
			return min(a[i], b[i]), true
		}
	}
	return 0, false
}

// Inside describes a JSON text that is one object: the path of keys to the list of objects in it that is called train,
// else to the longest, or of lists that are records; or that its values are columns, lists of other values, or numbered
// records. Beside are the keys of other lists that may be of records too, in the object that has this one. The text may
// be truncated, as it is where it nests deeper than records do, or ctx ends.
func Inside(ctx context.Context, text []byte) (records string, beside []string, columns bool) {
	l, columns, _ := inside(ending{ctx, bytes.NewReader(text)})
	records = strings.Join(l.ofRecords, ".")
	for _, path := range l.found {
		if last := len(path) - 1; len(l.ofRecords) == len(path) && slices.Equal(path[:last], l.ofRecords[:last]) &&
			path[last] != l.ofRecords[last] {
			beside = append(beside, path[last])
		}
	}
	return records, beside, columns
}

func inside(text io.Reader) (l layout, columns, numbered bool) {
	l.numbered = -1
	decoder := json.NewDecoder(text)
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return l, false, false
	}
	for {
		token, err := decoder.Token()
		if token == json.Delim('}') && len(l.path) > 0 {
			l.leave()
			continue
		}
		if err != nil || token == json.Delim('}') {
			break
		}
		key, _ := token.(string)
		if token, err = decoder.Token(); err != nil || len(l.path) == maxDepth || len(key) > maxKey {
			break
		}
		l.add(decoder, key, token)
	}
	if l.rows > 1 && !l.rowless {
		l.ofRecords = nil
		return l, true, true
	}
	if l.numbered > 0 || l.numbered == 0 && l.objects > 0 { // the text ends in a column
		l.leaveColumn()
	}
	if l.lists > 0 {
		l.others += l.objects // names of labels, by their numbers
	}
	if train := l.mostOfLists == math.MaxInt; l.ofRecords == nil &&
		(train || (l.differ || l.others > 0) && l.mostOfLists == l.longest) {
		l.ofRecords = l.ofLists
	}
	return l, l.ofRecords == nil && l.lists+l.objects > 0 && l.others == 0, false
}

// mostFound is how many lists are kept by their paths: more are no splits of one data set.
const mostFound = 20

// layout is what an object has inside, as far as it has been read. Paths are keys that are joined once: hostile ones
// are long, and of many arrays.
type layout struct {
	path                   []string
	ofRecords, ofLists     []string   // the path to the list of objects, and to that of lists
	found                  [][]string // the paths to the first lists of objects or lists
	most, mostOfLists      int        // elements of these
	lists, others, longest int        // lists and other values; elements of the longest list
	objects                int        // at the top, that are columns as pandas writes them
	differ                 bool       // lists have different numbers of elements

	rows    int  // objects at the top whose keys are numbers: records
	texts   int  // single values of the row that is read
	rowless bool // other values at the top, or rows whose keys are numbers, or without single values

	// numbered is the number of values of the object at the top that is read, if all keys are numbers, as in a column
	// of pandas, else -1.
	numbered int
}

// leave ends an object.
func (l *layout) leave() {
	if l.path = l.path[:len(l.path)-1]; len(l.path) > 0 {
		return
	}
	l.rowless = l.rowless || l.texts == 0
	if l.numbered > 0 {
		l.leaveColumn()
	}
	l.numbered = -1
}

func (l *layout) leaveColumn() { l.objects, l.others = l.objects+1, l.others-1 }

// add adds a value, of which the first token has been read.
func (l *layout) add(decoder *json.Decoder, key string, token json.Token) {
	_, notNumber := strconv.Atoi(key)
	_, container := token.(json.Delim)
	switch {
	case len(l.path) == 0 && notNumber == nil && token == json.Delim('{'):
		l.rows, l.texts = l.rows+1, 0
	case len(l.path) == 0, len(l.path) == 1 && notNumber == nil:
		l.rowless = true
	case len(l.path) == 1 && !container:
		l.texts++
	}
	if len(l.path) == 1 && l.numbered >= 0 {
		if l.numbered++; notNumber != nil || token == json.Delim('{') {
			l.numbered = -1
		}
	}
	inColumn := len(l.path) == 1 && l.numbered > 0
	switch {
	case token == json.Delim('{'):
		if len(l.path) == 0 {
			l.numbered = 0
		}
		l.path = append(l.path, key)
		l.others++
	case token == json.Delim('[') && inColumn:
		elements(decoder)
	case token == json.Delim('['):
		l.array(decoder, key)
	case !inColumn:
		l.others++
	}
}

func (l *layout) array(decoder *json.Decoder, key string) {
	first, n, whole := elements(decoder)
	train := strings.EqualFold(key, "train")
	if (first == json.Delim('{') || first == json.Delim('[')) && len(l.found) < mostFound {
		l.found = append(l.found, append(slices.Clone(l.path), key))
	}
	switch {
	case first == json.Delim('{') && train:
		l.most = math.MaxInt // however many descriptions of labels, or test records, there are
		l.ofRecords = append(append(l.ofRecords[:0], l.path...), key)
	case first == json.Delim('[') && train:
		l.mostOfLists = math.MaxInt
		l.ofLists = append(append(l.ofLists[:0], l.path...), key)
	case first == json.Delim('{') && n > l.most:
		l.most = n
		l.ofRecords = append(append(l.ofRecords[:0], l.path...), key)
	case first == json.Delim('[') && n > l.mostOfLists:
		l.mostOfLists = n
		l.ofLists = append(append(l.ofLists[:0], l.path...), key)
	}
	if l.lists++; l.lists > 1 && (whole && n != l.longest || n > l.longest) {
		l.differ = true
	}
	l.longest = max(l.longest, n)
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
