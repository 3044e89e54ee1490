package corpus

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Record is one entry of a data file: its named fields and its place. A field is nil, string, json.Number, bool,
// []string, []any or map[string]any.
type Record struct {
	Place  Place
	Fields map[string]any

	// The fields by the file's own names, if Format.Rename added ours to Fields; else nil.
	inFile map[string]any
	headed bool // the first line of the file, a table, has named its fields

	written string // the text that the field words was split from, a comment of CoNLL-U; "": not known
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

// FieldNames lists the names of the record's fields in its file, for an error.
func (r Record) FieldNames() string {
	if r.inFile != nil {
		return listed(r.inFile)
	}
	return listed(r.Fields)
}
