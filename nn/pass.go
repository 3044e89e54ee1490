package nn

import (
	"strconv"

	"gorgonia.org/gorgonia"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Precision is that of a product's factors; sums are float32, of Int8 exact.
type Precision = kernel.Precision

// Precisions of products.
const (
	Float32  = kernel.Float32
	BFloat16 = kernel.BFloat16
	Int8     = kernel.Int8 // weights have a scale for each column, the other factor one for each row
)

// Pass is one run of one batch through the model. It owns all activations, so encoders and heads hold only parameters
// and many passes may run at once. Its values live until Reset.
type Pass struct {
	Training bool
	// Recompute makes encoders keep little for Backward, which computes the rest again.
	Recompute bool
	// Precision is that in which encoders multiply by their weights. All else is float32, including the products within
	// attention, which PyTorch's autocast rounds. Training is in Float32 or BFloat16.
	Precision Precision
	// Unpacked makes encoders leave the weights that they keep packed for other passes, of another precision, as they
	// are.
	Unpacked bool
	// Read lists the rows of the last states that are read, ascending, until Reset; nil: all. In evaluation an encoder
	// may leave the others out, and sets them to NaN.
	Read []int
	// Adapter names the changes of its weights that an encoder applies, if it has several; "": none.
	Adapter string

	seed, serial uint64
	graph        *gorgonia.ExprGraph
	arena        arena
	kept, before map[any]any // values of this batch, of the previous one
	observers    map[string][]Observer
	run          run
}

// NewPass returns an empty pass. Its randomness is a function of seed and the serial number that Reset gives it.
func NewPass(seed uint64) *Pass {
	p := &Pass{seed: seed, kept: map[any]any{}, before: map[any]any{}}
	p.Reset(0)
	return p
}

// Reset drops the batch and keeps its memory for the next one, which has the given serial number.
func (p *Pass) Reset(serial uint64) {
	p.serial = serial
	p.graph, p.run = gorgonia.NewGraph(), newRun()
	p.Read = nil
	clear(p.observers)
	p.kept, p.before = p.before, p.kept
	clear(p.kept)
	if p.arena.outgrown() {
		clear(p.before) // its values reference the memory that is freed
	}
	p.arena.reset()
}

// Floats returns n zeros that live until Reset.
func (p *Pass) Floats(n int) []float32 {
	s := p.arena.floats(n)
	clear(s)
	return s
}

// Scratch returns n uninitialised floats that live until Reset.
func (p *Pass) Scratch(n int) []float32 { return p.arena.floats(n) }

// Reserve makes an unused pass allocate at least so many bytes for its values as one block of memory.
func (p *Pass) Reserve(bytes int64) { p.arena.first = int(bytes / 4) }

// Bytes returns the most memory that the values of a batch have taken since the pass was made.
func (p *Pass) Bytes() int64 { return 4 * int64(p.arena.peak) }

// Key returns a number that is a function of seed, serial number and place: the key of a counter-based generator.
func (p *Pass) Key(place string) uint64 { return Key(p.seed, p.serial, place) }

// Key returns the Key of a pass with a seed and a serial number.
func Key(seed, serial uint64, place string) uint64 {
	// FNV-1a over the three, as hash/fnv, which would allocate
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

// Put keeps what owner needs for its Backward; Get returns it, nil if nothing was put.
func (p *Pass) Put(owner, value any) { p.kept[owner] = value }
func (p *Pass) Get(owner any) any    { return p.kept[owner] }

// Reuse returns what owner put before the last Reset, nil if nothing was put: its memory can be used again.
func (p *Pass) Reuse(owner any) any { return p.before[owner] }

// AttentionMaps returns the name under which an encoder emits the attention maps of a layer, counted from 0,
// [heads T T] of a text.
func AttentionMaps(layer int) string { return "attention." + strconv.Itoa(layer) }

// Observer receives the values of one text, which are valid until it returns.
type Observer func(text int, shape []int, values []float32)

// Observe makes observer receive the values of each text that are emitted under name, until Reset.
func (p *Pass) Observe(name string, observer Observer) {
	if p.observers == nil {
		p.observers = map[string][]Observer{}
	}
	p.observers[name] = append(p.observers[name], observer)
}

// Observed reports whether name has an observer.
func (p *Pass) Observed(name string) bool { return len(p.observers[name]) > 0 }

// Emit passes values of one text to the observers of name.
func (p *Pass) Emit(name string, text int, shape []int, values []float32) {
	for _, observer := range p.observers[name] {
		observer(text, shape, values)
	}
}
