package nn

// arena hands out zeroed slices and takes them all back at once.
type arena struct {
	blocks [][]float32
	block  int // blocks[block] is being filled
	used   int // floats used of it
}

// Blocks grow from the first, in floats, to the largest, so that a small batch needs little memory.
const firstBlock, largestBlock = 1 << 13, 1 << 20

func (a *arena) reset() { a.block, a.used = 0, 0 }

// arenaMark is a moment to which an arena can go back.
type arenaMark struct{ block, used int }

func (a *arena) mark() arenaMark { return arenaMark{a.block, a.used} }

// release takes back what was handed out since the mark.
func (a *arena) release(m arenaMark) { a.block, a.used = m.block, m.used }

func (a *arena) floats(n int) []float32 {
	for ; a.block < len(a.blocks); a.block, a.used = a.block+1, 0 {
		if b := a.blocks[a.block]; a.used+n <= len(b) {
			s := b[a.used : a.used+n : a.used+n]
			a.used += n
			clear(s)
			return s
		}
	}
	a.blocks = append(a.blocks, make([]float32, max(n, min(firstBlock<<min(len(a.blocks), 20), largestBlock))))
	a.used = n
	return a.blocks[a.block][:n:n]
}
