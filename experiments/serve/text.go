package serve

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/predict"
)

// readText reads a text, a string or an object.
func readText(value any, place string, columns predict.Columns) text {
	at := corpus.Place{File: place}
	fields, ok := value.(map[string]any)
	if s, isText := value.(string); isText {
		fields, ok = map[string]any{"text": s}, true
	}
	if !ok {
		return text{err: fmt.Errorf("%s: want a text, or an object with text, pair or words", place)}
	}
	if err := checkText(fields, columns); err != nil {
		return text{err: fmt.Errorf("%s: %w", place, err)}
	}
	line, err := predict.InputObject(fields, at, columns)
	return text{line.Example, err}
}

// checkText returns an error for fields of a text that contradict each other or are of another type, and for those that
// neither a form of a text nor the run's data has.
func checkText(fields map[string]any, columns predict.Columns) error {
	known := slices.Concat(textFields, slices.Concat(slices.Collect(maps.Values(columns))...))
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if !slices.Contains(known, name) {
			return fmt.Errorf("unknown field %q%s", name, nearest(name, textFields))
		}
	}
	var forms []string // of the text
	for _, name := range textFields {
		value, given := fields[name]
		if !given {
			continue
		}
		_, right := value.(string)
		if name == "words" {
			_, right = stringList(value)
		}
		if !right {
			return fmt.Errorf("%s: want a string, of words a list of strings", name)
		}
		if name != "pair" && name != "context" {
			forms = append(forms, name)
		}
	}
	_, pair := fields["pair"]
	_, context := fields["context"]
	switch questioned := slices.Contains(forms, "question"); {
	case len(forms) > 1:
		return fmt.Errorf("%s: want one of them", strings.Join(forms, " and "))
	case questioned != context:
		return errors.New("want question and context, or neither")
	case questioned && pair:
		return errors.New("question and pair: want context in place of pair")
	}
	return nil
}
