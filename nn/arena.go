package nn

import (
	"runtime/debug"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// arena allocates slices and frees them all at once.
type arena struct {
	blocks    [][]float32
	block     int // blocks[block] is being filled
	used      int // floats used of it
	allocated int // floats allocated since the last reset
	peak      int // the largest value of allocated so far
	first     int // minimal size of the first block, in floats
}

// Blocks grow from the first, in floats, to the largest, so that a small batch needs little memory.
const firstBlock, largestBlock = 1 << 13, 1 << 20

// outgrown reports whether reset frees all blocks. Batch sizes vary, and slices of a large batch do not fit into blocks
// that were made for small ones. Where much memory is unused for that reason, one block replaces many.
func (a *arena) outgrown() bool { return len(a.blocks) > 1 && a.size() > a.peak+a.peak/4 }

// size returns how many floats the blocks hold.
func (a *arena) size() int {
	held := 0
	for _, b := range a.blocks {
		held += len(b)
	}
	return held
}

// reset frees all slices.
func (a *arena) reset() {
	if a.outgrown() {
		large := a.size() > 1<<24
		a.blocks, a.first = nil, a.peak
		if large { // otherwise old and new blocks are in memory at once, GiB for large batches
			debug.FreeOSMemory()
		}
	}
	a.block, a.used, a.allocated = 0, 0, 0
}

// arenaMark is a state of an arena that release restores.
type arenaMark struct{ block, used, allocated int }

func (a *arena) mark() arenaMark { return arenaMark{a.block, a.used, a.allocated} }

// release frees what was allocated since the mark.
func (a *arena) release(m arenaMark) { a.block, a.used, a.allocated = m.block, m.used, m.allocated }

// floats returns n uninitialised floats.
func (a *arena) floats(n int) []float32 {
	a.allocated += n
	a.peak = max(a.peak, a.allocated)
	for ; a.block < len(a.blocks); a.block, a.used = a.block+1, 0 {
		if b := a.blocks[a.block]; a.used+n <= len(b) {
			s := b[a.used : a.used+n : a.used+n]
			a.used += n
			return s
		}
	}
	size := max(n, min(firstBlock<<min(len(a.blocks), 20), largestBlock))
	if len(a.blocks) == 0 {
		size = max(size, a.first)
	}
	a.blocks = append(a.blocks, kernel.Floats(size))
	a.used = n
	return a.blocks[a.block][:n:n]
}
