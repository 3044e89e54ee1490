package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// Mapping is a file mapped to memory, which the system reads on access and may evict.
// It is read-only: a write to it ends the program. It maps the file that was open, even after another file has been
// renamed to its path, as Write does. But a program that writes into the same file changes the values, and one that
// truncates it ends this program: pages after a file's end have no memory, and no earlier check can prevent that.
// debug.SetPanicOnFault would turn the fault into a panic, but only in one goroutine, and the kernels have many.
type Mapping struct {
	file  *File
	bytes []byte
}

// Map maps the file to memory until the Mapping is closed; the file itself may be closed before. The error is
// errors.ErrUnsupported if this system has no mappings.
func (f *OpenFile) Map() (*Mapping, error) {
	stat, err := f.f.Stat()
	if err != nil {
		return nil, err
	}
	if stat.Size() != f.size {
		return nil, fmt.Errorf("%s: it has %d bytes now and had %d when it was opened", f.f.Name(), stat.Size(), f.size)
	}
	if f.size > math.MaxInt {
		return nil, fmt.Errorf("%s: %w: %d bytes are more than this processor has addresses for", f.f.Name(),
			errors.ErrUnsupported, f.size)
	}
	bytes, err := mapFile(f.f, int(f.size))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.f.Name(), err)
	}
	return &Mapping{f.File, bytes}, nil
}

// Floats returns a tensor's values in the mapped memory. They must not be written, nor read after Close. ok is false if
// the file's bytes are not float32 values of this processor: they have another type than F32, an offset that is not a
// multiple of 4, or another byte order. It panics if there is no such tensor.
func (m *Mapping) Floats(name string) (values []float32, ok bool) {
	info := m.file.mustInfo(name)
	if info.DType != "F32" || info.begin%4 != 0 || !littleEndian {
		return nil, false
	}
	if info.Bytes() == 0 {
		return []float32{}, true
	}
	raw := m.bytes[info.begin:info.end] // within the file, as newFile has checked
	return unsafe.Slice((*float32)(unsafe.Pointer(&raw[0])), len(raw)/4), true
}

// Int8s returns a tensor of type I8 in the mapped memory, to be used as values of Floats. It panics if there is no such
// tensor, or it has another type.
func (m *Mapping) Int8s(name string) []int8 {
	info := m.file.mustBeInt8(name)
	return int8s(m.bytes[info.begin:info.end])
}

// Close unmaps the memory. Values that Floats and Int8s returned must not be used afterwards.
func (m *Mapping) Close() error {
	bytes := m.bytes
	m.bytes = nil
	return unmapFile(bytes)
}

// littleEndian reports whether this processor stores a number's lowest byte first, as the file does.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1
