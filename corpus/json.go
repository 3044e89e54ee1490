package corpus

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

func (d *reader) jsonl() {
	for line, ok := d.next(); ok; line, ok = d.next() {
		if strings.TrimSpace(line) == "" {
			continue
		}
		fields, _, err := object([]byte(line))
		if err != nil {
			if d.format.Type == "json" && d.read+d.sentence.n == 0 && !errors.Is(err, errRepeated) {
				d.add(d.place, "%w; want an array of JSON objects, one object a line, or SQuAD's form, which begins "+
					"with \"version\" or \"data\"%s", err, d.insideHint(d.line))
				return
			}
			d.addBad(d.place, err, "one JSON object a line")
			continue
		}
		d.addRecord(Record{Place: d.place, Fields: fields})
	}
}

// addBad adds the error of a record, with what the file's form wants unless the record has that form.
func (d *reader) addBad(at Place, err error, want string) {
	if errors.Is(err, errRepeated) {
		d.add(at, "%w", err)
		return
	}
	d.add(at, "%w; want %s", err, want)
}

// json reads an array of JSON objects, one object per line, or SQuAD's form.
func (d *reader) json() {
	if d.format.Records != "" || d.format.Type == columnsForm {
		d.withinKeys()
		return
	}
	if head, _ := d.in.Peek(squadHead); IsSquad(head) {
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
		d.oneObject()
	default:
		d.add(d.place, "the file begins with %q; want an array of JSON objects, or one object a line", c)
	}
}

func (d *reader) array() {
	for n := 1; ; n++ {
		c, ok := d.skipSpace()
		if c == ']' && n == 1 {
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
			d.addBad(at, err, "an array of JSON objects")
		} else {
			d.addRecord(Record{Place: at, Fields: fields})
		}
		if d.stopped {
			return
		}
		if c, _ := d.in.ReadByte(); c == ']' {
			break
		}
	}
	if c, ok := d.skipSpace(); ok && d.format.Records == "" {
		d.add(d.place, "%q after the array's end; want nothing there", c)
	}
}

func (d *reader) skipSpace() (byte, bool) {
	for {
		c, err := d.in.ReadByte()
		switch {
		case err == io.EOF:
			return 0, false
		case err != nil:
			d.add(d.place, "%w", err)
			d.stop()
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
			d.stop()
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

const maxDepth = 100

// ParseObject parses a text that is a JSON object, as a line of a jsonl file is parsed.
func ParseObject(text string) (map[string]any, error) {
	fields, _, err := object([]byte(text))
	return fields, err
}

// object reads a JSON object, or a list that is a record, as ["a text", "label"], whose fields are 0, 1, …. With an
// error, lines is the number of line ends before it.
func object(text []byte) (fields map[string]any, lines int, err error) {
	text, keys, deep := plain(text)
	if deep {
		return nil, 0, fmt.Errorf("lists and objects nest more than %d deep", maxDepth)
	}
	var value any
	if lines, err := unmarshal(text, &value, "the record"); err != nil {
		return nil, lines, err
	}
	if keys > keysIn(value) { // encoding/json keeps the last value of a key
		lines, err := repeatedKey(text)
		return nil, lines, err
	}
	fields, ok := value.(map[string]any)
	if list, isList := value.([]any); isList && len(list) > 1 && isSingle(list[0]) {
		fields, ok = make(map[string]any, len(list)), true
		for i, item := range list {
			fields[strconv.Itoa(i)] = item
		}
	}
	if !ok {
		return nil, 0, fmt.Errorf("the record is %s", kind(value))
	}
	return fields, 0, nil
}

func isSingle(value any) bool {
	_, single := scalar(value)
	return single
}

// keysIn returns the number of keys of all objects in a value.
func keysIn(value any) (n int) {
	switch value := value.(type) {
	case map[string]any:
		n = len(value)
		for _, inner := range value {
			n += keysIn(inner)
		}
	case []any:
		for _, inner := range value {
			n += keysIn(inner)
		}
	}
	return n
}

var errRepeated = errors.New("remove or rename one, as only one of two values can be read")

// repeatedKey returns the error of the first key that stands twice in an object of a JSON text, which has one, and the
// number of line ends before it.
func repeatedKey(text []byte) (lines int, err error) {
	type level struct {
		keys  map[string]bool // nil: of a list
		value bool            // the next token is a value
	}
	levels := []level{{}}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		token, err := d.Token()
		if err != nil {
			return 0, fmt.Errorf("a key stands twice; %w", errRepeated)
		}
		at := &levels[len(levels)-1]
		switch delim, _ := token.(json.Delim); {
		case delim == '}' || delim == ']':
			levels = levels[:len(levels)-1]
			continue
		case at.keys != nil && !at.value:
			key := token.(string) // the text was decoded
			if at.keys[key] {
				return bytes.Count(text[:d.InputOffset()], []byte("\n")),
					fmt.Errorf("two keys are named %q; %w", start(key), errRepeated)
			}
			at.keys[key], at.value = true, true
			continue
		case delim == '{':
			at.value = false
			levels = append(levels, level{keys: map[string]bool{}})
		case delim == '[':
			at.value = false
			levels = append(levels, level{})
		default:
			at.value = false
		}
	}
}

// plain returns text with the control bytes in its strings escaped, which JSON requires and some writers omit, the
// number of keys in it, and whether it nests too deep.
func plain(text []byte) (escaped []byte, keys int, deep bool) {
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
		case c == ':':
			keys++
		case c == '}' || c == ']':
			depth--
		}
	}
	if out == nil {
		return text, keys, deep
	}
	return append(out, text[done:]...), keys, deep
}

