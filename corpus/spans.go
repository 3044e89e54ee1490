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
	items, err := r.answerItems(context)
	if err != nil || items == nil {
		return nil, false, err
	}
	at := characterOffsets(context)
	answers = make([]TextSpan, len(items))
	for i, item := range items {
		text, begin, err := r.answer(item)
		from := -1
		switch {
		case err != nil:
			return nil, false, err
		case text == "":
			return nil, false, fmt.Errorf("%s: answer %d is empty; where there is none, answers is an empty list",
				r.Place, i+1)
		case begin == nil:
			if from = strings.Index(context, text); from < 0 {
				return nil, false, fmt.Errorf("%s: answer %d is %q, which is not in the context; an answer is a "+
					"verbatim part of it", r.Place, i+1, start(text))
			}
		default:
			number, _ := scalar(begin)
			n, err := strconv.Atoi(number)
			if err != nil || n < 0 || n >= len(at) {
				return nil, false, fmt.Errorf("%s: answer %d begins at %s; want a character of the context, 0 to %d",
					r.Place, i+1, shown(begin), len(at)-1)
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

func elsewhere(context, text string) string {
	at := strings.Index(context, text)
	if at < 0 {
		return ", and the answer nowhere"
	}
	return fmt.Sprintf("; the answer first is at %d", utf8.RuneCountInString(context[:at]))
}

// answerItems returns the items of the field answers, nil if there are none. A text that is not in the context may hold
// them as JSON.
func (r Record) answerItems(context string) ([]any, error) {
	answers := r.Fields["answers"]
	if text, isText := answers.(string); isText && !strings.Contains(context, text) {
		if list, held := ParseJSON(text); held {
			answers = list
		}
	}
	switch v := answers.(type) {
	case []any:
		return v, nil
	case map[string]any:
		return r.answerColumns(v)
	}
	text, single := scalar(answers)
	if !single {
		return nil, r.notAnswers("is", answers)
	}
	if text == "" {
		return nil, nil
	}
	return []any{text}, nil
}

// answerColumns returns the items of {"text": […], "answer_start": […]}, whose starts may be missing.
func (r Record) answerColumns(v map[string]any) ([]any, error) {
	list, isList := v["text"].([]any)
	if !isList {
		return nil, r.notAnswers("is", v)
	}
	at, isList := v["answer_start"].([]any)
	switch {
	case v["answer_start"] != nil && !isList:
		return nil, fmt.Errorf("%s: field \"answers\": its \"answer_start\" is %s; want a list, as long as that of "+
			"\"text\"", r.Place, kind(v["answer_start"]))
	case isList && len(at) != len(list):
		return nil, fmt.Errorf("%s: field \"answers\": %d of \"text\" and %d of \"answer_start\"; want one for each",
			r.Place, len(list), len(at))
	}
	items := make([]any, len(list))
	for i, text := range list {
		item := map[string]any{"text": text}
		if isList {
			item["answer_start"] = at[i]
		}
		items[i] = item
	}
	return items, nil
}

// answer returns the text of an item, a text or {"text", "answer_start"}, and its start, nil if it has none.
func (r Record) answer(item any) (text string, begin any, err error) {
	object, isObject := item.(map[string]any)
	what := "holds"
	if isObject {
		what, item, begin = "holds a text that is", object["text"], object["answer_start"]
	}
	text, single := scalar(item)
	if !single {
		err = r.notAnswers(what, item)
	}
	return text, begin, err
}

func (r Record) notAnswers(what string, v any) error {
	return fmt.Errorf("%s: field \"answers\" %s %s; it takes a list of texts or of {\"text\", \"answer_start\"}",
		r.Place, what, kind(v))
}

// OffsetUnit is what offsets in a text count. Data files count characters; a Span counts bytes.
type OffsetUnit int

// Units of offsets.
const (
	Characters OffsetUnit = iota // Unicode code points, as in Python
	Bytes                        // of UTF-8, as in Go and Rust
	UTF16                        // code units, as in JavaScript, Java and C#
)

var offsetUnits = [...]string{Characters: "characters", Bytes: "bytes", UTF16: "utf16"}

// ParseOffsetUnit returns the unit with a name: characters, bytes or utf16.
func ParseOffsetUnit(name string) (OffsetUnit, error) {
	if unit := slices.Index(offsetUnits[:], name); unit >= 0 {
		return OffsetUnit(unit), nil
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
	at   []int32 // by byte, and the end: the position of the character that it belongs to; nil: positions are bytes
}

// NewOffsets indexes a text of valid UTF-8, in time proportional to its length.
func NewOffsets(text string, unit OffsetUnit) Offsets {
	if unit == Bytes || !strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return Offsets{}
	}
	at := make([]int32, len(text)+1)
	n := int32(0)
	for i := range len(text) {
		at[i] = n
		switch b := text[i]; {
		case !utf8.RuneStart(b):
			at[i] = at[max(0, i-1)]
		case unit == UTF16 && b >= 0xf0: // a code point beyond the basic plane is a surrogate pair
			n += 2
		default:
			n++
		}
	}
	at[len(text)] = n
	return Offsets{text, at}
}

// Span returns a span in the unit. A byte inside of a character, where byte-level tokens may begin and end, counts as
// the character's begin at the start of the span and as its end at the end.
func (o Offsets) Span(s Span) Span {
	if o.at == nil {
		return s
	}
	for s.End < len(o.text) && !utf8.RuneStart(o.text[s.End]) {
		s.End++
	}
	return Span{int(o.at[s.Start]), int(o.at[s.End])}
}
