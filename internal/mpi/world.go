//go:build mpi && (linux || darwin) && (amd64 || arm64)

package mpi

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// world is a World by an open library.
type world struct {
	rank, ranks int
	version     string // of the library, and its file

	library    *library
	bell       *bell         // rings where there are new requests
	finalizing chan struct{} // closed when all requests have ended
	ended      chan struct{} // closed when the library is finalized

	mutex    sync.Mutex // of the fields below
	requests []*request // that have not begun
	closed   bool
}

// request is a call of the library that has not ended.
type request struct {
	begin func(handle uintptr) int32 // posts it, with the place of an MPI_Request
	done  func(error)
	slot  *slot
	err   error
}

// slot is memory outside of Go's heap for what MPI_Test reads and writes.
type slot struct {
	request uint64
	flag    int32
	_       int32
	status  [64]byte
}

// Start initializes MPI. It is called once.
func Start() (World, error) {
	if err := os.Setenv("UCX_ERROR_SIGNALS", ""); err != nil { // signals are handled by Go
		return nil, err
	}
	l, err := openLibrary()
	if err != nil {
		return nil, err
	}
	w := &world{library: l, finalizing: make(chan struct{}), ended: make(chan struct{})}
	if w.bell, err = newBell(); err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	go w.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return w, nil
}

func (w *world) Rank() int { return w.rank }

func (w *world) Ranks() int { return w.ranks }

func (w *world) Version() string { return w.version }

// run makes all calls of the library until the requests end.
func (w *world) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread() // a thread that ends runs the library's destructors, which may end the process
	defer close(w.ended)
	slots, err := w.initialize()
	started <- err
	if err != nil {
		return
	}

	var open []*request
	var pause time.Duration
	for {
		// new requests
		more, closed := w.posted()
		for _, r := range more {
			r.slot = slots.take()
			if code := r.begin(uintptr(unsafe.Pointer(&r.slot.request))); code != 0 {
				slots.give(r.slot)
				r.done(w.failed(code))
				continue
			}
			open = append(open, r)
		}
		if closed && len(open) == 0 {
			break
		}

		// those that have ended, each of which may post others
		var ended []*request
		open = slices.DeleteFunc(open, func(r *request) bool {
			if !w.test(r) {
				return false
			}
			ended = append(ended, r)
			return true
		})
		for _, r := range ended {
			slots.give(r.slot)
			r.done(r.err)
		}
		if len(more) > 0 || len(ended) > 0 {
			pause = 0
			continue
		}
		w.bell.wait(pause)
		pause = nextPause(pause)
	}
	close(w.finalizing)
	w.call("MPI_Finalize")
}

// posted returns the new requests, and whether there will be no more.
func (w *world) posted() (requests []*request, closed bool) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	requests, w.requests = w.requests, nil
	return requests, w.closed
}

func (w *world) initialize() (*slots, error) {
	memory, err := allocate(slotMemory)
	if err != nil {
		return nil, err
	}
	scratch := (*slot)(unsafe.Pointer(&memory[0]))
	flag := uintptr(unsafe.Pointer(&scratch.flag))
	h := w.library.handles
	if code := w.call("MPI_Init_thread", 0, 0, h.funneled, flag); code != 0 {
		return nil, fmt.Errorf("%s: MPI_Init_thread returned %d", w.library.file, code)
	}
	w.call("MPI_Comm_set_errhandler", h.world, h.errorsReturn)
	w.call("MPI_Comm_rank", h.world, flag)
	w.rank = int(scratch.flag)
	w.call("MPI_Comm_size", h.world, flag)
	w.ranks = int(scratch.flag)
	line, _, _ := strings.Cut(w.text("MPI_Get_library_version", memory), "\n")
	w.version = fmt.Sprintf("%s (%s)", strings.Join(strings.Fields(line), " "), w.library.file)
	s := &slots{}
	s.add(memory)
	return s, nil
}

