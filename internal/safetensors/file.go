// Package safetensors reads and writes files of named tensors in the safetensors format: eight bytes with the length of
// a JSON header, the header, the tensors' bytes. Sizes in a file are checked before memory of that size is allocated,
// so a broken or hostile file is an error.
package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"unsafe"

	"github.com/jenga-nlp/jenga/internal/regular"
)

// File is an open file. Its methods are safe for concurrent use.
type File struct {
	r       io.ReaderAt
	tensors []Info // in the order of their bytes
	byName  map[string]int
}

// OpenFile is a File on disk.
type OpenFile struct {
	*File
	f    *os.File
	size int64
}

// Open opens the file at path and reads its header. Errors name the path.
func Open(path string) (*OpenFile, error) {
	f, err := regular.Open(path)
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
	return &OpenFile{file, f, stat.Size()}, nil
}

// Close closes the file on disk.
func (f *OpenFile) Close() error { return f.f.Close() }

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

	f := &File{r: r, byName: map[string]int{}}
	if err := f.parse(header); err != nil {
		return nil, fmt.Errorf("header: %w", err)
	}
	if err := f.place(8+int64(length), size); err != nil {
		return nil, err
	}
	return f, nil
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
