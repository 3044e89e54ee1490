package nn

import (
	"runtime/debug"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// arena hands out slices and takes them all back at once.
type arena struct {
	blocks [][]float32
	block  int // blocks[block] is being filled
	used   int // floats used of it
	handed int // floats handed out
	most   int // that ever were at once
	first  int // floats that the first block is to hold at least
}

// Blocks grow from the first, in floats, to the largest, so that a small batch needs little memory.
const firstBlock, largestBlock = 1 << 13, 1 << 20

// outgrown tells whether reset will give up all blocks. Batches come in all sizes, and the slices of a large one do not
// fit into blocks that were made for those of small ones: where much lies idle so, one block for all takes the place of
// many.
func (a *arena) outgrown() bool { return len(a.blocks) > 1 && a.size() > a.most+a.most/4 }

// size returns how many floats the blocks hold.
func (a *arena) size() int {
	held := 0
	for _, b := range a.blocks {
		held += len(b)
	}
	return held
}

// reset takes back all slices.
func (a *arena) reset() {
	if a.outgrown() {
		large := a.size() > 1<<24
		a.blocks, a.first = nil, a.most
		if large { // or what is given up and what takes its place would be there at once, GiB of large batches
			debug.FreeOSMemory()
		}
	}
	a.block, a.used, a.handed = 0, 0, 0
}

// arenaMark is a moment to which an arena can go back.
type arenaMark struct{ block, used, handed int }

func (a *arena) mark() arenaMark { return arenaMark{a.block, a.used, a.handed} }

// release takes back what was handed out since the mark.
func (a *arena) release(m arenaMark) { a.block, a.used, a.handed = m.block, m.used, m.handed }

// floats returns n numbers, whatever they are.
func (a *arena) floats(n int) []float32 {
	a.handed += n
	a.most = max(a.most, a.handed)
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
