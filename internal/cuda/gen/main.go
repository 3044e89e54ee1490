//go:build ignore

// Compiles the kernels of ../kernels to ../ptx with NVRTC, NVIDIA's compiler. In folder internal/cuda:
//
//	go run gen/main.go          writes ptx/ARCHITECTURE/KERNELS.ptx.gz
//	go run gen/main.go -check   compares them with what would be written
//
// The library is that of CUDA 12.2 in PyPI's package nvidia-cuda-nvrtc-cu12, version 12.2.140 (a wheel is a zip file):
// -nvrtc or JENGA_NVRTC is the path of libnvrtc.so.12, beside which is libnvrtc-builtins.so.12.2. Other versions write
// other bytes, which drivers of CUDA 12.2 may refuse. Without a library, nothing is done. A file for a later
// architecture is only written where its code is another one than that of the first.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"unsafe"

	"github.com/ebitengine/purego"
)

// The version of NVRTC that the files are made with.
const wantMajor, wantMinor = 12, 2

// architectures are the folders of ptx, and what each is compiled for.
var architectures = []struct{ folder, target string }{
	{"sm_80", "compute_80"},
	{"sm_90a", "compute_90a"},
}

func main() {
	library := flag.String("nvrtc", os.Getenv("JENGA_NVRTC"), "path of libnvrtc.so.12")
	check := flag.Bool("check", false, "compare the files instead of writing them")
	flag.Parse()
	if *library == "" {
		fmt.Fprintln(os.Stderr, "gen: the kernels are not compiled: JENGA_NVRTC does not name libnvrtc.so.12")
		return
	}
	if err := run(*library, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

// run writes or checks all files.
func run(library string, check bool) error {
	c, err := openCompiler(library)
	if err != nil {
		return err
	}
	headers, err := read("kernels/*.h")
	if err != nil {
		return err
	}
	kernels, err := read("kernels/*.cu")
	if err != nil {
		return err
	}
	if len(kernels) == 0 {
		return errors.New("no kernels/*.cu: run it in folder internal/cuda")
	}

	var errs []error
	made := map[string]bool{}
	for _, k := range kernels {
		var first []byte // without the line that names the architecture
		for i, a := range architectures {
			ptx, err := c.compile(k, headers, a.target)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			common := bytes.Replace(ptx, []byte(".target "+a.folder), nil, 1)
			if i > 0 && bytes.Equal(common, first) {
				continue
			}
			if i == 0 {
				first = common
			}
			file := filepath.Join("ptx", a.folder, strings.TrimSuffix(k.name, ".cu")+".ptx.gz")
			made[file] = true
			errs = append(errs, put(file, ptx, check))
		}
	}
	return errors.Join(append(errs, prune(made, check))...)
}

// put writes a file, or checks that it has the content.
func put(file string, content []byte, check bool) error {
	if !check {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		var packed bytes.Buffer
		z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
		if err != nil {
			return err
		}
		if _, err := z.Write(content); err != nil {
			return err
		}
		if err := z.Close(); err != nil {
			return err
		}
		return os.WriteFile(file, packed.Bytes(), 0o644)
	}
	there, err := unpacked(file)
	if err == nil && !bytes.Equal(there, content) {
		err = fmt.Errorf("%s is not what its kernels compile to: run go generate ./internal/cuda", file)
	}
	return err
}

func unpacked(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return io.ReadAll(z)
}

// prune removes files whose kernels are no more.
func prune(made map[string]bool, check bool) error {
	files, err := filepath.Glob("ptx/*/*")
	if err != nil {
		return err
	}
	var errs []error
	for _, file := range files {
		switch {
		case made[file]:
		case check:
			errs = append(errs, fmt.Errorf("%s has no kernels", file))
		default:
			errs = append(errs, os.Remove(file))
		}
	}
	return errors.Join(errs...)
}

type source struct {
	name string
	text []byte // ends with a zero byte
}

// read returns files in the order of their names.
func read(pattern string) ([]source, error) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		return nil, err
	}
	var all []source
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		all = append(all, source{filepath.Base(file), append(text, 0)})
	}
	return all, nil
}

// compiler is NVRTC: nvrtc.h. Its functions return 0, or the number of an error.
type compiler struct {
	create, compileProgram, destroy uintptr
	logSize, log, codeSize, code    uintptr
}

