package corpus

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// Example returns an example without targets, from the fields text, pair and words. Words without a text are joined by
// blanks; with a text they are its words, with only white space between them.
func (r Record) Example() (Example, error) {
	first, second := r.TextFields()
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

// noHeader continues an error about missing fields of a table: its first line may be a record.
func (r Record) noHeader() string {
	if !r.headed {
		return ""
	}
	return "; " + headerRemedy
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
	given := func(name string) bool { return r.Fields[name] != nil }
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

// trimDropped returns s without the white space, and what tokenizers drop, that it begins with.
func trimDropped(s string) string {
	return strings.TrimLeftFunc(s, func(r rune) bool {
		return unicode.IsSpace(r) || unicode.In(r, unicode.Mn, unicode.Cc, unicode.Cf)
	})
}