func (w *world) text(function string, memory []byte, args ...uintptr) string {
	length := (*int32)(unsafe.Pointer(&memory[0]))
	text := memory[64:]
	args = append(args, uintptr(unsafe.Pointer(&text[0])), uintptr(unsafe.Pointer(length)))
	if code := w.call(function, args...); code != 0 || *length < 0 || int(*length) > len(text) {
		return ""
	}
	return string(text[:*length])
}

// call calls a function and returns its error code.
func (w *world) call(function string, args ...uintptr) int32 {
	code, _, _ := purego.SyscallN(w.library.symbols[function], args...)
	return int32(code)
}

func callPointers(function uintptr, a, b *int32) int32 {
	var pins runtime.Pinner
	defer pins.Unpin()
	pins.Pin(a)
	pins.Pin(b)
	code, _, _ := purego.SyscallN(function, uintptr(unsafe.Pointer(a)), uintptr(unsafe.Pointer(b)))
	return int32(code)
}

func (w *world) test(r *request) bool {
	at := func(p unsafe.Pointer) uintptr { return uintptr(p) }
	code := w.call("MPI_Test", at(unsafe.Pointer(&r.slot.request)), at(unsafe.Pointer(&r.slot.flag)),
		at(unsafe.Pointer(&r.slot.status)))
	if code != 0 {
		r.err = w.failed(code)
	}
	return code != 0 || r.slot.flag != 0
}

func (w *world) failed(code int32) error {
	memory, err := allocate(4096)
	if err != nil {
		return fmt.Errorf("MPI error %d", code)
	}
	defer release(memory)
	if text := w.text("MPI_Error_string", memory, uintptr(code)); text != "" {
		return fmt.Errorf("MPI error %d: %s", code, text)
	}
	return fmt.Errorf("MPI error %d", code)
}

func (w *world) Send(to, tag int, b []byte, done func(error)) {
	w.start(func(handle uintptr) int32 {
		h := w.library.handles
		return w.call("MPI_Isend", address(b), words(b), h.float, uintptr(to), uintptr(tag), h.world, handle)
	}, done)
}

func (w *world) Receive(from, tag int, b []byte, done func(error)) {
	w.start(func(handle uintptr) int32 {
		h := w.library.handles
		return w.call("MPI_Irecv", address(b), words(b), h.float, uintptr(from), uintptr(tag), h.world, handle)
	}, done)
}

func (w *world) Sum(b []byte, done func(error)) {
	w.start(func(handle uintptr) int32 {
		h := w.library.handles
		return w.call("MPI_Iallreduce", h.inPlace, address(b), words(b), h.float, h.sum, h.world, handle)
	}, done)
}

// start passes a request to the goroutine that calls the library.
func (w *world) start(begin func(handle uintptr) int32, done func(error)) {
	w.mutex.Lock()
	w.requests = append(w.requests, &request{begin: begin, done: done})
	w.mutex.Unlock()
	w.bell.ring()
}

func (w *world) Close() {
	w.mutex.Lock()
	w.closed = true
	w.mutex.Unlock()
	w.bell.ring()
	<-w.finalizing
	var late <-chan time.Time
	// Open MPI's launcher takes a process that has not finalized for one that has failed
	if w.library.handles.name != openMPIInterface {
		late = time.After(finalizeLimit)
	}
	select {
	case <-w.ended:
	case <-late:
		fmt.Fprintf(os.Stderr, "rank %d: MPI_Finalize has not returned after %v; the process ends without it\n", w.rank,
			finalizeLimit)
	}
}

// finalizeLimit is the time that MPICH has to finalize. MPICH 4.0 over TCP sometimes waits for ever: one process for an
// answer of another, which has stopped answering and waits for the launcher to say that all have.
const finalizeLimit = 10 * time.Second

// abortLimit is the time that the library has to end all processes: its thread may be in a call that does not return.
const abortLimit = 5 * time.Second

// readTime is the time in which a launcher reads what this process has written: Hydra, MPICH's launcher, may end
// without that where a process aborts.
const readTime = 200 * time.Millisecond

