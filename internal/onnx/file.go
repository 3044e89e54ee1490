// Package onnx reads the weights of ONNX files of transformer encoders: each under PyTorch's name of the parameter and
// in PyTorch's shape, independent of the exporter. Of the graph it reads only what is needed to match initializers to
// parameters. Sizes in a file are checked before memory of that size is allocated.
package onnx

import (
	"fmt"
	"io"
	"math"
	"math/bits"
	"os"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/internal/regular"
	"github.com/jenga-nlp/jenga/internal/safetensors"
)

// maxFile is the largest size in bytes of a Protocol Buffers message.
const maxFile = 1<<31 - 1

// Tensor is a parameter's values in a file.
type Tensor struct {
	Name  string // PyTorch's, "encoder.layer.0.output.dense.weight"
	DType string // F32, F16 or BF16
	Shape []int  // PyTorch's: [out in] of a linear layer
	// Derived means that the file has no initializer of that name: the parameter was identified by its use in the
	// graph.
	Derived bool

	initializer *initializer
	transposed  bool // the file holds the transpose
}

// Bytes returns the size of the tensor in its file.
func (t Tensor) Bytes() int64 {
	if t.initializer.external != nil {
		return t.initializer.external.length
	}
	return int64(len(t.initializer.raw))
}

// File holds an ONNX file's parameters.
type File struct {
	tensors []Tensor
	outside []string
}

// Tensors returns the parameters in the order of their names. The caller must not modify them.
func (f *File) Tensors() []Tensor { return f.tensors }

// ExternalFiles returns the paths of the external files that hold some of its values.
func (f *File) ExternalFiles() []string { return f.outside }

// ExternalFiles returns the paths of the external files that hold values of the file at path, for graphs of any
// operators.
func ExternalFiles(path string) ([]string, error) {
	data, err := regular.ReadFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	g, err := parseModel(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return pathsOf(g.initializers, filepath.Dir(path)), nil
}

// pathsOf returns the paths of the files that hold initializers of a graph in folder.
func pathsOf(initializers []*initializer, folder string) []string {
	var paths []string
	for _, i := range initializers {
		if i.external != nil {
			paths = append(paths, filepath.Join(folder, filepath.FromSlash(i.external.location)))
		}
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

// Open reads the file at path. External files, which must be in the same folder or below, are read by Raw and Floats.
// Errors name the path.
func Open(path string) (*File, error) {
	data, err := regular.ReadFile(path, maxFile)
	if err != nil {
		return nil, err
	}
	f, err := newFile(data, filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// newFile reads a file in folder whose bytes are data. It retains data.
func newFile(data []byte, folder string) (*File, error) {
	g, err := parseModel(data)
	if err != nil {
		return nil, err
	}
	if err := g.refuse(); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	var weights []*initializer
	for _, i := range g.initializers {
		if names[i.name] {
			return nil, fmt.Errorf("duplicate initializer %q", i.name)
		}
		names[i.name] = true
		if !safetensors.IsFloat(i.dtype) {
			continue
		}
		if err := i.check(folder); err != nil {
			return nil, fmt.Errorf("initializer %q: %w", i.name, err)
		}
		weights = append(weights, i)
	}
	return &File{g.parameters(), pathsOf(weights, folder)}, nil
}

// check compares the length of an initializer with its shape, and finds its external file if it has one.
func (i *initializer) check(folder string) error {
	size := int64(2)
	if i.dtype == "F32" {
		size = 4
	}
	for _, d := range i.dims {
		hi, lo := bits.Mul64(uint64(size), uint64(d))
		if d < 0 || hi != 0 || lo > math.MaxInt64 {
			return fmt.Errorf("its shape is %v", i.dims)
		}
		size = int64(lo)
		i.shape = append(i.shape, int(d))
	}
	if i.external == nil {
		if int64(len(i.raw)) != size {
			return fmt.Errorf("%s of shape %v does not take the %d bytes of its data", i.dtype, i.dims, len(i.raw))
		}
		return nil
	}
	return i.external.check(folder, size)
}

// check finds the external data of an initializer of size bytes.
func (e *external) check(folder string, size int64) error {
	if !filepath.IsLocal(filepath.FromSlash(e.location)) {
		return fmt.Errorf("its values are in %q; want a file in the folder of the .onnx file", e.location)
	}
	if e.length >= 0 && e.length != size {
		return fmt.Errorf("its shape takes %d bytes, but its length is %d in %q", size, e.length, e.location)
	}
	e.length = size
	e.path = filepath.Join(folder, filepath.FromSlash(e.location))
	stat, err := os.Stat(e.path)
	if err != nil {
		return err
	}
	if !stat.Mode().IsRegular() || e.offset < 0 || e.offset > stat.Size() || size > stat.Size()-e.offset {
		return fmt.Errorf("%s: truncated: it has %d bytes, the values are at bytes %d to %d", e.path, stat.Size(),
			e.offset,
			e.offset+size)
	}
	return nil
}

// Raw returns the values' bytes in the order of Shape.
func (t Tensor) Raw() ([]byte, error) {
	raw, err := t.initializer.bytes()
	if err != nil {
		return nil, fmt.Errorf("tensor %q: %w", t.Name, err)
	}
	if !t.transposed {
		return slices.Clone(raw), nil
	}
	rows, columns := t.Shape[0], t.Shape[1] // the file has [columns rows]
	if rows*columns == 0 {
		return nil, nil
	}
	width := len(raw) / (rows * columns)
	turned := make([]byte, len(raw))
	for r := range rows {
		for c := range columns {
			copy(turned[(r*columns+c)*width:][:width], raw[(c*rows+r)*width:])
		}
	}
	return turned, nil
}

// Floats returns the values in the order of Shape.
func (t Tensor) Floats() ([]float32, error) {
	raw, err := t.Raw()
	if err != nil {
		return nil, err
	}
	n := 1
	for _, d := range t.Shape {
		n *= d
	}
	values := make([]float32, n)
	safetensors.Decode(values, raw, t.DType)
	return values, nil
}

// bytes returns the bytes of an initializer's values, as in its file.
func (i *initializer) bytes() ([]byte, error) {
	if i.external == nil {
		return i.raw, nil
	}
	f, err := regular.Open(i.external.path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	raw := make([]byte, i.external.length)
	if n, err := f.ReadAt(raw, i.external.offset); n < len(raw) {
		if err == io.EOF {
			return nil, fmt.Errorf("%s: truncated", i.external.path)
		}
		return nil, err
	}
	return raw, nil
}