// maxSquad is the largest size in bytes of a file in SQuAD's form, which is read at once.
const maxSquad = 256 << 20

const squadHead = 1 << 10

// beginsSquad matches the beginning of a file in the form of SQuAD 1.1 and 2.0, not of one record per line.
var beginsSquad = regexp.MustCompile(`^\s*\{\s*("version"\s*:\s*("[^"]*"|[0-9.]+)\s*,\s*)?"data"\s*:\s*\[`)

// IsSquad reports whether a JSON text begins like a file in SQuAD's form.
func IsSquad(text []byte) bool { return beginsSquad.Match(text[:min(len(text), squadHead)]) }

type squadFile struct {
	Data []squadArticle `json:"data"`
}

type squadArticle struct {
	Title      any               `json:"title"`
	Paragraphs []json.RawMessage `json:"paragraphs"`
}

func (a squadArticle) isOne() bool { return a.Paragraphs != nil }

type squadParagraph struct {
	Context   any              `json:"context"`
	Questions []map[string]any `json:"qas"`
}

// squad reads a file in SQuAD's form: one record per question, with the fields question, context, the article's title,
// answers and the question's other fields. Its place is the line where its paragraph begins, and its id or number.
func (d *reader) squad() {
	first := Place{File: d.file, Line: 1}
	raw, err := io.ReadAll(io.LimitReader(d.in, maxSquad+1))
	switch {
	case err != nil:
		d.add(first, "%w", err)
		return
	case len(raw) > maxSquad:
		d.add(first, "the file has more than %d MiB; divide it, or write one question a line", maxSquad>>20)
		return
	}
	text := []byte(d.decode(raw, first))
	var file squadFile
	if lines, err := unmarshal(text, &file, "the file"); err != nil {
		d.add(Place{File: d.file, Line: 1 + lines}, "not SQuAD's form: %w", err)
		return
	}
	if n := len(file.Data); n > 0 && !slices.ContainsFunc(file.Data, squadArticle.isOne) {
		d.add(first, "%s under the key \"data\", and none has paragraphs, as in SQuAD's form; records: data reads them",
			counted(n, "object"))
		return
	}
	contexts := &longTexts{}
	line, done, newline := 1, 0, []byte("\n") // of the file, up to a paragraph
	for _, article := range file.Data {
		for _, p := range article.Paragraphs {
			before, behind, _ := bytes.Cut(text[done:], p)
			line += bytes.Count(before, newline)
			d.paragraph(Place{File: d.file, Line: line}, article.Title, p, contexts)
			line += bytes.Count(p, newline)
			done = len(text) - len(behind)
		}
	}
}

