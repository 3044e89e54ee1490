package files

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// MaxConfig bounds the size in bytes of a model's config.json, which may list a label for each word of a vocabulary.
const MaxConfig = 16 << 20

// ReadJSON parses the object in the regular file at path, of at most limit bytes. Errors name the file and the line.
func ReadJSON(path string, limit int64, into any) error {
	data, err := ReadFile(path, limit)
	if err != nil {
		return err
	}
	return UnmarshalJSON(path, data, into)
}

// WriteJSON writes a value, indented, to a file beside path and renames it to path.
func WriteJSON(path string, value any) error {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		return err
	}
	return Replace(path, func(w io.Writer) error {
		_, err := w.Write(append(text, '\n'))
		return err
	})
}

// UnmarshalJSON parses data, the object in the file at path, which may begin with a byte-order mark. Errors name the
// file and the line.
func UnmarshalJSON(path string, data []byte, into any) error {
	if isUTF16(data) {
		return errUTF16(path)
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	err := json.Unmarshal(data, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s:%d: not JSON: %w", path, line(data, syntax.Offset), err)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("%s: it holds a JSON %s; want %s", path, kind.Value, wanted(kind))
	case errors.As(err, &kind):
		return fmt.Errorf("%s:%d: %s is %s; want %s", path, line(data, kind.Offset),
			keys(kind.Field, reflect.TypeOf(into)), found(kind), wanted(kind))
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func line(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n"))
}

// keys returns the path to a value in an object that is parsed into a type. field is the path as encoding/json gives
// it: it has the names of embedded structs, too, which are no keys.
func keys(field string, into reflect.Type) string {
	var path []string
	for name := range strings.SplitSeq(field, ".") {
		into = element(into)
		f, embedded := fieldOf(into, name)
		into = f.Type
		if !embedded {
			path = append(path, name)
		}
	}
	return strings.Join(path, ".")
}

// element returns the type of the values in lists, maps and pointers, or t itself.
func element(t reflect.Type) reflect.Type {
	for t != nil {
		switch t.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			t = t.Elem()
		default:
			return t
		}
	}
	return nil
}

// fieldOf returns a struct's field by its key, or by its name where it is embedded and has no key; the zero field if
// there is none.
func fieldOf(t reflect.Type, name string) (f reflect.StructField, embedded bool) {
	if t == nil || t.Kind() != reflect.Struct {
		return f, false
	}
	for i := range t.NumField() {
		f := t.Field(i)
		key, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if cmp.Or(key, f.Name) == name {
			return f, f.Anonymous && key == ""
		}
	}
	return f, false
}

// found describes the value of a key.
func found(err *json.UnmarshalTypeError) string {
	if err.Value == "array" || err.Value == "object" {
		return "an " + err.Value
	}
	return "a " + err.Value
}

// wanted describes the expected value of a key.
func wanted(err *json.UnmarshalTypeError) string {
	switch err.Type.Kind() {
	case reflect.Int, reflect.Int32:
		return "a whole number"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	}
	return "a string"
}
