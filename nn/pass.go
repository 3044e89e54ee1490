package nn

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"

	"gorgonia.org/gorgonia"
)

// Pass is one way of one batch through the model. It owns all activations, so encoders and heads hold only parameters
// and many passes may run at once. Its values live until Reset.
type Pass struct {
	Training bool

	seed, serial uint64
	graph        *gorgonia.ExprGraph
	arena        arena
	kept         map[any]any
	watched      map[string]func(text int, shape []int, values []float32)
	run          run
}

// NewPass returns an empty pass. Its randomness is a function of seed and the serial number that Reset gives it.
func NewPass(seed uint64) *Pass {
	p := &Pass{seed: seed}
	p.Reset(0)
	return p
}

// Reset forgets the batch and keeps its memory for the next, which has the given serial number.
func (p *Pass) Reset(serial uint64) {
	p.serial = serial
	p.graph = gorgonia.NewGraph()
	p.arena.reset()
	p.kept = map[any]any{}
	p.run = newRun()
}

// Floats returns n zeros that live until Reset.
func (p *Pass) Floats(n int) []float32 { return p.arena.floats(n) }

// Reserve tells an unused pass that its values will take so many bytes, so that they get one block of memory.
func (p *Pass) Reserve(bytes int64) { p.arena.first = int(bytes / 4) }

// Bytes returns how much memory the values of a batch have taken at most since the pass was made.
func (p *Pass) Bytes() int64 { return 4 * int64(p.arena.most) }

// Key returns a number that is a function of seed, serial number and place: the key of a counter-based generator.
func (p *Pass) Key(place string) uint64 {
	h := fnv.New64a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:8], p.seed)
	binary.LittleEndian.PutUint64(b[8:], p.serial)
	h.Write(b[:])
	h.Write([]byte(place))
	return h.Sum64()
}

// Rand returns a source that is a function of seed, serial number and place.
func (p *Pass) Rand(place string) rand.Source { k := p.Key(place); return rand.NewPCG(k, p.seed) }

// Put keeps what owner needs for its Backward; Get gives it back, nil if there is nothing.
func (p *Pass) Put(owner, value any) { p.kept[owner] = value }
func (p *Pass) Get(owner any) any    { return p.kept[owner] }

// Watch asks for the values kept under name: see is called for each text.
func (p *Pass) Watch(name string, see func(text int, shape []int, values []float32)) {
	if p.watched == nil {
		p.watched = map[string]func(int, []int, []float32){}
	}
	p.watched[name] = see
}

// Watches tells whether anyone wants to see the values called name (attention, fusion weights).
func (p *Pass) Watches(name string) bool { return p.watched[name] != nil }

// Keep shows values of one text to whoever watches name.
func (p *Pass) Keep(name string, text int, shape []int, values []float32) {
	if see := p.watched[name]; see != nil {
		see(text, shape, values)
	}
}
