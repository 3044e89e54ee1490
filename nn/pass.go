package nn

import (
	"gorgonia.org/gorgonia"
)

// Pass is one way of one batch through the model. It owns all activations, so encoders and heads hold only parameters
// and many passes may run at once. Its values live until Reset.
type Pass struct {
	Training bool
	// Recompute asks encoders to keep little for Backward and to compute the rest again there.
	Recompute bool
	// BFloat16 asks encoders to multiply by their weights in bfloat16. What is summed, and all else, is float32: the
	// products within attention too, which PyTorch's autocast rounds.
	BFloat16 bool

	seed, serial uint64
	graph        *gorgonia.ExprGraph
	arena        arena
	kept, before map[any]any // of this batch, of the one before
	watched      map[string][]Watcher
	run          run
}

// NewPass returns an empty pass. Its randomness is a function of seed and the serial number that Reset gives it.
func NewPass(seed uint64) *Pass {
	p := &Pass{seed: seed, kept: map[any]any{}, before: map[any]any{}}
	p.Reset(0)
	return p
}

// Reset forgets the batch and keeps its memory for the next, which has the given serial number.
func (p *Pass) Reset(serial uint64) {
	p.serial = serial
	p.graph, p.run = gorgonia.NewGraph(), newRun()
	clear(p.watched)
	p.kept, p.before = p.before, p.kept
	clear(p.kept)
	if p.arena.outgrown() {
		clear(p.before) // what it holds would keep the memory that is given up
	}
	p.arena.reset()
}

// Floats returns n zeros that live until Reset.
func (p *Pass) Floats(n int) []float32 {
	s := p.arena.floats(n)
	clear(s)
	return s
}

// Scratch returns n numbers, whatever they are, that live until Reset.
func (p *Pass) Scratch(n int) []float32 { return p.arena.floats(n) }

// Reserve tells an unused pass that its values will take so many bytes, so that they get one block of memory.
func (p *Pass) Reserve(bytes int64) { p.arena.first = int(bytes / 4) }

// Bytes returns how much memory the values of a batch have taken at most since the pass was made.
func (p *Pass) Bytes() int64 { return 4 * int64(p.arena.most) }

// Key returns a number that is a function of seed, serial number and place: the key of a counter-based generator.
func (p *Pass) Key(place string) uint64 { return Key(p.seed, p.serial, place) }

// Key is the Key of a pass with a seed and a serial number.
func Key(seed, serial uint64, place string) uint64 {
	// FNV-1a over the three, as hash/fnv has it, which would allocate
	const offset, prime = 14695981039346656037, 1099511628211
	h := uint64(offset)
	for _, x := range [2]uint64{seed, serial} {
		for range 8 {
			h = (h ^ x&0xff) * prime
			x >>= 8
		}
	}
	for i := range len(place) {
		h = (h ^ uint64(place[i])) * prime
	}
	return h
}

// Put keeps what owner needs for its Backward; Get gives it back, nil if there is nothing.
func (p *Pass) Put(owner, value any) { p.kept[owner] = value }
func (p *Pass) Get(owner any) any    { return p.kept[owner] }

// Reuse returns what owner put before the last Reset, nil if there is nothing: memory for what it puts now.
func (p *Pass) Reuse(owner any) any { return p.before[owner] }

// AttentionMaps is the name that an encoder keeps its attention maps under, [layers heads T T] of a text.
const AttentionMaps = "attention"

// Watcher sees the values of one text, which are valid until it returns.
type Watcher func(text int, shape []int, values []float32)

// Watch asks for the values kept under name, until Reset: see is called for each text.
func (p *Pass) Watch(name string, see Watcher) {
	if p.watched == nil {
		p.watched = map[string][]Watcher{}
	}
	p.watched[name] = append(p.watched[name], see)
}

// Watches tells whether anyone wants to see the values called name.
func (p *Pass) Watches(name string) bool { return len(p.watched[name]) > 0 }

// Keep shows values of one text to whoever watches name.
func (p *Pass) Keep(name string, text int, shape []int, values []float32) {
	for _, see := range p.watched[name] {
		see(text, shape, values)
	}
}
