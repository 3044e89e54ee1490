// Package safetensors reads and writes files of named tensors in the safetensors format: eight bytes with the length of
// a JSON header, the header, the tensors' bytes. Sizes in a file are checked before memory of that size is allocated,
// so a broken or hostile file is an error.
package safetensors

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"math/bits"
	"os"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
	"unsafe"

	"github.com/jenga-nlp/jenga/internal/files"
)

// File is an open file. Its methods are safe for concurrent use.
type File struct {
	r        io.ReaderAt
	disk     *os.File // r of an open file
	size     int64
	tensors  []Info // in the order of their bytes
	byName   map[string]int
	metadata map[string]string
}

// Open opens the file at path and reads its header. Errors name the path.
func Open(path string) (*File, error) {
	f, err := files.Open(path)
	if err != nil {
		return nil, err
	}
	stat, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	file, err := newFile(f, stat.Size())
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	file.disk = f
	return file, nil
}

// Close closes the file on disk.
func (f *File) Close() error { return f.disk.Close() }

// newFile reads the header of the size bytes of r.
func newFile(r io.ReaderAt, size int64) (*File, error) {
	var prefix [8]byte
	if size < int64(len(prefix)) {
		return nil, fmt.Errorf("not a safetensors file: it has %d bytes, its header's length alone takes 8", size)
	}
	if err := readAt(r, prefix[:], 0); err != nil {
		return nil, err
	}
	if isPointer(r, size) {
		return nil, errors.New("it is a pointer of Git LFS, not the file itself; run git lfs pull in its repository, " +
			"or download the model by jenga pull")
	}
	length := binary.LittleEndian.Uint64(prefix[:])
	if length > uint64(size)-8 && isText(prefix[:]) {
		start := make([]byte, min(size, 60))
		if err := readAt(r, start, 0); err != nil {
			return nil, err
		}
		return nil, fmt.Errorf("not a safetensors file: it is a text that begins with %q; download the file again",
			start)
	}
	if length > uint64(size)-8 {
		return nil, fmt.Errorf("truncated, or not a safetensors file: its header claims %d bytes, %d follow", length,
			size-8)
	}
	if length > maxHeader {
		return nil, fmt.Errorf("its header has %d bytes; at most %d are read", length, maxHeader)
	}
	header := make([]byte, length)
	if err := readAt(r, header, 8); err != nil {
		return nil, err
	}

	f := &File{r: r, size: size, byName: map[string]int{}}
	if err := f.parse(header); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if err := f.place(8 + int64(length)); err != nil {
		return nil, err
	}
	return f, nil
}

// isText reports whether a file may be a text, such as a server's answer to a request without a token.
func isText(start []byte) bool {
	return bytes.IndexFunc(start, func(r rune) bool { return r < ' ' && !unicode.IsSpace(r) || r > '~' }) < 0
}

// isPointer reports whether r is a pointer of Git LFS: a short text that a clone has in place of a large file where
// Git LFS is not installed.
func isPointer(r io.ReaderAt, size int64) bool {
	start := make([]byte, len("version https://git-lfs"))
	return size >= int64(len(start)) && readAt(r, start, 0) == nil && string(start) == "version https://git-lfs"
}

// readAt fills b from r at offset. A ReaderAt may return EOF with a full b at the end of the file.
func readAt(r io.ReaderAt, b []byte, offset int64) error {
	if n, err := r.ReadAt(b, offset); n < len(b) {
		return err
	}
	return nil
}

// Tensors returns the file's tensors, in the order of the file. The caller must not modify them.
func (f *File) Tensors() []Info { return f.tensors }

// Metadata returns the texts that Write was given.
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// Info returns the header's entry for a tensor; ok is false if there is none of that name.
func (f *File) Info(name string) (info Info, ok bool) {
	i, ok := f.byName[name]
	if !ok {
		return Info{}, false
	}
	return f.tensors[i], true
}

// Raw reads a tensor's bytes, unconverted. It panics if there is no such tensor.
func (f *File) Raw(name string) ([]byte, error) {
	info := f.mustInfo(name)
	raw := make([]byte, info.Bytes())
	if err := readAt(f.r, raw, info.begin); err != nil {
		return nil, fmt.Errorf("tensor %q: %w", name, err)
	}
	return raw, nil
}

