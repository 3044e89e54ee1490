package safetensors

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"slices"
	"strings"
	"unsafe"

	"github.com/jenga-nlp/jenga/internal/files"
)

// Tensor is a tensor to be written: values, which are written as F32, or the bytes of a tensor of any type.
type Tensor struct {
	Name  string
	Shape []int
	Data  []float32 // nil if Raw holds the tensor
	DType string    // of Raw
	Raw   []byte
}

// Int8Tensor returns a tensor of type I8.
func Int8Tensor(name string, shape []int, values []int8) Tensor {
	raw := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values))
	return Tensor{Name: name, Shape: shape, DType: "I8", Raw: raw}
}

func (t Tensor) dtype() string {
	if t.Raw == nil {
		return "F32"
	}
	return t.DType
}

func (t Tensor) bytes() int64 {
	if t.Raw == nil {
		return 4 * int64(len(t.Data))
	}
	return int64(len(t.Raw))
}

// Write writes tensors and metadata to path, a complete file at all times. The bytes do not depend on the order of
// tensors. It panics on duplicate names, on a tensor whose shape does not match its length and on an unknown type.
func Write(path string, tensors []Tensor, metadata map[string]string) error {
	return files.Replace(path, func(w io.Writer) error {
		if err := encode(w, tensors, metadata); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

// Sum returns the CRC-32C of the file that Write writes.
func Sum(tensors []Tensor, metadata map[string]string) uint32 {
	sum := crc32.New(files.CRC32C)
	encode(sum, tensors, metadata) // a hash returns no errors
	return sum.Sum32()
}

// encode writes the content of the file that Write writes to w.
func encode(w io.Writer, tensors []Tensor, metadata map[string]string) error {
	tensors = slices.Clone(tensors)
	slices.SortFunc(tensors, func(a, b Tensor) int { // wide types first, so that all values are aligned
		if byWidth := widths[b.dtype()] - widths[a.dtype()]; byWidth != 0 {
			return byWidth
		}
		return strings.Compare(a.Name, b.Name)
	})

	var prefix [8]byte
	header := header(tensors, metadata)
	binary.LittleEndian.PutUint64(prefix[:], uint64(len(header)))
	if _, err := w.Write(append(prefix[:], header...)); err != nil {
		return err
	}
	for _, t := range tensors {
		if err := t.encode(w); err != nil {
			return err
		}
	}
	return nil
}

// header returns the JSON header of tensors in their order, padded with spaces so that the data is aligned to 8 bytes.
func header(tensors []Tensor, metadata map[string]string) []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	if len(metadata) > 0 {
		b.WriteString(`"__metadata__":{`)
		for i, key := range slices.Sorted(maps.Keys(metadata)) {
			if i > 0 {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, "%s:%s", quote(key), quote(metadata[key]))
		}
		b.WriteByte('}')
	}
	names := map[string]bool{}
	at := int64(0)
	for _, t := range tensors {
		n, err := Size(t.dtype(), t.Shape)
		if err != nil || n != t.bytes() || names[t.Name] || t.Name == "__metadata__" {
			panic(fmt.Sprintf("safetensors: tensor %q of type %q and shape %v in %d bytes", t.Name, t.dtype(), t.Shape,
				t.bytes()))
		}
		names[t.Name] = true
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		shape, _ := json.Marshal(append([]int{}, t.Shape...)) // [] for a single number
		fmt.Fprintf(&b, `%s:{"dtype":"%s","shape":%s,"data_offsets":[%d,%d]}`, quote(t.Name), t.dtype(), shape, at,
			at+t.bytes())
		at += t.bytes()
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	return b.Bytes()
}

func quote(s string) []byte {
	q, _ := json.Marshal(s) // Marshal of a string does not fail
	return q
}

func (t Tensor) encode(w io.Writer) error {
	raw := t.Raw
	if raw == nil && littleEndian {
		raw = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(t.Data))), 4*len(t.Data))
	}
	if raw != nil {
		for part := range slices.Chunk(raw, 1<<16) { // of 46 MB at once the system took 110 ms, in parts 12
			if _, err := w.Write(part); err != nil {
				return err
			}
		}
		return nil
	}
	var b [1 << 12]byte
	for part := range slices.Chunk(t.Data, len(b)/4) {
		n, _ := binary.Encode(b[:], binary.LittleEndian, part) // b has room for it
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
	}
	return nil
}
