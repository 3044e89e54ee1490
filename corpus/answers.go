package corpus

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

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
