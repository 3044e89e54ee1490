//go:build mpi && (linux || darwin) && (amd64 || arm64)

package mpi

import (
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// words returns the number of float32 values in b.
func words(b []byte) uintptr {
	if len(b)%4 != 0 {
		panic(fmt.Sprintf("mpi: a message of %d bytes", len(b)))
	}
	return uintptr(len(b) / 4)
}

// Allocate implements World.
func (w *world) Allocate(bytes int) ([]byte, error) { return allocate(bytes) }

// allocate returns memory outside of Go's heap, of zeros.
func allocate(bytes int) ([]byte, error) {
	return unix.Mmap(-1, 0, max(bytes, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
}

// release frees memory that allocate has returned.
func release(b []byte) error { return unix.Munmap(b) }

// slotMemory is the memory of slots that is allocated at once.
const slotMemory = 1 << 16

// slots are the memory of requests.
type slots struct {
	free []*slot
}

func newSlots(memory []byte) *slots {
	s := &slots{}
	s.add(memory)
	return s
}

// add divides memory into slots.
func (s *slots) add(memory []byte) {
	for size := int(unsafe.Sizeof(slot{})); len(memory) >= size; memory = memory[size:] {
		s.free = append(s.free, (*slot)(unsafe.Pointer(&memory[0])))
	}
}

// take returns a free slot, cleared.
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
