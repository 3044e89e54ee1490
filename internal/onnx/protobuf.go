package onnx

import (
	"errors"
	"fmt"
	"io"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// field is a field of a message: a number, or bytes.
type field struct {
	number protowire.Number
	kind   protowire.Type
	value  uint64
	bytes  []byte
}

// fields calls do for the fields of a message. Lengths in the message are checked against its size.
func fields(message []byte, do func(field) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return malformed(n)
		}
		message = message[n:]
		f := field{number: number, kind: kind}
		switch kind {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(message)
		case protowire.Fixed32Type:
			var v uint32
			v, n = protowire.ConsumeFixed32(message)
			f.value = uint64(v)
		case protowire.Fixed64Type:
			f.value, n = protowire.ConsumeFixed64(message)
		case protowire.BytesType:
			f.bytes, n = protowire.ConsumeBytes(message)
		default:
			n = protowire.ConsumeFieldValue(number, kind, message)
		}
		if n < 0 {
			return malformed(n)
		}
		message = message[n:]
		if err := do(f); err != nil {
			return err
		}
	}
	return nil
}

// malformed returns the error for a negative length from protowire.
func malformed(n int) error {
	if errors.Is(protowire.ParseError(n), io.ErrUnexpectedEOF) {
		return errors.New("it ends inside a field")
	}
	return errors.New("a field is malformed")
}

// text returns a field that holds a string.
func (f field) text() (string, error) {
	if f.kind != protowire.BytesType || !utf8.Valid(f.bytes) {
		return "", fmt.Errorf("field %d is not a UTF-8 string", f.number)
	}
	return string(f.bytes), nil
}

// ints appends the integers of a field, packed or not.
func (f field) ints(to []int64) ([]int64, error) {
	if f.kind != protowire.BytesType {
		return append(to, int64(f.value)), nil
	}
	for b := f.bytes; len(b) > 0; {
		v, n := protowire.ConsumeVarint(b)
		if n < 0 {
			return nil, malformed(n)
		}
		to, b = append(to, int64(v)), b[n:]
	}
	return to, nil
}
