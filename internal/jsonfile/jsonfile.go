// Package jsonfile reads the JSON files of models and checkpoints, with errors that tell a user the place and what is
// wanted there.
package jsonfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Unmarshal reads the data of the file at path, an object, its errors naming the file and the line.
func Unmarshal(path string, data []byte, into any) error {
	err := json.Unmarshal(data, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return fmt.Errorf("%s:%d: %w", path, line(data, syntax.Offset), err)
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

// found returns what a key holds.
func found(err *json.UnmarshalTypeError) string {
	if err.Value == "array" || err.Value == "object" {
		return "an " + err.Value
	}
	return "a " + err.Value
}

// wanted returns what a key should have held.
func wanted(err *json.UnmarshalTypeError) string {
	switch err.Type.Kind() {
	case reflect.Int:
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
