package outputs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/jenga-nlp/jenga/internal/bytereader"
)

// codec encodes structs of one type as bytes, and decodes them: field after field, integers as varints, floats as their
// bits. It preserves NaN and distinguishes nil from empty slices, unlike encoding/gob and encoding/json.
type codec struct{ of reflect.Type }

// newCodec makes a codec. It panics if the type has a part that cannot be encoded.
func newCodec(of reflect.Type) codec {
	checkType(of, nil)
	return codec{of}
}

// checkType panics on types that cannot be encoded, and on recursive types.
func checkType(t reflect.Type, within []reflect.Type) {
	for _, outer := range within {
		if outer == t {
			panic(fmt.Sprintf("outputs: type %v is recursive", t))
		}
	}
	switch k := t.Kind(); {
	case k == reflect.Pointer, k == reflect.Slice:
		checkType(t.Elem(), append(within, t))
	case k == reflect.Struct:
		for i := range t.NumField() {
			if !t.Field(i).IsExported() {
				panic(fmt.Sprintf("outputs: field %s of %v is not exported", t.Field(i).Name, t))
			}
			checkType(t.Field(i).Type, append(within, t))
		}
	case k == reflect.Bool, k == reflect.String, isInt(k), isUint(k), isFloat(k):
	default:
		panic(fmt.Sprintf("outputs: type %v cannot be encoded", t))
	}
}

func isInt(k reflect.Kind) bool   { return k >= reflect.Int && k <= reflect.Int64 }
func isUint(k reflect.Kind) bool  { return k >= reflect.Uint && k <= reflect.Uint64 }
func isFloat(k reflect.Kind) bool { return k == reflect.Float32 || k == reflect.Float64 }

func (c codec) marshal(v any) []byte {
	if v == nil {
		return []byte{0}
	}
	p := reflect.ValueOf(v)
	if p.Type() != reflect.PointerTo(c.of) {
		panic(fmt.Sprintf("outputs: unexpected %T, want *%v", v, c.of))
	}
	return appendValue([]byte{1}, p.Elem())
}

func appendValue(b []byte, v reflect.Value) []byte {
	switch k := v.Kind(); {
	case k == reflect.Bool:
		return binary.AppendUvarint(b, map[bool]uint64{true: 1}[v.Bool()])
	case isInt(k):
		return binary.AppendVarint(b, v.Int())
	case isUint(k):
		return binary.AppendUvarint(b, v.Uint())
	case k == reflect.Float32: // a conversion would quiet a signalling NaN
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(v.Float())))
	case k == reflect.Float64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(v.Float()))
	case k == reflect.String:
		return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...)
	case k == reflect.Struct:
		for i := range v.NumField() {
			b = appendValue(b, v.Field(i))
		}
		return b
	case v.IsNil():
		return append(b, 0)
	case k == reflect.Pointer:
		return appendValue(append(b, 1), v.Elem())
	}
	b = binary.AppendUvarint(b, uint64(v.Len())+1) // a slice; 0 is nil
	for i := range v.Len() {
		b = appendValue(b, v.Index(i))
	}
	return b
}

func (c codec) unmarshal(b []byte) (any, error) {
	r := valueReader{bytereader.Reader{Rest: b}}
	if r.Count() == 0 {
		return nil, r.End()
	}
	p := reflect.New(c.of)
	r.read(p.Elem())
	if err := r.End(); err != nil {
		return nil, err
	}
	return p.Interface(), nil
}

// valueReader decodes values until the first error.
type valueReader struct{ bytereader.Reader }

func (r *valueReader) read(v reflect.Value) {
	switch k := v.Kind(); {
	case k == reflect.Bool:
		v.SetBool(r.Count() != 0)
	case isInt(k):
		i, n := binary.Varint(r.Rest)
		if n <= 0 || v.OverflowInt(i) {
			r.Fail(errors.New("want a number"))
			return
		}
		r.Rest = r.Rest[n:]
		v.SetInt(i)
	case isUint(k):
		n := r.Count()
		if v.OverflowUint(n) {
			r.Fail(errors.New("want a number"))
			return
		}
		v.SetUint(n)
	case k == reflect.Float32:
		v.SetFloat(float64(r.Float32()))
	case k == reflect.Float64:
		v.SetFloat(r.Float64())
	case k == reflect.String:
		if n := r.Count(); n <= uint64(len(r.Rest)) {
			v.SetString(string(r.Take(n)))
		} else {
			r.Fail(errors.New("the bytes end within a string"))
		}
	case k == reflect.Struct:
		for i := range v.NumField() {
			r.read(v.Field(i))
		}
	case k == reflect.Pointer:
		if r.Count() != 0 {
			v.Set(reflect.New(v.Type().Elem()))
			r.read(v.Elem())
		}
	default:
		r.slice(v)
	}
}

// slice reads a slice. Each element takes at least one byte, which bounds its length before it is allocated.
func (r *valueReader) slice(v reflect.Value) {
	n := r.Count()
	switch {
	case n == 0:
		return // nil
	case n-1 > uint64(len(r.Rest)):
		r.Fail(fmt.Errorf("a list of %d in %d bytes", n-1, len(r.Rest)))
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), int(n-1), int(n-1)))
	for i := range v.Len() {
		r.read(v.Index(i))
	}
}