// Floats reads a tensor of type F32, F16 or BF16, whose values are exact in float32. Other types are an error.
// It panics if there is no such tensor.
func (f *File) Floats(name string) ([]float32, error) {
	info := f.mustInfo(name)
	if !IsFloat(info.DType) {
		return nil, fmt.Errorf("tensor %q has type %s; F32, F16 and BF16 are read", name, info.DType)
	}
	width := widths[info.DType]
	values := make([]float32, int(info.Bytes())/width)
	chunk := make([]byte, min(info.Bytes(), 1<<18))
	for done := 0; done < len(values); {
		n := min(len(values)-done, len(chunk)/width)
		if err := readAt(f.r, chunk[:n*width], info.begin+int64(done*width)); err != nil {
			return nil, fmt.Errorf("tensor %q: %w", name, err)
		}
		Decode(values[done:done+n], chunk[:n*width], info.DType)
		done += n
	}
	return values, nil
}

// Int8s reads a tensor of type I8. It panics if there is no such tensor, or it has another type.
func (f *File) Int8s(name string) ([]int8, error) {
	f.mustBeInt8(name)
	raw, err := f.Raw(name)
	return int8s(raw), err
}

// int8s returns bytes as integers with a sign.
func int8s(raw []byte) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(raw))), len(raw))
}

func (f *File) mustBeInt8(name string) Info {
	info := f.mustInfo(name)
	if info.DType != "I8" {
		panic(fmt.Sprintf("safetensors: tensor %q is read as I8, and has type %s", name, info.DType))
	}
	return info
}

func (f *File) mustInfo(name string) Info {
	info, ok := f.Info(name)
	if !ok {
		panic(fmt.Sprintf("safetensors: no tensor %q", name))
	}
	return info
}

// maxHeader is the longest header in bytes that the format allows.
const maxHeader = 100_000_000

// widths holds the bytes per value by the name of its type.
var widths = map[string]int{
	"BOOL": 1, "U8": 1, "I8": 1, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1,
	"U16": 2, "I16": 2, "F16": 2, "BF16": 2,
	"U32": 4, "I32": 4, "F32": 4,
	"U64": 8, "I64": 8, "F64": 8, "C64": 8,
}

// Info describes a tensor as in a file's header.
type Info struct {
	Name  string
	DType string // F32, F16, BF16, I64, …
	Shape []int  // empty for a single number

	begin, end int64 // its bytes in the file
}

// Bytes returns the size of the tensor in a file; 0 where its type is unknown.
func (i Info) Bytes() int64 {
	n, _ := Size(i.DType, i.Shape)
	return n
}

// parse reads the header. The tensors' offsets are still relative to the header's end.
func (f *File) parse(header []byte) error {
	if !utf8.Valid(header) {
		return errors.New("it is not UTF-8")
	}
	d := json.NewDecoder(bytes.NewReader(header))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New("it is not a JSON object")
	}
	seen := map[string]bool{}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name := key.(string) // a key, or Token returns an error
		if seen[name] {
			return fmt.Errorf("duplicate key %q", name)
		}
		seen[name] = true
		if name == "__metadata__" {
			if err := d.Decode(&f.metadata); err != nil {
				return fmt.Errorf("%q: %w", name, err)
			}
			continue
		}
		info, err := parseInfo(d)
		if err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		info.Name = name
		f.tensors = append(f.tensors, info)
	}
	if _, err := d.Token(); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("something follows the JSON object")
	}
	return nil
}

func parseInfo(d *json.Decoder) (Info, error) {
	var entry map[string]json.RawMessage // a struct would take DType for dtype
	if err := d.Decode(&entry); err != nil {
		return Info{}, err
	}
	var info Info
	var offsets []int64
	for _, field := range []struct {
		key  string
		into any
	}{{"dtype", &info.DType}, {"shape", &info.Shape}, {"data_offsets", &offsets}} {
		if value, ok := entry[field.key]; ok {
			if err := json.Unmarshal(value, field.into); err != nil {
				return Info{}, fmt.Errorf("%s: %w", field.key, err)
			}
		}
	}
	n, err := Size(info.DType, info.Shape)
	if err != nil {
		return Info{}, err
	}
	if len(offsets) != 2 {
		return Info{}, fmt.Errorf("it has %d data_offsets, want 2", len(offsets))
	}
	info.begin, info.end = offsets[0], offsets[1]
	if info.begin < 0 || info.end < info.begin {
		return Info{}, fmt.Errorf("its data_offsets are %d to %d", info.begin, info.end)
	}
	if has := info.end - info.begin; n != has {
		return Info{}, fmt.Errorf("%s of shape %v does not take the %d bytes of its data_offsets", info.DType,
			info.Shape, has)
	}
	return info, nil
}

