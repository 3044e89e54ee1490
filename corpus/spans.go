package corpus

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// OffsetsError is the error of a span whose offsets do not lie in its text, or do not give the text that it has itself:
// they may count in another unit.
type OffsetsError struct{ error }

// WrongOffsets returns the error of a span of which the offsets are likely to count in another unit.
func WrongOffsets(format string, args ...any) error {
	return &OffsetsError{fmt.Errorf(format, args...)}
}

// Unwrap returns what is wrong.
func (e *OffsetsError) Unwrap() error { return e.error }

// unitWords is the value of Format.Offsets for entities whose start and end are their first and last word, from 0.
const unitWords = "words"

// unitWordBounds is that value where their end is the word after the last one.
const unitWordBounds = "word_bounds"

func areWords(unit string) bool { return unit == unitWords || unit == unitWordBounds }

// units are the values of Format.Offsets. Spans that all fit as words in both ways are likelier to have their end after
// the last word: one word alone, of which first and last are the same, fits in one way.
var units = append(slices.Clone(offsetUnits[:]), unitWordBounds, unitWords)

// EndOfWords says what the end of a span is in a unit of words, for a message.
func EndOfWords(unit string) string {
	if unit == unitWords {
		return "the last word of a span"
	}
	return "the word after the last one"
}

// positions converts offsets in a text from their unit to bytes.
type positions struct {
	unit  string
	text  string
	at    []int  // the byte of each position and of the text's end, -1 within a character
	words []Span // units of words: of the text
	shift [2]int // that is added to the start and the end of entities
}

// positions returns the positions in a text of the record, in the unit of its file.
func (r Record) positions(text string) (positions, error) {
	if !areWords(r.offsets) {
		p := r.longTexts.positions(text, r.offsets)
		p.shift = r.shift
		return p, nil
	}
	e, err := r.Example()
	if err == nil && !e.WordsGiven {
		err = fmt.Errorf("%s: offsets: %s, but no words; data: {words: FIELD} names the field that holds them",
			r.Place, r.offsets)
	}
	return positions{unit: r.offsets, text: text, words: e.Words}, err
}

// one is a position's unit, for an error.
func (p positions) one() string {
	switch p.unit {
	case offsetUnits[UTF16]:
		return "UTF-16 unit"
	case unitWordBounds:
		return "word"
	}
	return strings.TrimSuffix(p.unit, "s")
}

// positionsIn returns the positions in a text in a unit, of which words and "" are characters.
func positionsIn(text, unit string) positions {
	p := positions{unit: unit, text: text}
	if unit == "" || areWords(unit) {
		p.unit = offsetUnits[Characters]
	}
	p.at = make([]int, 0, utf8.RuneCountInString(text)+1)
	for i, c := range text {
		p.at = append(p.at, i)
		within := 0
		switch p.unit {
		case offsetUnits[Bytes]:
			within = utf8.RuneLen(c) - 1
		case offsetUnits[UTF16]:
			within = utf16.RuneLen(c) - 1
		}
		for range within {
			p.at = append(p.at, -1)
		}
	}
	p.at = append(p.at, len(text))
	return p
}

// longTexts has the positions in the long text that it was asked for last, by unit: of SQuAD's form, where the
// questions about one context follow one another. Goroutines may use it at once; nil has none.
type longTexts struct {
	sync.Mutex
	text string
	last map[string]positions
}

func (l *longTexts) positions(text, unit string) positions {
	const long = 1 << 14 // bytes
	if l == nil || len(text) < long {
		return positionsIn(text, unit)
	}
	l.Lock()
	defer l.Unlock()
	if l.text != text || l.last == nil {
		l.text, l.last = text, map[string]positions{}
	}
	p, known := l.last[unit]
	if !known {
		p = positionsIn(text, unit)
		l.last[unit] = p
	}
	return p
}

// span returns the bytes of a span that is not empty.
func (p positions) span(start, end int) (Span, error) {
	if p.unit == unitWordBounds {
		if start < 0 || start >= end || end > len(p.words) {
			return Span{}, &OffsetsError{fmt.Errorf("words %d to %d of a text of %d; want 0 <= start < end <= %[3]d",
				start, end, len(p.words))}
		}
		return Span{p.words[start].Start, p.words[end-1].End}, nil
	}
	if p.unit == unitWords {
		if start < 0 || start > end || end >= len(p.words) {
			return Span{}, &OffsetsError{fmt.Errorf("words %d to %d of a text of %d; want 0 <= first <= last < %[3]d",
				start, end, len(p.words))}
		}
		return Span{p.words[start].Start, p.words[end].End}, nil
	}
	if start < 0 || start >= end || end >= len(p.at) {
		return Span{}, &OffsetsError{fmt.Errorf("%ss %d to %d of a text of %d; want 0 <= start < end <= %[4]d", p.one(),
			start, end, len(p.at)-1)}
	}
	for _, n := range []int{start, end} {
		if p.at[n] < 0 {
			return Span{}, &OffsetsError{fmt.Errorf("%ss %d to %d: %d is within a character", p.one(), start, end, n)}
		}
	}
	return Span{p.at[start], p.at[end]}, nil
}

// WithOffsets returns the record with its offsets in a unit, a value of Format.Offsets.
func (r Record) WithOffsets(unit string) Record {
	r.offsets = unit
	return r
}

