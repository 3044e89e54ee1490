package corpus

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/jenga-nlp/jenga/internal/printable"
)

// Record is one entry of a data file: its named fields and its place. A field is nil, string, json.Number, bool,
// []string, []any or map[string]any.
type Record struct {
	Place  Place
	Fields map[string]any

	// The fields by the file's own names, if Format.Rename added ours to Fields; else nil.
	inFile map[string]any

	longTexts *longTexts // of the file; nil: none are kept

	headed bool // the first line of the file, a table, has named its fields

	written string // the text that the field words was split from, a comment of CoNLL-U; "": not known
	offsets string // Format.Offsets of its file
	shift   [2]int // that is added to the start and end of entities

	classes *classes // names of the file's integers
	wrong   error    // such an integer has no name
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
	if !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{") {
		return nil, false
	}
	_, err := unmarshal([]byte(text), &value, "the text")
	return value, err == nil
}

// ParseCell parses a text that holds a list or an object as JSON, or as Python or NumPy writes it, which pandas does in
// the cells of a table: ['a', 'b'], or [1 0 0].
func ParseCell(text string) (value any, ok bool) {
	if value, ok = ParseJSON(text); ok {
		return value, true
	}
	if text = strings.TrimSpace(text); !strings.HasPrefix(text, "[") && !strings.HasPrefix(text, "{") {
		return nil, false
	}
	return parsePython(text)
}

// Strings returns a field that holds a list of values. A text may hold the list as ParseCell reads it; any other text
// is split at blanks. A null in a list is "". ok is false if the field is absent, null or an empty text.
func (r Record) Strings(field string) (values []string, ok bool, err error) {
	value := r.Fields[field]
	if text, isText := value.(string); isText {
		if list, held := ParseCell(text); held {
			value = list
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

// FieldNames lists the names of the record's fields in its file, for an error.
func (r Record) FieldNames() string {
	if r.inFile != nil {
		return listed(r.inFile)
	}
	return listed(r.Fields)
}

// Example returns an example without targets, from the fields text, pair and words. Words without a text are joined by
// blanks; with a text they are its words, with only white space between them.
func (r Record) Example() (Example, error) {
	first, second := r.TextFields()
	e := Example{Place: r.Place, Paired: r.Fields[second] != nil}
	if r.wrong != nil {
		return e, r.wrong
	}
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
	e.WordsGiven = given
	if i := slices.Index(words, ""); i >= 0 {
		return e, fmt.Errorf("%s: word %d is empty; a word has at least one character", r.Place, i+1)
	}

	switch {
	case !given && r.Fields[first] == nil:
		return e, fmt.Errorf("%s: no text; data: {text: FIELD} names the field that holds it; available: %s%s",
			r.Place, r.FieldNames(), r.noHeader())
	case !given:
		e.Text = text
	case r.Fields[first] == nil:
		e.Text, e.Words = joinWords(words)
		e.Written = r.written
	default:
		e.Text = text
		if e.Words, err = findWords(text, words); err != nil {
			return e, fmt.Errorf("%s: %w", r.Place, err)
		}
	}
	return e, nil
}

// noHeader continues an error about missing fields of a table: its first line may be a record, or a word and its tag.
func (r Record) noHeader() string {
	if !r.headed {
		return ""
	}
	for _, value := range r.Fields { // rather than names, as E-mail
		if text, _ := value.(string); IsSpanTag(text) && len(strings.Fields(text)) == 1 {
			return "; " + headerRemedy + "; format: conll, with the file's delimiter, reads lines of words and tags " +
				"with empty lines between sentences"
		}
	}
	return "; " + headerRemedy
}

// IsSpanTag reports whether a tag marks spans, in BIO, BIOES, BILOU or BMES.
func IsSpanTag(tag string) bool { return spanTag.MatchString(tag) }

var spanTag = regexp.MustCompile(`^(O|[BIESLUM]-.+)$`)

// Tags of spans in other forms, as far as one shows it: of a letter after the label, and of brackets as in CoNLL-2012.
var (
	suffixTag  = regexp.MustCompile(`^(.+)-([BIESLUM])$`)
	bracketTag = regexp.MustCompile(`^((\([^()*]+)*\*|(\([^()*]+)+\))\)*$`)
)

// OtherSpanTag says how to write a tag that marks spans in another form than those of IsSpanTag; "" for other tags.
func OtherSpanTag(tag string) string {
	parts := suffixTag.FindStringSubmatch(tag)
	switch {
	case parts != nil:
		return fmt.Sprintf("its letter is after the label: write %s-%s", parts[2], parts[1])
	case bracketTag.MatchString(tag):
		return "it is of CoNLL-2012's form, in brackets: write (X* and (X) as B-X, * and *) within X as I-X, " +
			"else * as O"
	}
	return ""
}

// TextFields returns the names of the fields of the two texts: text and pair, or question and context.
func (r Record) TextFields() (first, second string) {
	first, second = "text", "pair"
	if r.Fields[first] == nil && r.Fields["words"] == nil && r.Fields["question"] != nil {
		first = "question"
		if r.Fields[second] == nil {
			second = "context"
		}
	}
	return first, second
}

// TwoTexts returns the fields of two texts of a record, of which only the first is read, though Fields names neither: a
// text, or words, beside a question, or beside a question a pair and a context. ok is false if there are none.
func (f Format) TwoTexts(r Record) (read, unread string, ok bool) {
	given := func(name string) bool {
		theirs, renamed := f.Fields[name]
		return r.Fields[name] != nil && !(renamed && theirs == "") // not read
	}
	named := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return f.Fields[name] != "" })
	}
	if given("question") && !named("text", "words", "question", "context") {
		for _, name := range []string{"text", "words"} {
			if given(name) {
				return name, "question", true
			}
		}
	}
	question := named("question") || given("question") && !named("text", "words", "context")
	if question && !named("pair", "context") && given("pair") && given("context") {
		return "pair", "context", true
	}
	return "", "", false
}

