//go:build gpu && linux && (amd64 || arm64)

package cuda

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"path"
	"runtime"
	"strings"
	"unsafe"
)

// function is a kernel of a module.
type function struct {
	handle uintptr // CUfunction
	shared int     // bytes of dynamic shared memory that it may have

	known int                  // number of parameters, 0: the driver does not know it
	bytes [mostArguments]uint8 // of each
}

// sharedAllowed is the dynamic shared memory that a kernel may have without an attribute, in bytes. The limit is 48 KiB
// together with static shared memory.
const sharedAllowed = 32 << 10

// functionShared is CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
const functionShared = 8

// mostArguments is the number of arguments that a kernel may have.
const mostArguments = 32

// arguments are those of a launch, in a form that the driver reads: places has the address of each value. A value has
// eight bytes, of which the kernel reads as many as its parameter has.
type arguments struct {
	values [mostArguments]uint64
	places [mostArguments]unsafe.Pointer
}

func newArguments() *arguments {
	a := &arguments{}
	for i := range a.values {
		a.places[i] = unsafe.Pointer(&a.values[i])
	}
	return a
}

// set sets an argument of a kernel, and reports whether it may be one. Integers are extended by their sign, so that an
// int may also be for a parameter of 64 bits.
func (a *arguments) set(f *function, i int, value any) bool {
	bytes := uint8(8)
	switch v := value.(type) {
	case Pointer:
		a.values[i] = uint64(v)
	case int:
		a.values[i] = uint64(v)
		return v == int(int32(v)) && (f.known == 0 || i < f.known)
	case int32:
		a.values[i], bytes = uint64(v), 4
	case uint32:
		a.values[i], bytes = uint64(v), 4
	case int64:
		a.values[i] = uint64(v)
	case uint64:
		a.values[i] = v
	case float32:
		a.values[i], bytes = uint64(math.Float32bits(v)), 4
	default:
		return false
	}
	return f.known == 0 || i < f.known && f.bytes[i] == bytes
}

// Launch queues a kernel by its name, with a grid of blocks of threads and bytes of dynamic shared memory for each
// block. args are its arguments in order: Pointer, int (of 32 bits), int32, uint32, int64, uint64 and float32. A grid
// without blocks queues nothing.
func (d *Device) Launch(kernel string, grid, block [3]int, shared int, args ...any) {
	if grid[0] == 0 || grid[1] == 0 || grid[2] == 0 || !d.begin() {
		return
	}
	f := d.function(kernel)
	if f == nil || !d.allowShared(kernel, f, shared) {
		d.leave()
		return
	}
	for i, arg := range args {
		if !d.arguments.set(f, i, arg) {
			d.leave()
			// without its value, which would have to be on the heap
			panic(fmt.Sprintf("cuda: argument %d of kernel %s is of another type, or over 32 bits", i, kernel))
		}
	}
	if len(args) < f.known {
		d.leave()
		panic(fmt.Sprintf("cuda: %d arguments of kernel %s, which has %d", len(args), kernel, f.known))
	}
	frame := append(d.frame[:0], f.handle, uintptr(grid[0]), uintptr(grid[1]), uintptr(grid[2]),
		uintptr(block[0]), uintptr(block[1]), uintptr(block[2]), uintptr(shared), d.stream,
		uintptr(unsafe.Pointer(&d.arguments.places)), 0)
	if code := callFrame(d.driver.launch, frame); code != 0 {
		d.fail(fmt.Sprintf("kernel %s, blocks %v of %v threads, %d bytes shared", kernel, grid, block, shared), code)
	} else {
		d.launches++
		d.mark(kernel)
	}
	d.leave()
}

// function returns a kernel, nil after an error.
func (d *Device) function(kernel string) *function {
	if f := d.functions[kernel]; f != nil {
		return f
	}
	name := append([]byte(kernel), 0)
	for _, module := range d.modules {
		f := &function{shared: sharedAllowed}
		code := call(d.driver.moduleFunction, uintptr(unsafe.Pointer(&f.handle)), module,
			uintptr(unsafe.Pointer(&name[0])))
		if code == 0 {
			d.readParameters(f)
			d.functions[strings.Clone(kernel)] = f
			return f
		}
		if code != notFound {
			d.fail("kernel "+kernel, code)
			return nil
		}
	}
	d.fail("kernel "+kernel, notFound)
	return nil
}

// readParameters reads the parameters of a kernel where the driver knows them.
func (d *Device) readParameters(f *function) {
	var offset, bytes uintptr
	for d.driver.parameter != 0 && f.known < mostArguments && call(d.driver.parameter, f.handle, uintptr(f.known),
		uintptr(unsafe.Pointer(&offset)), uintptr(unsafe.Pointer(&bytes))) == 0 {
		f.bytes[f.known] = uint8(bytes)
		f.known++
	}
}

// allowShared makes a kernel one that may have bytes of shared memory, and reports whether it may.
func (d *Device) allowShared(kernel string, f *function, shared int) bool {
	if shared <= f.shared {
		return true
	}
	if code := call(d.driver.functionSet, f.handle, functionShared, uintptr(shared)); code != 0 {
		d.fail(fmt.Sprintf("kernel %s, %d bytes shared", kernel, shared), code)
		return false
	}
	f.shared = shared
	return true
}

// Options of cuModuleLoadDataEx: CUjit_option.
const (
	jitErrorLog     = 5 // CU_JIT_ERROR_LOG_BUFFER
	jitErrorLogSize = 6 // CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES
)

// loadModules compiles all kernels.
func (d *Device) loadModules() error {
	files := moduleFiles(d.major, d.minor)
	if len(files) == 0 {
		return errors.New("this jenga was built without the files of its kernels (internal/cuda/ptx)")
	}
	for _, file := range files {
		source, err := readModule(file)
		if err != nil {
			return err
		}
		if err := d.loadModule(path.Base(file), append(source, 0)); err != nil {
			return err
		}
	}
	return nil
}

// loadModule compiles the kernels of a source, which ends with a zero byte.
func (d *Device) loadModule(name string, source []byte) error {
	log := make([]byte, 4096)
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(&log[0])
	options := [2]int32{jitErrorLog, jitErrorLogSize}
	values := [2]uintptr{uintptr(unsafe.Pointer(&log[0])), uintptr(len(log))}
	var module uintptr
	code := call(d.driver.moduleLoad, uintptr(unsafe.Pointer(&module)), uintptr(unsafe.Pointer(&source[0])),
		uintptr(len(options)), uintptr(unsafe.Pointer(&options)), uintptr(unsafe.Pointer(&values)))
	if code != 0 {
		message, _, _ := bytes.Cut(log, []byte{0})
		return d.moduleError(name, code, string(bytes.TrimSpace(message)))
	}
	d.modules = append(d.modules, module)
	return nil
}
