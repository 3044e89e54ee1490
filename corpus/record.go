package corpus

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Record is one entry of a data file: its named fields and its place. A field is nil, string, json.Number, bool,
// []string, []any or map[string]any.
type Record struct {
	Place  Place
	Fields map[string]any
}

// String returns a field that holds one value, numbers and booleans as written in the file. ok is false if the field is
// absent, null or empty.
func (r Record) String(field string) (value string, ok bool, err error) {
	value, ok = scalar(r.Fields[field])
	if !ok {
		return "", false, fmt.Errorf("%s: field %q is %s; it takes a text, a number, true or false",
			r.Place, field, kind(r.Fields[field]))
	}
	return value, value != "", nil
}

// ParseJSON parses a text that holds a list or an object as JSON, such as a cell of a table.
func ParseJSON(text string) (value any, ok bool) {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return nil, false
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	return value, d.Decode(&value) == nil
}

// pythonList matches a list of texts as pandas writes it, with single or double quotes.
var pythonList = regexp.MustCompile(`(?s)^\s*\[['"].*['"]\]\s*$`)

// Strings returns a field that holds a list of values. A text may hold the list as JSON; any other text is split at
// blanks. A null in a list is "". ok is false if the field is absent, null or an empty text.
func (r Record) Strings(field string) (values []string, ok bool, err error) {
	value := r.Fields[field]
	if text, isText := value.(string); isText {
		if list, held := ParseJSON(text); held {
			value = list
		} else if pythonList.MatchString(text) {
			return nil, false, fmt.Errorf(`%s: field %q is a list in Python, %s; want one in JSON, ["a", "b"], or a b`,
				r.Place, field, start(strings.TrimSpace(text)))
		}
	}
	switch v := value.(type) {
	case []string:
		return slices.Clone(v), true, nil // the caller may change it
	case []any:
		values = make([]string, len(v))
		for i := range v {
			if values[i], ok = scalar(v[i]); !ok {
				return nil, false, fmt.Errorf("%s: field %q holds %s; it takes a list of texts", r.Place, field,
					kind(v[i]))
			}
		}
		return values, true, nil
	}
	text, ok, err := r.String(field)
	if !ok || err != nil {
		return nil, false, err
	}
	return splitBlanks(text), true, nil
}

// FieldNames lists the names of the record's fields, for an error.
func (r Record) FieldNames() string { return listed(r.Fields) }

// Example returns an example without targets, from the fields text, pair and words. Words without a text are joined by
// blanks; with a text they are its words, with only white space between them.
func (r Record) Example() (Example, error) {
	first, second := r.texts()
	e := Example{Place: r.Place, Paired: r.Fields[second] != nil}
	text, _, err := r.String(first)
	if err != nil {
		return e, err
	}
	if e.Pair, _, err = r.String(second); err != nil {
		return e, err
	}
	words, given, err := r.Strings("words")
	if err != nil {
		return e, err
	}
	if i := slices.Index(words, ""); i >= 0 {
		return e, fmt.Errorf("%s: word %d is empty; a word has at least one character", r.Place, i+1)
	}

	switch {
	case !given && r.Fields[first] == nil:
		return e, fmt.Errorf("%s: no text; data: {text: FIELD} names the field that holds it, there is %s",
			r.Place, listed(r.Fields))
	case !given:
		e.Text = text
	case r.Fields[first] == nil:
		e.Text, e.Words = joinWords(words)
	default:
		e.Text = text
		if e.Words, err = findWords(text, words); err != nil {
			return e, fmt.Errorf("%s: %w", r.Place, err)
		}
	}
	return e, nil
}

// texts returns the names of the fields of the two texts: text and pair, or question and context.
func (r Record) texts() (first, second string) {
	first, second = "text", "pair"
	if r.Fields[first] == nil && r.Fields["words"] == nil && r.Fields["question"] != nil {
		first = "question"
		if r.Fields[second] == nil {
			second = "context"
		}
	}
	return first, second
}

// Entity is a labelled span of a record's text.
type Entity struct {
	Label string
	Span  Span // bytes of its text
}