// Size returns the bytes of a tensor.
func Size(dtype string, shape []int) (int64, error) {
	width, ok := widths[dtype]
	if !ok {
		return 0, fmt.Errorf("unknown type %q", dtype)
	}
	n := int64(width)
	for _, d := range shape {
		if d < 0 {
			return 0, fmt.Errorf("its shape is %v", shape)
		}
		hi, lo := bits.Mul64(uint64(n), uint64(d))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, fmt.Errorf("its shape %v is too large", shape)
		}
		n = int64(lo)
	}
	return n, nil
}

// place sets the tensors' offsets in the file, whose header ends at start. It is an error if they do not fill the rest
// of the file without gap or overlap.
func (f *File) place(start int64) error {
	slices.SortFunc(f.tensors, func(a, b Info) int {
		// empty tensors before the one that begins at the same byte
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), strings.Compare(a.Name, b.Name))
	})
	at := int64(0)
	for i := range f.tensors {
		t := &f.tensors[i]
		switch {
		case t.end > f.size-start:
			return fmt.Errorf("truncated: tensor %q ends %d bytes after the end of the file", t.Name,
				t.end-(f.size-start))
		case t.begin < at:
			return fmt.Errorf("tensor %q overlaps tensor %q", t.Name, f.tensors[i-1].Name)
		case t.begin > at:
			return fmt.Errorf("%d bytes before tensor %q belong to no tensor", t.begin-at, t.Name)
		}
		at = t.end
		t.begin, t.end = t.begin+start, t.end+start
		f.byName[t.Name] = i
	}
	if at != f.size-start {
		return fmt.Errorf("the last %d bytes belong to no tensor", f.size-start-at)
	}
	return nil
}

// IsFloat reports whether Decode reads values of type dtype.
func IsFloat(dtype string) bool { return dtype == "F32" || dtype == "F16" || dtype == "BF16" }

// Decode fills values from little-endian bytes of type F32, F16 or BF16.
func Decode(values []float32, raw []byte, dtype string) {
	switch dtype {
	case "F32":
		for i := range values {
			values[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
		}
	case "F16":
		for i := range values {
			values[i] = float16(binary.LittleEndian.Uint16(raw[2*i:]))
		}
	case "BF16": // the upper half of a float32
		for i := range values {
			values[i] = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[2*i:])) << 16)
		}
	default:
		panic(fmt.Sprintf("safetensors: decode %s", dtype))
	}
}

// float16 returns the value of an IEEE 754 half: a sign, 5 bits of exponent, 10 of fraction.
func float16(h uint16) float32 {
	sign, exponent, fraction := uint32(h>>15)<<31, uint32(h>>10)&0x1f, uint32(h)&0x3ff
	switch exponent {
	case 0: // zero and the numbers below 2^-14, which a float32 holds exactly
		return math.Float32frombits(sign | math.Float32bits(float32(fraction)*0x1p-24))
	case 0x1f: // infinities and NaN
		return math.Float32frombits(sign | 0xff<<23 | fraction<<13)
	}
	return math.Float32frombits(sign | (exponent+127-15)<<23 | fraction<<13)
}

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
func (f *File) Map() (*Mapping, error) {
	stat, err := f.disk.Stat()
	if err != nil {
		return nil, err
	}
	if stat.Size() != f.size {
		return nil, fmt.Errorf("%s: it has %d bytes now and had %d when it was opened", f.disk.Name(), stat.Size(),
			f.size)
	}
	if f.size > math.MaxInt {
		return nil, fmt.Errorf("%s: %w: %d bytes are more than this processor has addresses for", f.disk.Name(),
			errors.ErrUnsupported, f.size)
	}
	bytes, err := mapFile(f.disk, int(f.size))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", f.disk.Name(), err)
	}
	return &Mapping{f, bytes}, nil
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