func joinWords(words []string) (string, []Span) {
	spans := make([]Span, len(words))
	start := 0
	for i, w := range words {
		spans[i] = Span{start, start + len(w)}
		start += len(w) + 1
	}
	return strings.Join(words, " "), spans
}

// findWords returns the span of each word in text. Between words there is white space, and what tokenizers drop.
func findWords(text string, words []string) ([]Span, error) {
	spans := make([]Span, len(words))
	rest := text
	for i, w := range words {
		rest = trimGap(rest, w)
		if !strings.HasPrefix(rest, w) {
			return nil, fmt.Errorf("word %d is %q, but the text has %q there; want text or words, or words that make "+
				"up the text",
				i+1, start(w), start(rest))
		}
		spans[i] = Span{len(text) - len(rest), len(text) - len(rest) + len(w)}
		rest = rest[len(w):]
	}
	if rest = trimGap(rest, ""); rest != "" {
		return nil, fmt.Errorf("the text goes on with %q after its last word; want text or words, or words that make "+
			"up the text",
			start(rest))
	}
	return spans, nil
}

// trimGap returns rest from the next word on, "" for the end: without white space, and without the control characters,
// format characters and combining marks before it, which tokenizers drop.
func trimGap(rest, word string) string {
	rest = strings.TrimLeftFunc(rest, unicode.IsSpace)
	if at := strings.Index(rest, word); word != "" && at >= 0 && trimDropped(rest[:at]) == "" {
		return rest[at:]
	}
	return trimDropped(rest)
}

func trimDropped(s string) string {
	return strings.TrimLeftFunc(s, isDropped)
}

func isDropped(r rune) bool {
	return unicode.IsSpace(r) || unicode.In(r, unicode.Mn, unicode.Cc, unicode.Cf)
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

// wholeNumber parses a whole number, also as pandas writes those of a column that has NaN: 3.0.
func wholeNumber(text string) (int, error) { return strconv.Atoi(strings.TrimSuffix(text, ".0")) }

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

func listed(fields map[string]any) string {
	const most = 20
	if len(fields) == 0 {
		return "none"
	}
	names := fieldNames(fields)
	if len(names) > most {
		names = append(names[:most], "…")
	}
	for i, name := range names {
		names[i] = start(name)
		if strings.TrimSpace(name) != name || !printable.Is(name) {
			names[i] = strconv.Quote(names[i])
		}
	}
	return strings.Join(names, ", ")
}

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

func counted(n int, name string) string {
	if n == 1 {
		return "1 " + name
	}
	return fmt.Sprintf("%d %ss", n, name)
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// splitBlanks splits a text at blanks and tabs. Other white space, such as a no-break space, may be part of a word.
func splitBlanks(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
}
