//go:build gpu && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"unsafe"
)

// Pointer is an address in a device's memory, 0: null.
type Pointer uintptr

// Alloc allocates bytes of the device's memory, from an address that is a multiple of 256. What is in it is unknown. Of
// 0 bytes it is null. The error is *OutOfMemory where the device has not so much, or an earlier one of an operation.
func (d *Device) Alloc(bytes int) (Pointer, error) {
	if bytes < 0 {
		panic(fmt.Sprintf("cuda: an allocation of %d bytes", bytes))
	}
	d.enter()
	defer d.leave()
	if bytes == 0 || d.failed != nil {
		return 0, d.failed
	}
	var p uintptr
	code := call(d.driver.allocate, uintptr(unsafe.Pointer(&p)), uintptr(bytes))
	if code == outOfMemory {
		return 0, &OutOfMemory{int64(bytes), d.freeBytes()}
	}
	if code != 0 {
		d.fail(fmt.Sprintf("allocating %s", size(int64(bytes))), code)
		return 0, d.failed
	}
	d.memory[Pointer(p)] = bytes
	d.held += bytes
	d.peak = max(d.peak, d.held)
	return Pointer(p), nil
}

// FreeMemory frees memory of Alloc after the operations queued so far. Of null it does nothing.
func (d *Device) FreeMemory(p Pointer) {
	if p == 0 {
		return
	}
	d.enter()
	defer d.leave()
	if _, ok := d.memory[p]; !ok {
		if d.context == 0 {
			return // Close has freed it
		}
		panic(fmt.Sprintf("cuda: %#x is freed, which is not allocated", uintptr(p)))
	}
	d.held -= d.memory[p]
	delete(d.memory, p)
	if code := call(d.driver.free, uintptr(p)); code != 0 {
		d.fail("freeing memory", code)
	}
}

// Peak returns the most bytes that were allocated at once.
func (d *Device) Peak() int64 {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return int64(d.peak)
}

// Free returns the number of bytes of the device's memory that no program uses, 0 where the driver does not know it.
func (d *Device) Free() int64 {
	d.enter()
	defer d.leave()
	return d.freeBytes()
}

func (d *Device) freeBytes() int64 {
	var free, total uintptr
	if call(d.driver.memoryInfo, uintptr(unsafe.Pointer(&free)), uintptr(unsafe.Pointer(&total))) != 0 {
		return 0
	}
	return int64(free)
}

// HostFloats allocates page-locked memory of the processor for n floats: copies from and to it are fast and do not
// wait. It is not of Go's heap: FreeHost frees it.
func (d *Device) HostFloats(n int) ([]float32, error) {
	if n < 0 {
		panic(fmt.Sprintf("cuda: an allocation of %d floats", n))
	}
	d.enter()
	defer d.leave()
	if n == 0 || d.failed != nil {
		return nil, d.failed
	}
	var p *float32
	code := call(d.driver.allocateHost, uintptr(unsafe.Pointer(&p)), uintptr(n)*4, 0)
	if code == outOfMemory {
		return nil, fmt.Errorf("%s of page-locked memory are needed, which the machine has not", size(int64(n)*4))
	}
	if code != 0 {
		d.fail("allocating page-locked memory", code)
		return nil, d.failed
	}
	return unsafe.Slice(p, n), nil
}

// FreeHost frees memory of HostFloats, which no operation may use any more.
func (d *Device) FreeHost(x []float32) {
	if cap(x) == 0 {
		return
	}
	d.enter()
	defer d.leave()
	if d.context == 0 {
		return // without its context, the driver has freed it
	}
	if code := call(d.driver.freeHost, uintptr(unsafe.Pointer(unsafe.SliceData(x)))); code != 0 {
		d.fail("freeing page-locked memory", code)
	}
}

// Bytes returns the memory of a slice, whose elements have no pointers.
func Bytes[T any](x []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(one)))
}

// Upload queues a copy from the processor's memory. The caller may write to from after Upload has returned unless it is
// memory of HostFloats, which must stay as it is until Synchronize. From Go's memory, the driver waits for earlier
// operations before it copies more than some kilobytes.
func (d *Device) Upload(to Pointer, from []byte) {
	if len(from) == 0 || !d.begin() {
		return
	}
	d.end("a copy to the GPU", call(d.driver.upload, uintptr(to), uintptr(unsafe.Pointer(unsafe.SliceData(from))),
		uintptr(len(from)), d.stream))
}

// Download queues a copy to the processor's memory, which has the bytes after Synchronize. Into Go's memory, it waits
// for all operations.
func (d *Device) Download(to []byte, from Pointer) {
	if len(to) == 0 || !d.begin() {
		return
	}
	d.end("a copy from the GPU", call(d.driver.download, uintptr(unsafe.Pointer(unsafe.SliceData(to))), uintptr(from),
		uintptr(len(to)), d.stream))
}

// Copy queues a copy within the device's memory; the two places do not overlap.
func (d *Device) Copy(to, from Pointer, bytes int) {
	if bytes == 0 || !d.begin() {
		return
	}
	d.end("a copy on the GPU", call(d.driver.copy, uintptr(to), uintptr(from), uintptr(bytes), d.stream))
}

// Clear queues setting bytes to 0.
func (d *Device) Clear(p Pointer, bytes int) {
	if bytes == 0 || !d.begin() {
		return
	}
	d.end("clearing memory", call(d.driver.set, uintptr(p), 0, uintptr(bytes), d.stream))
}
