package onnx

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// maxParts bounds the nodes, and the initializers, of a graph: each takes more memory than its bytes in a file.
const maxParts = 1_000_000

// parseModel reads a ModelProto.
func parseModel(data []byte) (*graph, error) {
	var message []byte
	nodes, initializers := 0, 0
	err := fields(data, func(f field) error {
		if f.number != 7 || f.kind != protowire.BytesType {
			return nil
		}
		message, nodes, initializers = f.bytes, 0, 0
		return fields(f.bytes, func(f field) error {
			switch {
			case f.number == 1 && f.kind == protowire.BytesType:
				nodes++
			case f.number == 5 && f.kind == protowire.BytesType:
				initializers++
			}
			return nil
		})
	})
	switch {
	case err != nil:
		return nil, fmt.Errorf("truncated, or not an ONNX file: %w", err)
	case message == nil:
		return nil, errors.New("not an ONNX file: it holds no graph")
	case nodes > maxParts:
		return nil, fmt.Errorf("%d nodes; at most %d are read: an encoder's graph has thousands", nodes, maxParts)
	case initializers > maxParts:
		return nil, fmt.Errorf("%d initializers; at most %d are read: an encoder's graph has thousands", initializers,
			maxParts)
	}

	g := &graph{nodes: make([]node, 0, nodes), initializers: make([]*initializer, 0, initializers)}
	if err := g.parse(message); err != nil {
		return nil, fmt.Errorf("truncated, or not an ONNX file: %w", err)
	}
	return g, nil
}

func (g *graph) parse(message []byte) error {
	return fields(message, func(f field) error {
		switch {
		case f.number == 1 && f.kind == protowire.BytesType:
			n, err := parseNode(f.bytes)
			if err != nil {
				return fmt.Errorf("node %q: %w", n.name, err)
			}
			g.nodes = append(g.nodes, n)
			if i := n.attributes["value"].tensor; n.operator == "Constant" && i != nil && len(n.outputs) == 1 {
				i.name = n.outputs[0]
				g.initializers = append(g.initializers, i)
			}
		case f.number == 5 && f.kind == protowire.BytesType:
			i, err := parseInitializer(f.bytes)
			if err != nil {
				return fmt.Errorf("initializer %q: %w", i.name, err)
			}
			g.initializers = append(g.initializers, i)
		}
		return nil
	})
}

func parseNode(message []byte) (node, error) {
	var n node
	err := fields(message, func(f field) (err error) {
		var s string
		switch f.number {
		case 1:
			s, err = f.text()
			n.inputs = append(n.inputs, s)
		case 2:
			s, err = f.text()
			n.outputs = append(n.outputs, s)
		case 3:
			n.name, err = f.text()
		case 4:
			n.operator, err = f.text()
		case 5:
			var a attribute
			if s, a, err = parseAttribute(f.bytes); err == nil {
				if n.attributes == nil {
					n.attributes = map[string]attribute{}
				}
				n.attributes[s] = a
			}
		case 7:
			n.domain, err = f.text()
		case 9:
			var key, value string
			if key, value, err = parseEntry(f.bytes); key == "pkg.torch.onnx.name_scopes" {
				n.scopes = value
			}
		}
		return err
	})
	return n, err
}

func parseAttribute(message []byte) (name string, a attribute, err error) {
	a.float = 1
	err = fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			name, err = f.text()
		case 2:
			a.float = math.Float32frombits(uint32(f.value))
		case 3:
			a.int = int64(f.value)
		case 5:
			a.tensor, err = parseInitializer(f.bytes)
		case 8:
			a.ints, err = f.ints(a.ints)
		}
		return err
	})
	return name, a, err
}

func parseInitializer(message []byte) (*initializer, error) {
	const isExternal = 1 // of data_location
	i := &initializer{}
	var place *external
	var location uint64
	var halves []int64
	err := fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			i.dims, err = f.ints(i.dims)
		case 2:
			i.dtype = dtypes[f.value]
		case 4: // float_data: packed, the bytes are those of raw_data
			if f.kind == protowire.Fixed32Type {
				f.bytes = protowire.AppendFixed32(nil, uint32(f.value))
			}
			i.raw = join(i.raw, f.bytes)
		case 5: // int32_data: the bits of 16-bit floats
			halves, err = f.ints(halves)
		case 8:
			i.name, err = f.text()
		case 9:
			i.raw = f.bytes
		case 13:
			if place == nil {
				place = &external{length: -1}
			}
			err = place.parse(f.bytes)
		case 14:
			location = f.value
		}
		return err
	})
	if i.raw == nil && i.dtype != "F32" {
		for _, h := range halves {
			i.raw = append(i.raw, byte(h), byte(h>>8))
		}
	}
	if err == nil && location == isExternal {
		if i.external = place; place == nil || place.location == "" {
			err = errors.New("its values are in another file, which is not named")
		}
	}
	return i, err
}

// join appends b to a, or returns b uncopied if a is nil: most values are one field.
func join(a, b []byte) []byte {
	if a == nil {
		return b[:len(b):len(b)]
	}
	return append(a, b...)
}

// parse reads one entry of an initializer's external_data.
func (e *external) parse(message []byte) error {
	key, value, err := parseEntry(message)
	if err != nil {
		return err
	}
	switch key {
	case "location":
		e.location = value
	case "offset":
		e.offset, err = strconv.ParseInt(value, 10, 64)
	case "length":
		e.length, err = strconv.ParseInt(value, 10, 64)
	}
	if err != nil || e.offset < 0 || e.length < -1 {
		return fmt.Errorf("%s %q in another file", key, value)
	}
	return nil
}

// parseEntry reads a StringStringEntryProto.
func parseEntry(message []byte) (key, value string, err error) {
	err = fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			key, err = f.text()
		case 2:
			value, err = f.text()
		}
		return err
	})
	return key, value, err
}

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

func malformed(n int) error {
	if errors.Is(protowire.ParseError(n), io.ErrUnexpectedEOF) {
		return errors.New("it ends inside a field")
	}
	return errors.New("a field is malformed")
}

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