func (d *reader) paragraph(at Place, title any, raw []byte, contexts *longTexts) {
	var p squadParagraph
	if lines, err := unmarshal(raw, &p, "the paragraph"); err != nil {
		at.Line += lines
		d.add(at, "not SQuAD's form: %w; a paragraph has a context and qas, a list of questions", err)
		return
	}
	for _, q := range p.Questions {
		if q == nil {
			d.add(at, "a question is null; want one with question and answers")
			continue
		}
		q["context"], q["title"] = p.Context, title
		own := at
		own.Entry = fmt.Sprint("question ", d.read+1)
		if id, ok := scalar(q["id"]); ok && id != "" {
			own.Entry = fmt.Sprintf("question %q", id)
		}
		d.addRecord(Record{Place: own, Fields: q, longTexts: contexts})
	}
}

const escapeSize = len(`\ud800`)

// loneSurrogate returns the offset of the first escape in a JSON text that is half of a surrogate pair, -1 for none:
// encoding/json reads U+FFFD there.
func loneSurrogate(text []byte) int {
	for at := 0; at < len(text); {
		next := bytes.IndexByte(text[at:], '\\')
		if next < 0 {
			return -1
		}
		at += next
		switch unit := escapedUnit(text[at:]); {
		case unit < 0:
			at += 2
		case !utf16.IsSurrogate(unit):
			at += escapeSize
		case utf16.DecodeRune(unit, escapedUnit(text[at+escapeSize:])) == utf8.RuneError:
			return at
		default:
			at += 2 * escapeSize
		}
	}
	return -1
}

// escapedUnit returns the unit of UTF-16 in the escape that a text begins with; -1 for none.
func escapedUnit(text []byte) rune {
	if len(text) < escapeSize || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:escapeSize]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}

// unmarshal is json.Unmarshal of what a text is, but keeps numbers as json.Number. With an error, lines is the number
// of line ends before it.
func unmarshal(text []byte, into any, what string) (lines int, err error) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(into)
	at := len(text)
	syntax, isSyntax := errors.AsType[*json.SyntaxError](err)
	kind, isKind := errors.AsType[*json.UnmarshalTypeError](err)
	switch rest := bytes.TrimSpace(text[decoder.InputOffset():]); {
	case err == nil && len(rest) == 0:
		half := loneSurrogate(text)
		if half < 0 {
			return 0, nil
		}
		at = half
		column := utf8.RuneCount(text[bytes.LastIndexByte(text[:at], '\n')+1:at]) + 1
		err = fmt.Errorf("%s at character %d is half of a surrogate pair, which is no character; write both halves, "+
			"or the character itself", text[at:at+escapeSize], column)
	case err == nil:
		at = bytes.LastIndex(text, rest)
		err = fmt.Errorf("%q after %s's end", start(string(rest)), what)
	case isKind:
		at = min(int(kind.Offset), at)
		err = fmt.Errorf("%s has a wrong value, the %s here", cmp.Or(strings.TrimPrefix(kind.Field, "."), "the whole"),
			kind.Value)
	case isSyntax && int(syntax.Offset) <= at: // Offset is past the byte that is wrong
		at = max(0, int(syntax.Offset)-1)
		err = fmt.Errorf("not JSON from %q on", start(string(text[at:])))
	default:
		err = fmt.Errorf("%s ends early", what)
	}
	return bytes.Count(text[:at], []byte("\n")), err
}
