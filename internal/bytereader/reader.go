// Package bytereader reads values from bytes.
package bytereader

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Reader reads values, one after the other, until the first error.
type Reader struct {
	Rest []byte // what is not read yet
	Err  error  // the first
}

// Fail records the first error and drops the remaining bytes.
func (r *Reader) Fail(err error) {
	r.Rest = nil
	if r.Err == nil {
		r.Err = err
	}
}

// End returns the first error; bytes that remain are one.
func (r *Reader) End() error {
	if r.Err == nil && len(r.Rest) > 0 {
		r.Err = fmt.Errorf("%d unexpected bytes at the end", len(r.Rest))
	}
	return r.Err
}

// Take returns the next n bytes; at most 8 zeros if there are fewer.
func (r *Reader) Take(n uint64) []byte {
	if n > uint64(len(r.Rest)) {
		r.Fail(errors.New("the bytes end too early"))
		return make([]byte, min(n, 8))
	}
	taken := r.Rest[:n:n]
	r.Rest = r.Rest[n:]
	return taken
}

// Count reads an unsigned varint.
func (r *Reader) Count() uint64 {
	v, n := binary.Uvarint(r.Rest)
	if n <= 0 {
		r.Fail(errors.New("want a number"))
		return 0
	}
	r.Rest = r.Rest[n:]
	return v
}

// Float64 reads the bits of a float64.
func (r *Reader) Float64() float64 {
	return math.Float64frombits(binary.LittleEndian.Uint64(r.Take(8)))
}

// Float32 reads the bits of a float32.
func (r *Reader) Float32() float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(r.Take(4)))
}
