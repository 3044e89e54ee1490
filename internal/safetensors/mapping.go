package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"
)

// Mapping is a file's bytes as memory, which the system reads when it is touched and takes back when it needs room.
//
// It is read-only: a write to it ends the program. It shows the file that was open, also after another has been renamed
// to its path, as Write does. But who writes into that very file changes values under their reader, and who makes it
// shorter ends the program: what lies behind a file's end has no memory, which no check beforehand can rule out.
// debug.SetPanicOnFault would make a panic of that, but in one goroutine alone, and the kernels have many.
type Mapping struct {
	file  *File
	bytes []byte
}

// Map maps the file to memory, for as long as the Mapping is open; the file itself may be closed. The error is
// errors.ErrUnsupported where there is no mapping on this system.
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

// Floats returns a tensor's values where they lie in the file. They are not to be written, and not to be read after
// Close. ok is false where the file's bytes are no float32 values of this processor: of types other than F32, at a
// place that is no multiple of 4, in another order of bytes. It panics if there is no such tensor.
func (m *Mapping) Floats(name string) (values []float32, ok bool) {
	info := m.file.mustInfo(name)
	if info.DType != "F32" || info.begin%4 != 0 || !littleEndian {
		return nil, false
	}
	if info.Bytes() == 0 {
		return []float32{}, true
	}
	raw := m.bytes[info.begin:info.end] // within the file: New has seen to it
	return unsafe.Slice((*float32)(unsafe.Pointer(&raw[0])), len(raw)/4), true
}

// Close takes the memory away. What Floats gave must not be used again.
func (m *Mapping) Close() error {
	bytes := m.bytes
	m.bytes = nil
	return unmapFile(bytes)
}

// littleEndian tells whether this processor has a number's lowest byte first, as the file does.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1
