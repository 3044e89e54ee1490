package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"
	"strings"
	"unicode/utf8"
)

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

// Bytes returns the size of the tensor in the file.
func (i Info) Bytes() int64 { return i.end - i.begin }

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
			var metadata map[string]string // only checked
			if err := d.Decode(&metadata); err != nil {
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
	var entry struct {
		DType   string  `json:"dtype"`
		Shape   []int   `json:"shape"`
		Offsets []int64 `json:"data_offsets"`
	}
	if err := d.Decode(&entry); err != nil {
		return Info{}, err
	}
	width, ok := widths[entry.DType]
	if !ok {
		return Info{}, fmt.Errorf("unknown type %q", entry.DType)
	}
	if len(entry.Offsets) != 2 {
		return Info{}, fmt.Errorf("it has %d data_offsets, want 2", len(entry.Offsets))
	}
	info := Info{DType: entry.DType, Shape: entry.Shape, begin: entry.Offsets[0], end: entry.Offsets[1]}
	if info.begin < 0 || info.end < info.begin {
		return Info{}, fmt.Errorf("its data_offsets are %d to %d", info.begin, info.end)
	}
	n, err := count(info.Shape)
	if err != nil {
		return Info{}, err
	}
	if n > math.MaxInt64/int64(width) || n*int64(width) != info.Bytes() {
		return Info{}, fmt.Errorf("%s of shape %v does not take the %d bytes of its data_offsets", info.DType,
			info.Shape,
			info.Bytes())
	}
	return info, nil
}

// count returns the number of values of a tensor.
func count(shape []int) (int64, error) {
	n := int64(1)
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

// place sets the tensors' offsets in a file of size bytes whose header ends at start. It is an error if they do not
// fill the rest of the file without gap or overlap.
func (f *File) place(start, size int64) error {
	slices.SortFunc(f.tensors, func(a, b Info) int {
		// empty tensors before the one that begins at the same byte
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), strings.Compare(a.Name, b.Name))
	})
	at := int64(0)
	for i := range f.tensors {
		t := &f.tensors[i]
		switch {
		case t.end > size-start:
			return fmt.Errorf("truncated: tensor %q ends %d bytes after the end of the file", t.Name,
				t.end-(size-start))
		case t.begin < at:
			return fmt.Errorf("tensor %q overlaps tensor %q", t.Name, f.tensors[i-1].Name)
		case t.begin > at:
			return fmt.Errorf("%d bytes before tensor %q belong to no tensor", t.begin-at, t.Name)
		}
		at = t.end
		t.begin, t.end = t.begin+start, t.end+start
		f.byName[t.Name] = i
	}
	if at != size-start {
		return fmt.Errorf("the last %d bytes belong to no tensor", size-start-at)
	}
	return nil
}
