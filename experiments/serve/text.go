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
	for _, name := range textFields {
		value, given := fields[name]
		_, text := value.(string)
		_, words := stringList(value)
		switch {
		case given && name == "words" && !words:
			return fmt.Errorf("%s: want a list of strings", name)
		case given && name != "words" && !text:
			return fmt.Errorf("%s: want a string", name)
		}
	}
	var forms []string // of the text
	for _, role := range []string{"text", "words", "question"} {
		given := func(name string) bool { return fields[name] != nil }
		names := append([]string{role}, columns[role]...)
		if at := slices.IndexFunc(names, given); at >= 0 && !slices.Contains(forms, names[at]) {
			forms = append(forms, names[at])
		}
	}
	_, pair := fields["pair"]
	_, context := fields["context"]
	switch questioned := slices.Contains(forms, "question"); {
	case len(forms) > 1:
		return fmt.Errorf("%s: want one of them", strings.Join(forms, " and "))
	case questioned && !context:
		return errors.New("question: want context beside it")
	case context && !questioned:
		return errors.New("context: want question beside it")
	case questioned && pair:
		return errors.New("question and pair: want context in place of pair")
	}
	return nil
}
