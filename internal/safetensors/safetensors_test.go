package safetensors

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// file returns a file with a header, unchanged, and some bytes of data.
func file(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func TestBrokenFilesAreErrors(t *testing.T) {
	tests := []struct {
		name string
		file []byte
		want string
	}{
		{"empty", nil, "not a safetensors file: it has 0 bytes, its header's length alone takes 8"},
		{"a pointer of Git LFS", []byte("version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n"),
			"it is a pointer of Git LFS, not the file itself; run git lfs pull in its repository, or download the " +
				"model by jenga pull"},
		{"something like it", []byte("version https://git"), "not a safetensors file: it is a text that begins with " +
			`"version https://git"; download the file again`},
		{"an error in JSON", []byte(`{"error": "no"}`), "not a safetensors file: it is a text that begins with " +
			`"{\"error\": \"no\"}"; download the file again`},
		{"empty header", file("", 0), "header: it is not a JSON object"},
		{"oversized header", []byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"),
			"truncated, or not a safetensors file: its header claims 18446744073709551615 bytes, 2 follow"},
		{"truncated header", file(`{"a":{"dtype":"F32"`, 0), "header: tensor \"a\": unexpected EOF"},
		{"not an object", file(`[1]`, 0), "header: it is not a JSON object"},
		{"not UTF-8", file("{\"\xff\":1}", 0), "header: it is not UTF-8"},
		{"duplicate", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2), `header: duplicate key "a"`},
		{"text after the header", file(`{} {}`, 0), "header: something follows the JSON object"},
		{"unknown type", file(`{"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,1]}}`, 1),
			`header: tensor "a": unknown type "Q4"`},
		{"key in capitals", file(`{"a":{"dtype":"U8","shape":[1],"Data_offsets":[0,1]}}`, 1),
			`header: tensor "a": it has 0 data_offsets, want 2`},
		{"one offset", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0]}}`, 1),
			`header: tensor "a": it has 1 data_offsets, want 2`},
		{"backward", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}`, 1),
			`header: tensor "a": its data_offsets are 1 to 0`},
		{"negative shape", file(`{"a":{"dtype":"U8","shape":[-1,-1],"data_offsets":[0,1]}}`, 1),
			`header: tensor "a": its shape is [-1 -1]`},
		{"overflowing shape", file(`{"a":{"dtype":"F32","shape":[4294967296,4294967296,4],"data_offsets":[0,0]}}`, 0),
			`header: tensor "a": its shape [4294967296 4294967296 4] is too large`},
		{"overflowing bytes", file(`{"a":{"dtype":"F32","shape":[4611686018427387904],"data_offsets":[0,0]}}`, 0),
			`header: tensor "a": its shape [4611686018427387904] is too large`},
		{"wrong length", file(`{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,12]}}`, 12),
			`header: tensor "a": F32 of shape [2 2] does not take the 12 bytes of its data_offsets`},
		{"truncated", file(`{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}`, 11),
			`truncated: tensor "a" ends 5 bytes after the end of the file`},
		{"overlap", file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}}`, 7), `tensor "b" overlaps tensor "a"`},
		{"gap", file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}}`, 6),
			`2 bytes before tensor "a" belong to no tensor`},
		{"left over", file(`{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}`, 7),
			`the last 3 bytes belong to no tensor`},
		{"metadata", file(`{"__metadata__":{"a":1}}`, 0),
			`header: "__metadata__": json: cannot unmarshal number into Go value of type string`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := newFile(bytes.NewReader(test.file), int64(len(test.file)))
			if err == nil || err.Error() != test.want {
				t.Errorf("newFile: error\n %v, want\n %s", err, test.want)
			}
		})
	}
}

