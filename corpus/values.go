package corpus

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

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

// listed lists the names of fields for an error.
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
		if strings.TrimSpace(name) != name ||
			strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
			names[i] = strconv.Quote(names[i])
		}
	}
	return strings.Join(names, ", ")
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

// counted returns a number of things, one of which has the given name: "1 column", "2 columns".
func counted(n int, name string) string {
	if n == 1 {
		return "1 " + name
	}
	return fmt.Sprintf("%d %ss", n, name)
}

// splitBlanks splits a text at blanks and tabs. Other white space, such as a no-break space, may be part of a word.
func splitBlanks(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == ' ' || r == '\t' })
}
