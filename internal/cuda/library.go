//go:build gpu && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"os"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
)

// LibraryVariable is the environment variable that names the file of the driver's library.
const LibraryVariable = "JENGA_CUDA_LIBRARY"

// systemLibrary is the file of the driver's library where the linker finds it.
const systemLibrary = "libcuda.so.1"

// Library is the path of the driver's library, for tests. "": that of LibraryVariable, or libcuda.so.1.
var Library = ""

// driver is the driver's library: the addresses of its functions.
type driver struct {
	file string

	start, version, errorName, errorText                  uintptr
	deviceCount, deviceGet, deviceName, deviceAttribute   uintptr
	retain, release, setCurrent                           uintptr
	memoryInfo, allocate, free, allocateHost, freeHost    uintptr
	upload, download, copy, set                           uintptr
	streamCreate, streamDestroy, streamWait               uintptr
	eventCreate, eventDestroy, eventRecord, eventWait     uintptr
	eventElapsed                                          uintptr
	moduleLoad, moduleUnload, moduleFunction, functionSet uintptr
	parameter                                             uintptr // 0 before CUDA 12.4
	launch                                                uintptr
}

// names are those of the functions in the library (cuda.h), whose versions are part of them.
func (l *driver) names() map[string]*uintptr {
	return map[string]*uintptr{
		"cuInit": &l.start, "cuDriverGetVersion": &l.version,
		"cuGetErrorName": &l.errorName, "cuGetErrorString": &l.errorText,
		"cuDeviceGetCount": &l.deviceCount, "cuDeviceGet": &l.deviceGet, "cuDeviceGetName": &l.deviceName,
		"cuDeviceGetAttribute":     &l.deviceAttribute,
		"cuDevicePrimaryCtxRetain": &l.retain, "cuDevicePrimaryCtxRelease_v2": &l.release,
		"cuCtxSetCurrent": &l.setCurrent,
		"cuMemGetInfo_v2": &l.memoryInfo, "cuMemAlloc_v2": &l.allocate, "cuMemFree_v2": &l.free,
		"cuMemHostAlloc": &l.allocateHost, "cuMemFreeHost": &l.freeHost,
		"cuMemcpyHtoDAsync_v2": &l.upload, "cuMemcpyDtoHAsync_v2": &l.download, "cuMemcpyDtoDAsync_v2": &l.copy,
		"cuMemsetD8Async": &l.set,
		"cuStreamCreate":  &l.streamCreate, "cuStreamDestroy_v2": &l.streamDestroy,
		"cuStreamSynchronize": &l.streamWait,
		"cuEventCreate":       &l.eventCreate, "cuEventDestroy_v2": &l.eventDestroy, "cuEventRecord": &l.eventRecord,
		"cuEventSynchronize": &l.eventWait, "cuEventElapsedTime": &l.eventElapsed,
		"cuModuleLoadDataEx": &l.moduleLoad, "cuModuleUnload": &l.moduleUnload,
		"cuModuleGetFunction": &l.moduleFunction, "cuFuncSetAttribute": &l.functionSet,
		"cuLaunchKernel": &l.launch,
	}
}

// drivers are the libraries that are open, by file; they stay open.
var drivers = struct {
	sync.Mutex
	open map[string]*driver
}{open: map[string]*driver{}}

// openDriver opens the driver's library and initializes the driver.
func openDriver() (*driver, error) {
	file := libraryFile()
	drivers.Lock()
	defer drivers.Unlock()
	l := drivers.open[file]
	if l == nil {
		handle, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			return nil, absent{fmt.Errorf("no NVIDIA driver found (%w): install one (Debian's package nvidia-driver, "+
				"Ubuntu's nvidia-driver-535 or later; a container needs --gpus all), name the file of its "+
				"library by %s, %s", err, LibraryVariable, orCPU)}
		}
		l = &driver{file: file}
		for name, address := range l.names() {
			if *address, err = purego.Dlsym(handle, name); err != nil {
				return nil, fmt.Errorf("%s is not an NVIDIA driver that jenga can use (%w): update the driver to "+
					"version 535 or later, %s", file, err, orCPU)
			}
		}
		l.parameter, _ = purego.Dlsym(handle, "cuFuncGetParamInfo")
		drivers.open[file] = l
	}
	if code := call(l.start, 0); code != 0 {
		return nil, l.startError(code)
	}
	var version int32
	if code := call(l.version, uintptr(unsafe.Pointer(&version))); code != 0 {
		return nil, l.failure("cuDriverGetVersion", code)
	}
	if version < oldestDriver {
		return nil, fmt.Errorf("the NVIDIA driver is too old: it supports CUDA %d.%d, and jenga's kernels need "+
			"CUDA %d.%d: update the driver to version 535 or later, %s",
			version/1000, version%1000/10, oldestDriver/1000, oldestDriver%1000/10, orCPU)
	}
	return l, nil
}

// libraryFile returns the file of the driver's library.
func libraryFile() string {
	if Library != "" {
		return Library
	}
	if file := os.Getenv(LibraryVariable); file != "" {
		return file
	}
	return systemLibrary
}

// call calls a function of a library and returns its error code. Memory to which an argument points is not moved before
// it returns.
//
//go:uintptrescapes
func call(function uintptr, args ...uintptr) int32 {
	code, _, _ := purego.SyscallN(function, args...)
	return int32(code)
}

// callFrame is call without allocating memory: the arguments point to none that Go has, or that it could free before it
// returns.
func callFrame(function uintptr, args []uintptr) int32 {
	code, _, _ := purego.SyscallN(function, args...)
	return int32(code)
}

// text returns a library's string that ends with a zero byte.
func text(first *byte) string {
	if first == nil {
		return ""
	}
	const longest = 1 << 12
	var b []byte
	for i := range longest {
		c := *(*byte)(unsafe.Add(unsafe.Pointer(first), i))
		if c == 0 {
			break
		}
		b = append(b, c)
	}
	return string(b)
}