func (w *world) Abort(status int) {
	time.Sleep(readTime)
	returned := make(chan struct{})
	w.start(func(uintptr) int32 {
		defer close(returned)
		return w.call("MPI_Abort", w.library.handles.world, uintptr(status))
	}, func(error) {})
	select {
	case <-returned:
	case <-time.After(abortLimit):
	}
	os.Exit(status) // without what libraries do at the end, which may wait for others
}

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

func words(b []byte) uintptr {
	if len(b)%4 != 0 {
		panic(fmt.Sprintf("mpi: a message of %d bytes", len(b)))
	}
	return uintptr(len(b) / 4)
}

func (w *world) Allocate(bytes int) ([]byte, error) { return allocate(bytes) }

// allocate returns memory outside of Go's heap, of zeros.
func allocate(bytes int) ([]byte, error) {
	return unix.Mmap(-1, 0, max(bytes, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

func release(b []byte) error { return unix.Munmap(b) }

// slotMemory is the memory of slots that is allocated at once.
const slotMemory = 1 << 16

// slots are the memory of requests.
type slots struct{ free []*slot }

// add divides memory into slots.
func (s *slots) add(memory []byte) {
	for size := int(unsafe.Sizeof(slot{})); len(memory) >= size; memory = memory[size:] {
		s.free = append(s.free, (*slot)(unsafe.Pointer(&memory[0])))
	}
}

func (s *slots) take() *slot {
	if len(s.free) == 0 {
		memory, err := allocate(slotMemory)
		if err != nil {
			panic("mpi: memory for requests: " + err.Error())
		}
		s.add(memory)
	}
	last := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	*last = slot{}
	return last
}

func (s *slots) give(one *slot) { s.free = append(s.free, one) }

// Processes and threads that share a processor leave it to each other: a thread that waits for requests looks at them
// less and less often.
const (
	shortestPause = 25 * time.Microsecond
	longestPause  = time.Millisecond
)

func nextPause(pause time.Duration) time.Duration {
	return min(max(shortestPause, pause+pause/2), longestPause)
}

// bell wakes a thread that waits for a time. Timers of the Go runtime are not used: in a process that has nothing else
// to do they are late by up to a millisecond.
type bell struct{ read, write int } // a pipe

func newBell() (*bell, error) {
	var ends [2]int
	if err := unix.Pipe(ends[:]); err != nil {
		return nil, err
	}
	for _, end := range ends {
		unix.CloseOnExec(end)
		if err := unix.SetNonblock(end, true); err != nil {
			return nil, err
		}
	}
	return &bell{ends[0], ends[1]}, nil
}

// ring ends the wait at hand, or the next one.
func (b *bell) ring() {
	unix.Write(b.write, []byte{1}) // where the pipe is full it rings already
}

// wait waits for a time or until the bell rings.
func (b *bell) wait(pause time.Duration) {
	if waitToRead(b.read, pause) {
		var rings [64]byte
		unix.Read(b.read, rings[:])
	}
}

// Exit ends the process as C's exit does, which calls what libraries have registered: MPICH signs off from its launcher
// there, which ends all ranks where one ends without that. With a status other than 0 the first process of a machine
// ends after the others.
func Exit(status int) {
	if status != 0 && os.Getenv("MPI_LOCALRANKID") == "0" {
		outlive()
	}
	time.AfterFunc(exitLimit, func() { os.Exit(status) })
	if exit, err := purego.Dlsym(purego.RTLD_DEFAULT, "exit"); err == nil {
		purego.SyscallN(exit, uintptr(status))
	}
	os.Exit(status)
}

// endTime is the time in which the other processes of this machine end, once all have left the library.
const endTime = 50 * time.Millisecond

// outlive closes the output when the other processes of this machine have ended, and returns later: Hydra, MPICH's
// launcher, looks for processes that have ended when an output closes. In MPICH 4.0 it forgets the exit statuses of
// those that it finds after the last output has closed, and mpiexec exits with 0 where all processes end at once.
func outlive() {
	time.Sleep(endTime)
	os.Stdout.Close()
	time.Sleep(endTime)
}

// exitLimit is the time that C's exit has: what libraries have registered may wait for a thread in MPI_Finalize.
const exitLimit = 5 * time.Second