// Entities returns the field entities, a list of {"start": 13, "end": 21, "label": "PER"} with offsets in characters
// (code points) of text. They are sorted by start; an empty or overlapping entity is an error. ok is false if the field
// is absent or null.
func (r Record) Entities(text string) (entities []Entity, ok bool, err error) {
	field := r.Fields["entities"]
	if field == nil {
		return nil, false, nil
	}
	list, ok := field.([]any)
	if !ok {
		return nil, false, fmt.Errorf("%s: field \"entities\" is %s; it takes a list of {\"start\", \"end\", \"label\"}",
			r.Place, kind(field))
	}
	at := characterOffsets(text)
	entities = make([]Entity, len(list))
	for i, item := range list {
		if entities[i], err = entity(item, at); err != nil {
			return nil, false, fmt.Errorf("%s: entity %d: %w", r.Place, i+1, err)
		}
	}
	slices.SortStableFunc(entities, func(a, b Entity) int { return a.Span.Start - b.Span.Start })
	for i := 1; i < len(entities); i++ {
		if a, b := entities[i-1], entities[i]; b.Span.Start < a.Span.End {
			return nil, false, fmt.Errorf("%s: entities %s %q and %s %q overlap; a character belongs to one entity "+
				"at most",
				r.Place, start(a.Label), start(text[a.Span.Start:a.Span.End]), start(b.Label),
				start(text[b.Span.Start:b.Span.End]))
		}
	}
	return entities, true, nil
}

// entity reads one entity of a text. at holds the byte offset of each character, and last the text's length.
func entity(item any, at []int) (Entity, error) {
	fields, ok := item.(map[string]any)
	if !ok {
		return Entity{}, fmt.Errorf("it is %s; want {\"start\", \"end\", \"label\"}", kind(item))
	}
	var offsets [2]int
	for i, name := range []string{"start", "end"} {
		number, _ := scalar(fields[name])
		n, err := strconv.Atoi(number)
		if err != nil {
			return Entity{}, fmt.Errorf("%q is %s; want a whole number", name, shown(fields[name]))
		}
		offsets[i] = n
	}
	start, end := offsets[0], offsets[1]
	if start < 0 || start >= end || end >= len(at) {
		return Entity{}, fmt.Errorf("characters %d to %d of a text of %d; want 0 <= start < end <= %[3]d", start, end,
			len(at)-1)
	}
	label, ok := scalar(fields["label"])
	if !ok || label == "" {
		return Entity{}, fmt.Errorf("\"label\" is %s; want a name", shown(fields["label"]))
	}
	return Entity{label, Span{at[start], at[end]}}, nil
}

// characterOffsets returns the byte at which each character of text begins, and the text's length.
func characterOffsets(text string) []int {
	at := make([]int, 0, utf8.RuneCountInString(text)+1)
	for i := range text {
		at = append(at, i)
	}
	return append(at, len(text))
}

// scalar returns a single value as written in the file, "" for null.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case nil:
		return "", true
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	}
	return "", false
}

// kind describes the type of a value for an error.
func kind(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a text"
	case json.Number:
		return "a number"
	case bool:
		return "true or false"
	case []any, []string:
		return "a list"
	case map[string]any:
		return "an object"
	}
	panic(fmt.Sprintf("corpus: a field of type %T", v))
}

// listed lists the names of fields for an error.
func listed(fields map[string]any) string {
	const most = 20
	if len(fields) == 0 {
		return "none"
	}
	names := slices.Sorted(maps.Keys(fields))
	if len(names) > most {
		names = append(names[:most], "…")
	}
	for i, name := range names {
		names[i] = start(name)
		if strings.TrimSpace(name) != name ||
			strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			names[i] = strconv.Quote(names[i])
		}
	}
	return strings.Join(names, ", ")
}

// shown formats the value of a field, which may be absent, for an error.
func shown(v any) string {
	if v == nil {
		return "absent"
	}
	if s, ok := scalar(v); ok {
		return strconv.Quote(start(s))
	}
	return kind(v)
}

// joinWords joins words by blanks and returns the span of each.
func joinWords(words []string) (string, []Span) {
	spans := make([]Span, len(words))
	start := 0
	for i, w := range words {
		spans[i] = Span{start, start + len(w)}
		start += len(w) + 1
	}
	return strings.Join(words, " "), spans
}

// findWords returns the span of each word in text.
func findWords(text string, words []string) ([]Span, error) {
	spans := make([]Span, len(words))
	rest := strings.TrimLeftFunc(text, unicode.IsSpace)
	for i, w := range words {
		if !strings.HasPrefix(rest, w) {
			return nil, fmt.Errorf("word %d is %q, but the text has %q there; want text or words, or words that make "+
				"up the text",
				i+1, start(w), start(rest))
		}
		spans[i] = Span{len(text) - len(rest), len(text) - len(rest) + len(w)}
		rest = strings.TrimLeftFunc(rest[len(w):], unicode.IsSpace)
	}
	if rest != "" {
		return nil, fmt.Errorf("the text goes on with %q after its last word; want text or words, or words that make "+
			"up the text",
			start(rest))
	}
	return spans, nil
}

// start returns the first characters of a text, for an error.
func start(text string) string {
	const characters = 20
	n := 0
	for i := range text {
		if n == characters {
			return text[:i] + "…"
		}
		n++
	}
	return text
}

// splitBlanks splits a text at blanks and tabs. Other white space, such as a no-break space, may be part of a word.
func splitBlanks(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
}
