//go:build gpu && linux && (amd64 || arm64)

package cuda

import (
	"errors"
	"fmt"
	"unsafe"
)

// orCPU ends errors of Open: a key of the experiment file, and a flag.
const orCPU = "or choose device: cpu"

// Error codes of the driver: CUresult in cuda.h.
const (
	outOfMemory          = 2
	deinitialized        = 4
	stubLibrary          = 34
	deviceUnavailable    = 46
	noDevice             = 100
	invalidDevice        = 101
	invalidContext       = 201
	eccUncorrectable     = 214
	nvlinkUncorrectable  = 220
	noCompiler           = 221
	compilationDisabled  = 223
	contained            = 226
	notFound             = 500
	illegalAddress       = 700
	launchTimeout        = 702
	contextDestroyed     = 709
	assertion            = 710
	stackError           = 714
	illegalInstruction   = 715
	misalignedAddress    = 716
	invalidAddressSpace  = 717
	invalidPC            = 718
	launchFailed         = 719
	systemNotReady       = 802
	systemDriverMismatch = 803
	compatNotSupported   = 804
	unknownError         = 999
)

// destroys reports whether a context cannot be used after an error.
func destroys(code int32) bool {
	switch code {
	case deinitialized, eccUncorrectable, nvlinkUncorrectable, contained, illegalAddress, launchTimeout,
		contextDestroyed, assertion, stackError, illegalInstruction, misalignedAddress, invalidAddressSpace, invalidPC,
		launchFailed, unknownError:
		return true
	}
	return false
}

// absent is the error of a machine without a driver, or without a GPU that the driver shows.
type absent struct{ error }

func (e absent) Unwrap() error { return e.error }

// IsAbsent reports whether an error of Open or Devices is that the machine has no driver, or no GPU that it shows.
func IsAbsent(err error) bool {
	var a absent
	return errors.As(err, &a)
}

// errClosed is the error of operations after Close.
var errClosed = errors.New("cuda: the device is closed")

// OutOfMemory is the error of an allocation for which the GPU has no memory.
type OutOfMemory struct {
	Asked, Free int64 // bytes
}

func (e *OutOfMemory) Error() string {
	return fmt.Sprintf("the GPU's memory is full: %s more are needed, %s are free: set a smaller batch_size or "+
		"precision: bf16, end other programs that use the GPU, %s", size(e.Asked), size(e.Free), orCPU)
}

// size writes a number of bytes with its unit.
func size(bytes int64) string {
	switch {
	case bytes >= 1<<30:
		return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30))
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	}
	return fmt.Sprintf("%d bytes", bytes)
}

// failure is an error code of the driver.
type failure struct {
	what       string // that failed
	code       int32
	name, text string
}

func (f *failure) Error() string {
	if f.name == "" {
		return fmt.Sprintf("%s: error %d of the NVIDIA driver", f.what, f.code)
	}
	message := fmt.Sprintf("%s: %s (%s)", f.what, f.text, f.name)
	if destroys(f.code) {
		// the driver reports errors of kernels at a later call
		message += "; the cause may be an earlier operation, and the GPU cannot be used any more by this process"
	}
	return message
}

// failure returns the error of a code.
func (l *driver) failure(what string, code int32) *failure {
	var name, description *byte
	call(l.errorName, uintptr(code), uintptr(unsafe.Pointer(&name)))
	call(l.errorText, uintptr(code), uintptr(unsafe.Pointer(&description)))
	return &failure{what, code, text(name), text(description)}
}

// startError returns the error of cuInit.
func (l *driver) startError(code int32) error {
	switch code {
	case noDevice:
		return absent{fmt.Errorf("the NVIDIA driver finds no GPU: nvidia-smi lists those there (CUDA_VISIBLE_DEVICES "+
			"hides some; a container needs --gpus all), %s", orCPU)}
	case stubLibrary:
		return fmt.Errorf("%s is the file for linking without a driver: take its folder out of LD_LIBRARY_PATH, %s",
			l.file, orCPU)
	case systemDriverMismatch, compatNotSupported:
		return fmt.Errorf("%w: restart the machine if its driver was updated, or remove the package cuda-compat, %s",
			l.failure("the NVIDIA driver's library does not fit its kernel module", code), orCPU)
	case systemNotReady:
		err := l.failure("the NVIDIA driver is not ready", code)
		return fmt.Errorf("%w: start nvidia-fabricmanager, %s", err, orCPU)
	}
	err := l.failure("the NVIDIA driver does not start", code)
	return fmt.Errorf("%w: see whether nvidia-smi works, %s", err, orCPU)
}

// contextError returns the error of opening a device's context.
func (d *Device) contextError(code int32) error {
	switch code {
	case deviceUnavailable, invalidDevice, invalidContext:
		return fmt.Errorf("%s is busy: another program uses it, and its compute mode may allow only one: wait for it, "+
			"let nvidia-smi -i %d -c 0, run as root, allow several, %s", d, d.number, orCPU)
	case outOfMemory:
		return fmt.Errorf("%s has no memory left: end other programs that use it, %s", d, orCPU)
	}
	return fmt.Errorf("%w: see whether nvidia-smi works, %s", d.driver.failure(d.String(), code), orCPU)
}

// moduleError returns the error of a module that the driver did not compile; its compiler's messages are in log.
func (d *Device) moduleError(file string, code int32, log string) error {
	remedy := "update the driver"
	switch code {
	case noCompiler:
		remedy = "install the driver's libnvidia-ptxjitcompiler.so.1 (a container needs " +
			"NVIDIA_DRIVER_CAPABILITIES=compute,utility)"
	case compilationDisabled:
		remedy = "remove CUDA_DISABLE_PTX_JIT from the environment"
	}
	err := d.driver.failure(fmt.Sprintf("%s does not load kernels %s", d, file), code)
	if log != "" {
		return fmt.Errorf("%w: %s: %s, %s", err, log, remedy, orCPU)
	}
	return fmt.Errorf("%w: %s, %s", err, remedy, orCPU)
}