// FitOffsets returns the value of Format.Offsets in whose unit all of n records have their spans, in entities and
// answers; "" if there is none. Of units that all fit, it is the one in which fewest entities begin or end within a
// word or with white space, or overlap in a part; of these the first of characters, bytes, utf16, and then words. Where
// most of them do, it is words if they fit. Where words fit by their first and last one as well as by the one after the
// last, other is that one of the two which is less likely, by the names in the file of the fields of words and
// entities. Other mistakes of records do not count.
func FitOffsets(n int, record func(i int) (Record, error), fields map[string]string) (unit, other string) {
	fewest, mostly, ofBounds := 0, false, 0
	for _, u := range units {
		fit, broken, all := fits(n, record, u, [2]int{})
		if u == unitWordBounds {
			ofBounds = broken
		}
		switch {
		case fit && u == unitWords && unit == unitWordBounds:
			if broken <= ofBounds {
				other = u
			}
		case fit && (unit == "" || areWords(u) && mostly || !areWords(u) && broken < fewest):
			unit, fewest, mostly = u, broken, broken*2 > all
		}
	}
	if other != "" && endsAreWords(fields) {
		return other, unit
	}
	return unit, other
}

// endsAreWords reports whether fields have the names of a form in which a span ends with its last word: GLiNER's, and
// those of DyGIE++ and CrossRE, of which the spans are called so too.
func endsAreWords(fields map[string]string) bool {
	return fields["words"] == "tokenized_text" || fields["entities"] == "ner"
}

// MisplacedOffsets says what is wrong with the offsets of entities, in characters, if it is the same for all of n
// records: how they are counted otherwise, and what to add. It is "" if it is not.
func MisplacedOffsets(n int, record func(i int) (Record, error)) string {
	for _, other := range []struct {
		shift [2]int
		text  string
	}{
		{[2]int{0, 1}, "an end is the last character of a span here; want the one after it: add 1 to each end"},
		{[2]int{-1, -1}, "offsets count from 1 here; want them from 0: take 1 from each start and end"},
		{[2]int{-1, 0}, "offsets count from 1 here, and an end is the last character of a span; want them from 0: " +
			"take 1 from each start"},
	} {
		if fit, _, _ := fits(n, record, "", other.shift); fit {
			return other.text
		}
	}
	return ""
}

// fits reports whether the spans of all records lie in their texts in a unit, and are those that they have themselves;
// all is how many entities there are, and broken how many of these begin or end within a word or with white space, or
// overlap in a part.
func fits(n int, record func(i int) (Record, error), unit string, shift [2]int) (ok bool, broken, all int) {
	for i := range n {
		r, err := record(i)
		if err != nil {
			return false, 0, 0
		}
		r.offsets, r.shift = unit, shift
		e, err := r.Example()
		if err != nil {
			continue
		}
		entities, _, ofEntities := r.AllEntities(e.Text)
		_, _, ofAnswers := r.Answers(e.Pair)
		_, wrong := errors.AsType[*OffsetsError](errors.Join(ofEntities, ofAnswers))
		if wrong || areWords(unit) && !e.WordsGiven {
			return false, 0, 0
		}
		all += len(entities)
		for i, entity := range entities {
			if i > 0 && entities[i-1].Span.Start < entity.Span.Start &&
				entity.Span.Start < entities[i-1].Span.End && entities[i-1].Span.End < entity.Span.End {
				broken++ // it has a part of the one before
			}
			of := e.Text[entity.Span.Start:entity.Span.End]
			wrong := strings.TrimSpace(of) != of
			for _, at := range []int{entity.Span.Start, entity.Span.End} {
				before, _ := utf8.DecodeLastRuneInString(e.Text[:at])
				after, _ := utf8.DecodeRuneInString(e.Text[at:])
				wrong = wrong || unicode.IsLetter(before) && unicode.IsLetter(after)
			}
			if wrong {
				broken++
			}
		}
	}
	return true, broken, all
}

// TextSpan is a span of a text, such as the answer within a context.
type TextSpan struct {
	Text string
	Span Span // its bytes
}

// Answers returns the answers in a record's field answers, each with its place in context. The field is a list of
// texts, a list of {"text", "answer_start"}, or {"text": […], "answer_start": […]}, starts in the format's unit.
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
	at := r.longTexts.positions(context, r.offsets)
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
			n, err := wholeNumber(number)
			switch {
			case err != nil:
				return nil, false, fmt.Errorf("%s: answer %d begins at %s; want a %s of the context, 0 to %d",
					r.Place, i+1, shown(begin), at.one(), len(at.at)-1)
			case n < 0 || n >= len(at.at) || at.at[n] < 0:
				return nil, false, &OffsetsError{fmt.Errorf("%s: answer %d begins at %s; want a %s of the context, 0 "+
					"to %d, and none within a character", r.Place, i+1, shown(begin), at.one(), len(at.at)-1)}
			}
			if from = at.at[n]; !strings.HasPrefix(context[from:], text) {
				return nil, false, &OffsetsError{fmt.Errorf("%s: answer %d is %q, but the context has %q at %s "+
					"%d%s", r.Place, i+1, start(text), start(context[from:]), at.one(), n, at.elsewhere(text))}
			}
		}
		answers[i] = TextSpan{text, Span{from, from + len(text)}}
	}
	return answers, true, nil
}

// elsewhere ends an error about an answer that is not where it says.
func (p positions) elsewhere(answer string) string {
	at := strings.Index(p.text, answer)
	if at < 0 {
		return ", and the answer nowhere"
	}
	return fmt.Sprintf("; the answer first is at %d", slices.Index(p.at, at))
}

// answerItems returns the items of the field answers, nil if there are none. A text that is not in the context may hold
// them as JSON.
func (r Record) answerItems(context string) ([]any, error) {
	answers := r.Fields["answers"]
	if text, isText := answers.(string); isText && !strings.Contains(context, text) {
		if list, held := ParseCell(text); held {
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
