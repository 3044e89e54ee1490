//go:build gpu && linux && (amd64 || arm64)

package cuda

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"unsafe"
)

// Device is a GPU. Its operations are queued and follow each other in order; methods may be called by several
// goroutines. After an error operations do nothing until Synchronize has returned it.
type Device struct {
	driver       *driver
	number       int
	handle       uintptr // CUdevice
	name         string
	major, minor int

	mutex     sync.Mutex // of the fields below
	context   uintptr
	stream    uintptr
	modules   []uintptr
	functions map[string]*function
	arguments *arguments
	frame     [16]uintptr     // arguments of callFrame
	memory    map[Pointer]int // allocated, its bytes
	held      int             // bytes that are allocated
	peak      int             // the most that were
	events    []uintptr       // CUevent, the last ones recorded
	recorded  Event
	blas      *blas // nil: products are kernels
	launches  int64
	failed    error // the first since Synchronize
	broken    bool  // failed stays
	profile   *profile
}

// Attributes of devices and a value of one: cuda.h.
const (
	attributeComputeMode = 20 // CU_DEVICE_ATTRIBUTE_COMPUTE_MODE
	attributeMajor       = 75 // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR
	attributeMinor       = 76 // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR
	modeProhibited       = 2  // CU_COMPUTEMODE_PROHIBITED
)

// oldestMajor is the first compute capability that has the instructions of the kernels.
const oldestMajor = 8

// streamNonBlocking is CU_STREAM_NON_BLOCKING.
const streamNonBlocking = 1

// Devices returns the names of the GPUs that the driver finds, by number.
func Devices() ([]string, error) {
	l, err := openDriver()
	if err != nil {
		return nil, err
	}
	var count int32
	if code := call(l.deviceCount, uintptr(unsafe.Pointer(&count))); code != 0 {
		return nil, l.failure("the number of GPUs", code)
	}
	if count == 0 {
		return nil, l.startError(noDevice)
	}
	names := make([]string, count)
	for i := range names {
		d, err := l.device(i)
		if err != nil {
			return nil, err
		}
		names[i] = d.name
	}
	return names, nil
}

// device returns one of the GPUs that are there, without a context.
func (l *driver) device(number int) (*Device, error) {
	d := &Device{driver: l, number: number, functions: map[string]*function{}, memory: map[Pointer]int{},
		arguments: newArguments()}
	var handle int32
	if code := call(l.deviceGet, uintptr(unsafe.Pointer(&handle)), uintptr(number)); code != 0 {
		return nil, l.failure(fmt.Sprintf("GPU %d", number), code)
	}
	d.handle = uintptr(handle)
	name := make([]byte, 256)
	if code := call(l.deviceName, uintptr(unsafe.Pointer(&name[0])), uintptr(len(name)-1), d.handle); code != 0 {
		return nil, l.failure(fmt.Sprintf("GPU %d", number), code)
	}
	d.name = text(&name[0])
	d.major, d.minor = d.attribute(attributeMajor), d.attribute(attributeMinor)
	return d, nil
}

// attribute returns an attribute of the GPU, 0 where the driver does not know it.
func (d *Device) attribute(attribute int) int {
	var value int32
	if call(d.driver.deviceAttribute, uintptr(unsafe.Pointer(&value)), uintptr(attribute), d.handle) != 0 {
		return 0
	}
	return int(value)
}

