// Package jsonfile parses the JSON files of models, tokenizers and checkpoints, with errors that give the place and the
// expected value.
package jsonfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/jenga-nlp/jenga/internal/regular"
)

// MaxConfig bounds the size in bytes of a model's config.json, which may list a label for each word of a vocabulary.
const MaxConfig = 16 << 20

// Read parses the object in the regular file at path, of at most limit bytes. Errors name the file and the line.
func Read(path string, limit int64, into any) error {
	data, err := regular.ReadFile(path, limit)
	if err != nil {
		return err
	}
	return Unmarshal(path, data, into)
}

// Unmarshal parses data, the object in the file at path. Errors name the file and the line.
func Unmarshal(path string, data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s:%d: not JSON: %w", path, line(data, syntax.Offset), err)
	case errors.As(err, &kind) && kind.Field == "":
		return fmt.Errorf("%s: it holds a JSON %s; want an object", path, kind.Value)
	case errors.As(err, &kind):
		return fmt.Errorf("%s:%d: %s is %s; want %s", path, line(data, kind.Offset), kind.Field, found(kind),
			wanted(kind))
	case err != nil:
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func line(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(offset, int64(len(data)))], []byte("\n"))
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
