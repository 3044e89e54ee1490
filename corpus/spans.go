package corpus

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Entity is a labelled span of a record's text.
type Entity struct {
	Label string
	Span  Span // bytes of its text
}

// Entities returns AllEntities, of which two that overlap are an error.
func (r Record) Entities(text string) (entities []Entity, ok bool, err error) {
	entities, ok, err = r.AllEntities(text)
	for i := 1; i < len(entities); i++ {
		if a, b := entities[i-1], entities[i]; b.Span.Start < a.Span.End {
			return nil, false, fmt.Errorf("%s: entities %s %q and %s %q overlap; a character belongs to one entity "+
				"at most, or overlap: longest or first beside the task's type keeps one of them",
				r.Place, start(a.Label), start(text[a.Span.Start:a.Span.End]), start(b.Label),
				start(text[b.Span.Start:b.Span.End]))
		}
	}
	return entities, ok, err
}

// AllEntities returns the field entities, a list of {"start": 13, "end": 21, "label": "PER"} with offsets in characters
// (code points) of text. They are sorted by start, and may overlap; an empty entity is an error. ok is false if the
// field is absent or null.
func (r Record) AllEntities(text string) (entities []Entity, ok bool, err error) {
	field := r.Fields["entities"]
	if field == nil {
		return nil, false, nil
	}
	list, ok := field.([]any)
	if !ok {
		return nil, false, fmt.Errorf(`%s: field "entities" is %s; it takes a list of {"start", "end", "label"}`,
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

// TextSpan is a span of a text, such as the answer within a context.
type TextSpan struct {
	Text string
	Span Span // its bytes
}

// Answers returns the answers in a record's field answers, each with its place in context. The field is a list of
// texts, a list of {"text", "answer_start"}, or {"text": […], "answer_start": […]}, starts in characters (code points).
// An answer without a start is at its first occurrence. ok is false if the field is absent or null. If is_impossible is
// true, in upper or lower case, there are no answers.
func (r Record) Answers(context string) (answers []TextSpan, ok bool, err error) {
	switch impossible, _, _ := r.String("is_impossible"); strings.ToLower(impossible) {
	case "true":
		return []TextSpan{}, true, nil
	case "", "false":
	default:
		return nil, false, fmt.Errorf("%s: field \"is_impossible\" is %q; want true or false", r.Place,
			start(impossible))
	}
	texts, starts, ok, err := r.answerTexts(context)
	if err != nil || !ok {
		return nil, ok, err
	}
	at := characterOffsets(context)
	answers = make([]TextSpan, len(texts))
	for i, text := range texts {
		from := -1
		switch {
		case text == "":
			return nil, false, fmt.Errorf("%s: answer %d is empty; where there is none, answers is an empty list",
				r.Place, i+1)
		case starts[i] == nil:
			if from = strings.Index(context, text); from < 0 {
				return nil, false, fmt.Errorf("%s: answer %d is %q, which is not in the context; an answer is a "+
					"verbatim part of it", r.Place, i+1, start(text))
			}
		default:
			n, err := wholeNumber(starts[i])
			if err != nil || n < 0 || n >= len(at) {
				return nil, false, fmt.Errorf("%s: answer %d begins at %s; want a character of the context, 0 to %d",
					r.Place, i+1, shown(starts[i]), len(at)-1)
			}
			if from = at[n]; !strings.HasPrefix(context[from:], text) {
				return nil, false, fmt.Errorf("%s: answer %d is %q, but the context has %q at character %d%s", r.Place,
					i+1, start(text), start(context[from:]), n, elsewhere(context, text))
			}
		}
		answers[i] = TextSpan{text, Span{from, from + len(text)}}
	}
	return answers, true, nil
}

// elsewhere describes where a text that is not at its given place first occurs.
func elsewhere(context, text string) string {
	at := strings.Index(context, text)
	if at < 0 {
		return ", and the answer nowhere"
	}
	return fmt.Sprintf("; the answer first is at %d", utf8.RuneCountInString(context[:at]))
}

func wholeNumber(v any) (int, error) {
	text, _ := scalar(v)
	return strconv.Atoi(text)
}

// answerList is the texts of the field answers and the start of each, nil where it has none.
type answerList struct {
	record Record
	texts  []string
	starts []any
}

// answerTexts returns the texts in the field answers and the start of each, nil if it has none. A text that is not in
// the context may hold them as JSON.
func (r Record) answerTexts(context string) (texts []string, starts []any, ok bool, err error) {
	answers := r.Fields["answers"]
	if text, isText := answers.(string); isText && !strings.Contains(context, text) {
		if list, held := ParseJSON(text); held {
			answers = list
		}
	}
	all := answerList{record: r}
	switch v := answers.(type) {
	case nil:
		return nil, nil, false, nil
	case []any:
		for _, item := range v {
			if err := all.add(item); err != nil {
				return nil, nil, false, err
			}
		}
	case map[string]any:
		if err := all.addColumns(v); err != nil {
			return nil, nil, false, err
		}
	default:
		text, single := scalar(v)
		if !single {
			return nil, nil, false, all.wrong("is", v)
		}
		if text == "" {
			return nil, nil, false, nil
		}
		all.texts, all.starts = []string{text}, []any{nil}
	}
	return all.texts, all.starts, true, nil
}

// add appends an answer: a text, or {"text", "answer_start"}.
func (a *answerList) add(v any) error {
	item, isObject := v.(map[string]any)
	if !isObject {
		text, single := scalar(v)
		if !single {
			return a.wrong("holds", v)
		}
		a.texts, a.starts = append(a.texts, text), append(a.starts, nil)
		return nil
	}
	text, single := scalar(item["text"])
	if !single {
		return a.wrong("holds a text that is", item["text"])
	}
	a.texts, a.starts = append(a.texts, text), append(a.starts, item["answer_start"])
	return nil
}

// addColumns appends the answers of {"text": […], "answer_start": […]}, whose starts may be missing.
func (a *answerList) addColumns(v map[string]any) error {
	list, isList := v["text"].([]any)
	if !isList {
		return a.wrong("is", v)
	}
	at, isList := v["answer_start"].([]any)
	switch {
	case v["answer_start"] != nil && !isList:
		return fmt.Errorf("%s: field \"answers\": its \"answer_start\" is %s; want a list, as long as that of \"text\"",
			a.record.Place, kind(v["answer_start"]))
	case isList && len(at) != len(list):
		return fmt.Errorf("%s: field \"answers\": %d of \"text\" and %d of \"answer_start\"; want one for each",
			a.record.Place, len(list), len(at))
	}
	for i, item := range list {
		begin := any(nil)
		if at != nil {
			begin = at[i]
		}
		if err := a.add(map[string]any{"text": item, "answer_start": begin}); err != nil {
			return err
		}
	}
	return nil
}

// wrong is the error of a value that is no answer.
func (a *answerList) wrong(what string, v any) error {
	return fmt.Errorf("%s: field \"answers\" %s %s; it takes a list of texts or of {\"text\", \"answer_start\"}",
		a.record.Place, what, kind(v))
}

// OffsetUnit is what offsets in a text count. Data files count characters; a Span counts bytes.
type OffsetUnit int

// Units of offsets.
const (
	Characters OffsetUnit = iota // Unicode code points, as in Python
	Bytes                        // of UTF-8, as in Go and Rust
	UTF16                        // code units, as in JavaScript, Java and C#
)

// offsetUnits are the names of the units.
var offsetUnits = [...]string{Characters: "characters", Bytes: "bytes", UTF16: "utf16"}

// ParseOffsetUnit returns the unit with a name: characters, bytes or utf16.
func ParseOffsetUnit(name string) (OffsetUnit, error) {
	for unit, known := range offsetUnits {
		if name == known {
			return OffsetUnit(unit), nil
		}
	}
	return 0, fmt.Errorf("%q: want one of %s", name, strings.Join(offsetUnits[:], ", "))
}

// Check returns an error for a number that is none of the units.
func (u OffsetUnit) Check() error {
	if u < 0 || int(u) >= len(offsetUnits) {
		return fmt.Errorf("unit %d: want one of %s", u, strings.Join(offsetUnits[:], ", "))
	}
	return nil
}

func (u OffsetUnit) String() string { return offsetUnits[u] }

// Offsets converts positions in one text from bytes to a unit. The zero value returns bytes unchanged.
type Offsets struct {
	text string
	unit OffsetUnit
	at   []int // the position of the byte i*offsetStep in the unit; nil if all positions are those of bytes
}

// offsetStep is how many bytes lie between two indexed positions: a conversion counts at most that many.
const offsetStep = 64

// NewOffsets indexes a text of valid UTF-8, in time proportional to its length.
func NewOffsets(text string, unit OffsetUnit) Offsets {
	o := Offsets{text: text, unit: unit}
	if unit == Bytes || isASCII(text) {
		return o
	}
	o.at = make([]int, 0, len(text)/offsetStep+1)
	n := 0
	for i := 0; i < len(text); i++ {
		if i%offsetStep == 0 {
			o.at = append(o.at, n)
		}
		n += o.units(text[i])
	}
	return o
}

// units returns the units of the character that begins with a byte, 0 for the bytes inside of a character.
func (o Offsets) units(b byte) int {
	switch {
	case !utf8.RuneStart(b):
		return 0
	case o.unit == UTF16 && b >= 0xf0: // a code point beyond the basic plane is a surrogate pair
		return 2
	}
	return 1
}

// Span returns a span in the unit. A byte inside of a character, where byte-level tokens may begin and end, counts as
// the character's begin at the start of the span and as its end at the end.
func (o Offsets) Span(s Span) Span {
	if o.at == nil {
		return s
	}
	for s.Start < len(o.text) && !utf8.RuneStart(o.text[s.Start]) {
		s.Start--
	}
	for s.End < len(o.text) && !utf8.RuneStart(o.text[s.End]) {
		s.End++
	}
	return Span{o.position(s.Start), o.position(s.End)}
}

// position returns the units before a byte.
func (o Offsets) position(at int) int {
	step := min(at/offsetStep, len(o.at)-1)
	n := o.at[step]
	for _, b := range []byte(o.text[step*offsetStep : at]) {
		n += o.units(b)
	}
	return n
}

func isASCII(text string) bool {
	for i := range len(text) {
		if text[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