// Open opens a GPU by its number, from 0. The first time that a driver opens it, it compiles the kernels, which takes
// some seconds.
func Open(number int) (*Device, error) {
	names, err := Devices()
	if err != nil {
		return nil, err
	}
	if number < 0 || number >= len(names) {
		var there []string
		for i, name := range names {
			there = append(there, fmt.Sprintf("%d (%s)", i, name))
		}
		return nil, fmt.Errorf("there is no GPU %d: there is %s: choose one of these, %s", number,
			strings.Join(there, ", "), orCPU)
	}
	l, err := openDriver()
	if err != nil {
		return nil, err
	}
	d, err := l.device(number)
	if err != nil {
		return nil, err
	}
	if d.major < oldestMajor {
		return nil, fmt.Errorf("%s is too old: its compute capability is %d.%d, and jenga's kernels need %d.0 or "+
			"later: use a newer GPU, %s", d, d.major, d.minor, oldestMajor, orCPU)
	}
	if d.attribute(attributeComputeMode) == modeProhibited {
		return nil, fmt.Errorf("%s does not allow programs (its compute mode is Prohibited): nvidia-smi -i %d -c 0, "+
			"run as root, allows them, %s", d, d.number, orCPU)
	}
	if code := call(l.retain, uintptr(unsafe.Pointer(&d.context)), d.handle); code != 0 {
		return nil, d.contextError(code)
	}
	if err := d.prepare(); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// prepare opens all that operations need.
func (d *Device) prepare() error {
	d.enter()
	code := call(d.driver.streamCreate, uintptr(unsafe.Pointer(&d.stream)), streamNonBlocking)
	if d.failed == nil && code != 0 {
		d.fail(d.String(), code)
	}
	err := d.failed
	if err == nil {
		err = d.loadModules()
	}
	d.leave()
	if err != nil {
		return err
	}
	d.blas, err = openBLAS(d)
	return err
}

// String returns the number and the name.
func (d *Device) String() string { return fmt.Sprintf("GPU %d (%s)", d.number, d.name) }

// Name returns the name that the driver has for the GPU.
func (d *Device) Name() string { return d.name }

// Capability returns the compute capability, such as 9, 0.
func (d *Device) Capability() (major, minor int) { return d.major, d.minor }

// Close waits for all operations and frees all memory of the device, but for page-locked memory. Operations after it do
// nothing, and Synchronize returns an error. It returns the error that Synchronize would have returned.
func (d *Device) Close() error {
	d.mutex.Lock()
	closed := d.context == 0
	d.mutex.Unlock()
	if closed {
		return nil
	}
	var err error
	if d.stream != 0 {
		err = d.Synchronize()
	}
	d.blas.close()
	d.enter()
	defer d.leave()
	l := d.driver
	for p := range d.memory {
		call(l.free, uintptr(p))
	}
	for _, event := range d.events {
		call(l.eventDestroy, event)
	}
	for _, module := range d.modules {
		call(l.moduleUnload, module)
	}
	if d.stream != 0 {
		call(l.streamDestroy, d.stream)
	}
	call(l.setCurrent, 0)
	call(l.release, d.handle)
	d.context, d.stream, d.blas, d.modules, d.events, d.memory = 0, 0, nil, nil, nil, map[Pointer]int{}
	clear(d.functions)
	d.failed, d.broken = errClosed, true
	return err
}

// enter makes the device's context that of the thread, and keeps the goroutine on it, until leave.
func (d *Device) enter() {
	d.mutex.Lock()
	runtime.LockOSThread()
	d.frame[0] = d.context
	if code := callFrame(d.driver.setCurrent, d.frame[:1]); code != 0 {
		d.fail(d.String(), code)
	}
}

func (d *Device) leave() {
	runtime.UnlockOSThread()
	d.mutex.Unlock()
}

// begin enters to queue an operation, and reports whether it may: not after an error. If so, end follows.
func (d *Device) begin() bool {
	d.enter()
	if d.failed != nil {
		d.leave()
		return false
	}
	return true
}

// end leaves, with the error code of the call that has queued an operation.
func (d *Device) end(what string, code int32) {
	if code == 0 {
		d.launches++
		d.mark(what)
	} else {
		d.fail(what, code)
	}
	d.leave()
}

// fail keeps an error of the driver unless there is an earlier one.
func (d *Device) fail(what string, code int32) {
	if d.failed == nil {
		d.failed = d.driver.failure(what, code)
	}
	d.broken = d.broken || destroys(code)
}

// Synchronize waits for all operations. It returns the first error since it was last called. An error that makes the
// GPU unusable for the process is returned by all later calls, too.
func (d *Device) Synchronize() error {
	d.mutex.Lock()
	context, stream := d.context, d.stream
	d.mutex.Unlock()
	var code int32
	if context != 0 {
		// others may queue operations while this waits
		runtime.LockOSThread()
		if code = call(d.driver.setCurrent, context); code == 0 {
			code = call(d.driver.streamWait, stream)
		}
		runtime.UnlockOSThread()
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if code != 0 {
		d.fail("waiting for "+d.String(), code)
	}
	err := d.failed
	if !d.broken {
		d.failed = nil
	}
	return err
}

// Err returns the first error that is known so far, without waiting. Synchronize will return it.
func (d *Device) Err() error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.failed
}

// Launches returns the number of operations queued so far: kernels, products, copies.
func (d *Device) Launches() int64 {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.launches
}

// Event is a place between operations. It is forgotten after eventsKept others have been recorded.
type Event int64

// eventsKept is the number of events that Wait knows.
const eventsKept = 4096

// Record marks the place after the operations queued so far.
func (d *Device) Record() Event {
	d.enter()
	defer d.leave()
	if d.failed != nil {
		return 0
	}
	at := int(d.recorded % eventsKept)
	if at == len(d.events) {
		var event uintptr
		if code := call(d.driver.eventCreate, uintptr(unsafe.Pointer(&event)), 0); code != 0 {
			d.fail("an event", code)
			return 0
		}
		d.events = append(d.events, event)
	}
	if code := call(d.driver.eventRecord, d.events[at], d.stream); code != 0 {
		d.fail("an event", code)
		return 0
	}
	d.recorded++
	return d.recorded
}

// Wait waits for the operations that were queued before an event was recorded. For one that is forgotten it does not.
func (d *Device) Wait(e Event) {
	d.mutex.Lock()
	known := e > 0 && e <= d.recorded && e > d.recorded-eventsKept
	var event, context uintptr
	if known && d.failed == nil {
		event, context = d.events[(e-1)%eventsKept], d.context
	}
	d.mutex.Unlock()
	if event == 0 {
		return
	}
	runtime.LockOSThread() // others may queue operations while this waits
	code := call(d.driver.setCurrent, context)
	if code == 0 {
		code = call(d.driver.eventWait, event)
	}
	runtime.UnlockOSThread()
	if code != 0 {
		d.mutex.Lock()
		d.fail("waiting for "+d.String(), code)
		d.mutex.Unlock()
	}
}
