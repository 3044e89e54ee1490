package safetensors

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// mapped opens and maps the file at path; it skips the test on systems without mappings.
func mapped(t *testing.T, path string) (*File, *Mapping) {
	t.Helper()
	f, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	m, err := f.Map()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip("this system maps no files")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return f, m
}

func TestFloatsOfAMappingEqualThoseRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	header := `{"f":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},"none":{"dtype":"F32","shape":[0],"data_offsets":[24,24]},` +
		`"half":{"dtype":"F16","shape":[1],"data_offsets":[24,26]},"uneven":{"dtype":"F32","shape":[1],"data_offsets":[26,30]}}`
	header += strings.Repeat(" ", 8-len(header)%8)
	data := file(header, 30)
	for i := range 30 {
		data[len(data)-30+i] = byte(37 * i)
	}
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	f, m := mapped(t, path)

	for _, name := range []string{"f", "none"} {
		want, err := f.Floats(name)
		if err != nil {
			t.Fatal(err)
		}
		if got, ok := m.Floats(name); ok != littleEndian || ok && !bytes.Equal(bytesOf(t, got), bytesOf(t, want)) {
			t.Errorf("Floats(%q) = %v, %v, want %v", name, got, ok, want)
		}
	}
	for _, name := range []string{"half", "uneven"} {
		if _, ok := m.Floats(name); ok {
			t.Errorf("Floats(%q) of values that are not aligned float32 returns ok", name)
		}
	}
}

// bytesOf returns the bytes of values, to compare NaN too.
func bytesOf(t *testing.T, values []float32) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b, []Tensor{{Name: "a", Shape: []int{len(values)}, Data: values}}, nil); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAMappingRemainsAfterRenameAndRemoval(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	write := func(v float32) {
		if err := Write(path, []Tensor{{Name: "a", Shape: []int{2}, Data: []float32{v, v}}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	write(1)
	f, m := mapped(t, path)
	values, ok := m.Floats("a")
	if !ok {
		t.Skip("this processor has another order of bytes")
	}
	f.Close()
	write(2)
	if values[0] != 1 || values[1] != 1 {
		t.Errorf("the values are %v after another file was written, want those that were there", values)
	}
	os.Remove(path)
	if values[0] != 1 {
		t.Errorf("the values are %v after the file was removed", values)
	}
}

func TestAMappingCannotBeWritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := Write(path, []Tensor{{Name: "a", Shape: []int{2}, Data: []float32{1, 2}}}, nil); err != nil {
		t.Fatal(err)
	}
	_, m := mapped(t, path)
	values, ok := m.Floats("a")
	if !ok {
		t.Skip("this processor has another order of bytes")
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if _, fault := recover().(interface{ Addr() uintptr }); !fault {
			t.Error("a write to a mapping does not fault")
		}
	}()
	values[0] = 3
}

func TestATruncatedFileIsNotMapped(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.safetensors")
	if err := Write(path, []Tensor{{Name: "a", Shape: []int{2}, Data: []float32{1, 2}}}, nil); err != nil {
		t.Fatal(err)
	}
	f, _ := mapped(t, path)
	if err := os.Truncate(path, f.size-1); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Map(); err == nil || !strings.HasPrefix(err.Error(), path+": it has ") {
		t.Errorf("Map of a truncated file: error %v", err)
	}
}