func TestErrorsOfOpenNameThePath(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := os.WriteFile(path, file(`{}`, 3), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := Open(path)
	if want := path + ": the last 3 bytes belong to no tensor"; err == nil || err.Error() != want {
		t.Errorf("Open: error %v, want %s", err, want)
	}
}

func TestReadReturnsWhatWriteWrote(t *testing.T) {
	tensors := []Tensor{
		{Name: "long", Shape: []int{300, 301}, Data: make([]float32, 300*301)}, // more than one chunk
		{Name: "number", Shape: []int{}, Data: []float32{math.Pi}},
		{Name: `quote " and ü`, Shape: []int{2, 1}, Data: []float32{float32(math.Inf(1)), -1.5e-45}},
		{Name: "none", Shape: []int{0, 5}, Data: []float32{}},
		{Name: "ids", Shape: []int{1, 2}, DType: "I64", Raw: []byte("0123456789abcdef")},
		{Name: "half", Shape: []int{3}, DType: "F16", Raw: []byte{0, 0x3c, 1, 0, 0, 0xfc}},
		{Name: "brain", Shape: []int{2}, DType: "BF16", Raw: []byte{0x80, 0x3f, 0x49, 0x40}},
	}
	for i := range tensors[0].Data {
		tensors[0].Data[i] = float32(i) / 7
	}
	folder := t.TempDir()
	path := filepath.Join(folder, "a")
	metadata := map[string]string{"format": "pt", "z": "\n"}
	if err := Write(path, tensors, metadata); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	for _, want := range tensors {
		info, ok := f.Info(want.Name)
		if !ok || info.DType != want.dtype() || !slices.Equal(info.Shape, want.Shape) {
			t.Errorf("Info(%q) = %v, %v", want.Name, info, ok)
			continue
		}
		if want.Raw != nil {
			if got, err := f.Raw(want.Name); err != nil || !bytes.Equal(got, want.Raw) {
				t.Errorf("Raw(%q) = %x, %v, want %x", want.Name, got, err, want.Raw)
			}
			continue
		}
		if got, err := f.Floats(want.Name); err != nil || !slices.Equal(got, want.Data) {
			t.Errorf("Floats(%q) differs, error %v", want.Name, err)
		}
	}
	if got, err := f.Floats("half"); err != nil || !slices.Equal(got, []float32{1, 0x1p-24, float32(math.Inf(-1))}) {
		t.Errorf("Floats(half) = %v, %v", got, err)
	}
	if got, err := f.Floats("brain"); err != nil || !slices.Equal(got, []float32{1, 3.140625}) {
		t.Errorf("Floats(brain) = %v, %v", got, err)
	}
	if _, err := f.Floats("ids"); err == nil || err.Error() != `tensor "ids" has type I64; F32, F16 and BF16 are read` {
		t.Errorf("Floats of an I64 tensor: error %v", err)
	}
	data, err := os.ReadFile(path)
	if want := `{"__metadata__":{"format":"pt","z":"\n"},`; err != nil || !bytes.HasPrefix(data[8:], []byte(want)) {
		t.Errorf("the header does not begin with %s, error %v", want, err)
	}

	t.Run("the same bytes in any order", func(t *testing.T) {
		slices.Reverse(tensors)
		if err := Write(filepath.Join(folder, "b"), tensors, metadata); err != nil {
			t.Fatal(err)
		}
		a, _ := os.ReadFile(path)
		b, _ := os.ReadFile(filepath.Join(folder, "b"))
		if !bytes.Equal(a, b) {
			t.Errorf("two files of the same tensors differ")
		}
	})
	t.Run("no other file remains", func(t *testing.T) {
		if entries, _ := os.ReadDir(folder); len(entries) != 2 {
			t.Errorf("the folder holds %v, want two files", entries)
		}
	})
}

func TestAFailedWriteLeavesTheOldFile(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "a")
	if err := os.Mkdir(path, 0o755); err != nil { // renaming a file to a folder fails
		t.Fatal(err)
	}
	if err := Write(path, []Tensor{{Name: "a", Shape: []int{1}, Data: []float32{1}}}, nil); err == nil {
		t.Error("Write over a folder: no error")
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Errorf("the folder holds %v, want the old entry alone", entries)
	}
}

func TestMisuseOfWritePanics(t *testing.T) {
	tests := map[string][]Tensor{
		"wrong shape":  {{Name: "a", Shape: []int{2}, Data: []float32{1}}},
		"unknown type": {{Name: "a", Shape: []int{1}, DType: "Q4", Raw: []byte{1}}},
		"twice": {{Name: "a", Shape: []int{1}, Data: []float32{1}},
			{Name: "a", Shape: []int{1}, Data: []float32{1}}},
	}
	for name, tensors := range tests {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if r, _ := recover().(string); !strings.HasPrefix(r, "safetensors: ") {
					t.Errorf("panic %q, want one of safetensors", r)
				}
			}()
			encode(&bytes.Buffer{}, tensors, nil)
		})
	}
}

// TestHalvesAreExact uses the definition: (1 + fraction/1024)·2^(exponent-15), without the 1 and with 2^-14 for
// exponent 0.
func TestHalvesAreExact(t *testing.T) {
	for h := range 1 << 16 {
		sign, exponent, fraction := 1-2*float64(h>>15), h>>10&0x1f, float64(h&0x3ff)/1024
		want := sign * math.Ldexp(1+fraction, exponent-15)
		switch {
		case exponent == 0:
			want = sign * math.Ldexp(fraction, -14)
		case exponent == 0x1f && fraction == 0:
			want = math.Inf(int(sign))
		case exponent == 0x1f:
			want = math.NaN()
		}
		got := float64(float16(uint16(h)))
		if got != want && !(math.IsNaN(got) && math.IsNaN(want)) || math.Signbit(got) != (h>>15 == 1) {
			t.Fatalf("Half(%#x) = %v, want %v", h, got, want)
		}
	}
}

func FuzzNew(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}}`, 16))
	f.Add(file(`{"__metadata__":{"format":"pt"},"a":{"dtype":"BF16","shape":[],"data_offsets":[0,2]},"b":{"dtype":"I64","shape":[0],"data_offsets":[2,2]}}`, 2))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\xff{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := newFile(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		var tensors []Tensor
		for _, info := range file.Tensors() {
			raw, err := file.Raw(info.Name)
			if err != nil {
				t.Fatalf("Raw(%q): %v", info.Name, err)
			}
			if _, err := file.Floats(info.Name); (err == nil) != IsFloat(info.DType) {
				t.Fatalf("Floats(%q) of type %s: %v", info.Name, info.DType, err)
			}
			tensors = append(tensors, Tensor{Name: info.Name, Shape: info.Shape, DType: info.DType, Raw: raw})
		}
		var b bytes.Buffer
		if err := encode(&b, tensors, nil); err != nil {
			t.Fatal(err)
		}
		again, err := newFile(bytes.NewReader(b.Bytes()), int64(b.Len()))
		if err != nil || len(again.Tensors()) != len(tensors) {
			t.Fatalf("the file written again has %d of %d tensors: %v", len(again.Tensors()), len(tensors), err)
		}
	})
}
