package serve

import (
	"encoding/json"
	"math"
	"net/http"
)

// wholeField sets a number to a field, unless it is not given.
func wholeField(fields map[string]any, name string, most int, to *int) error {
	value, ok := fields[name]
	if !ok {
		return nil
	}
	number, _ := value.(json.Number)
	v, err := number.Float64() // 3.0 is an integer in JSON
	if err != nil || !(v >= 0 && v <= float64(most)) || v != math.Trunc(v) {
		return mistake(http.StatusBadRequest, "%s: want a whole number from 0 to %d", name, most)
	}
	*to = int(v)
	return nil
}

// boolField sets a boolean to a field, unless it is not given.
func boolField(fields map[string]any, name string, to *bool) error {
	value, ok := fields[name]
	if !ok {
		return nil
	}
	if *to, ok = value.(bool); !ok {
		return mistake(http.StatusBadRequest, "%s: want true or false", name)
	}
	return nil
}

// stringField returns a field, "" if it is not given.
func stringField(fields map[string]any, name string) (string, error) {
	value, ok := fields[name]
	s, isText := value.(string)
	if ok && !(isText && s != "") {
		return "", mistake(http.StatusBadRequest, "%s: want a string that is not empty", name)
	}
	return s, nil
}

// stringList returns the strings of a list; ok is false for other values.
func stringList(value any) (all []string, ok bool) {
	list, ok := anyList(value)
	for _, one := range list {
		s, isText := one.(string)
		all, ok = append(all, s), ok && isText
	}
	return all, ok
}

func anyList(value any) (list []any, ok bool) {
	switch value := value.(type) {
	case []any:
		return value, true
	case []string:
		for _, s := range value {
			list = append(list, s)
		}
		return list, true
	}
	return nil, false
}
