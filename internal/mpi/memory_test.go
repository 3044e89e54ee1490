//go:build mpi && (linux || darwin) && (amd64 || arm64)

package mpi

import "testing"

// A model of many buckets posts more requests at once than the first memory of slots has place for.
func TestThereAreSlotsForAnyNumberOfRequests(t *testing.T) {
	memory, err := allocate(slotMemory)
	if err != nil {
		t.Fatal(err)
	}
	s, taken := &slots{}, map[*slot]bool{}
	s.add(memory)
	first := len(s.free)
	for range 3 * first {
		taken[s.take()] = true
	}
	if len(taken) != 3*first {
		t.Errorf("%d different slots of %d requests", len(taken), 3*first)
	}
	for one := range taken {
		s.give(one)
	}
	if len(s.free) < 3*first {
		t.Errorf("%d free slots, of %d", len(s.free), 3*first)
	}
}