func openCompiler(library string) (*compiler, error) {
	folder := filepath.Dir(library)
	builtins := filepath.Join(folder, fmt.Sprintf("libnvrtc-builtins.so.%d.%d", wantMajor, wantMinor))
	if _, err := os.Stat(builtins); err == nil {
		if _, err := purego.Dlopen(builtins, purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
			return nil, err
		}
	}
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, err
	}
	var c compiler
	var version uintptr
	for name, address := range map[string]*uintptr{
		"nvrtcCreateProgram": &c.create, "nvrtcCompileProgram": &c.compileProgram, "nvrtcDestroyProgram": &c.destroy,
		"nvrtcGetProgramLogSize": &c.logSize, "nvrtcGetProgramLog": &c.log,
		"nvrtcGetPTXSize": &c.codeSize, "nvrtcGetPTX": &c.code, "nvrtcVersion": &version,
	} {
		if *address, err = purego.Dlsym(handle, name); err != nil {
			return nil, err
		}
	}
	var major, minor int32
	purego.SyscallN(version, uintptr(unsafe.Pointer(&major)), uintptr(unsafe.Pointer(&minor)))
	if major != wantMajor || minor != wantMinor {
		return nil, fmt.Errorf("%s is NVRTC %d.%d, want %d.%d", library, major, minor, wantMajor, wantMinor)
	}
	return &c, nil
}

// compile returns the PTX of a file of kernels; the error has the compiler's messages, with file and line.
func (c *compiler) compile(k source, headers []source, target string) ([]byte, error) {
	var pins runtime.Pinner
	defer pins.Unpin()
	pointer := func(text []byte) uintptr {
		pins.Pin(&text[0])
		return uintptr(unsafe.Pointer(&text[0]))
	}
	list := func(texts ...[]byte) uintptr {
		pointers := make([]uintptr, len(texts)+1)
		for i, text := range texts {
			pointers[i] = pointer(text)
		}
		pins.Pin(&pointers[0])
		return uintptr(unsafe.Pointer(&pointers[0]))
	}
	var names, texts [][]byte
	for _, h := range headers {
		names, texts = append(names, []byte(h.name+"\x00")), append(texts, h.text)
	}

	program := new(uintptr)
	pins.Pin(program)
	code, _, _ := purego.SyscallN(c.create, uintptr(unsafe.Pointer(program)), pointer(k.text),
		pointer([]byte(k.name+"\x00")), uintptr(len(headers)), list(texts...), list(names...))
	if int32(code) != 0 {
		return nil, fmt.Errorf("%s: nvrtcCreateProgram returned %d", k.name, int32(code))
	}
	defer purego.SyscallN(c.destroy, uintptr(unsafe.Pointer(program)))
	code, _, _ = purego.SyscallN(c.compileProgram, *program, 2,
		list([]byte("--gpu-architecture="+target+"\x00"), []byte("--std=c++17\x00")))
	if int32(code) != 0 {
		messages, _ := c.output(c.logSize, c.log, *program)
		return nil, fmt.Errorf("%s for %s: error %d of NVRTC\n%s", k.name, target, int32(code), messages)
	}
	ptx, err := c.output(c.codeSize, c.code, *program)
	if err != nil {
		return nil, fmt.Errorf("%s for %s: %w", k.name, target, err)
	}
	return tidy(ptx), nil
}

// output returns what the compiler has for a program, without the zero byte at its end.
func (c *compiler) output(size, get, program uintptr) ([]byte, error) {
	n := new(uintptr)
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(n)
	if code, _, _ := purego.SyscallN(size, program, uintptr(unsafe.Pointer(n))); int32(code) != 0 || *n == 0 {
		return nil, fmt.Errorf("error %d of NVRTC", int32(code))
	}
	text := make([]byte, *n)
	pins.Pin(&text[0])
	if code, _, _ := purego.SyscallN(get, program, uintptr(unsafe.Pointer(&text[0]))); int32(code) != 0 {
		return nil, fmt.Errorf("error %d of NVRTC", int32(code))
	}
	return bytes.TrimRight(text, "\x00"), nil
}

// tidy removes comments and empty lines, which take half of the file, and say the build of the compiler.
func tidy(ptx []byte) []byte {
	out := []byte("// Code generated by internal/cuda/gen. DO NOT EDIT.\n")
	for line := range bytes.Lines(ptx) {
		line = bytes.TrimRight(line, " \t\r\n")
		if trimmed := bytes.TrimSpace(line); len(trimmed) == 0 || bytes.HasPrefix(trimmed, []byte("//")) {
			continue
		}
		out = append(append(out, line...), '\n')
	}
	return out
}
