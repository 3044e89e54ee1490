package nn

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Param is one learned tensor. Its name is its place in the tree of parameters and its key in a checkpoint.
type Param struct {
	Name   string
	Shape  []int
	Data   []float32 // row-major; of a frozen parameter it may be read-only memory, of a quantized model's nil
	Decay  bool      // weight decay applies: true for matrices, false for biases, norms and other vectors
	Frozen bool      // takes no gradient and is not changed by the optimizer
	Later  bool      // takes no part in updates yet, as if Frozen: gradual unfreezing has not reached it
	Table  bool      // its rows are looked up by number, as embeddings are: no layer multiplies its input by it

	version uint64
}

// rowLength returns the number of values of one row: the product of all dimensions but the first, or the length of a
// vector.
func (w *Param) rowLength() int {
	if len(w.Shape) > 1 {
		return sizeOf(w.Shape[1:])
	}
	return sizeOf(w.Shape)
}

// Size returns the number of values, by the shape.
func (w *Param) Size() int { return sizeOf(w.Shape) }

func sizeOf(shape []int) int {
	size := 1
	for _, d := range shape {
		size *= d
	}
	return size
}

// Learns reports whether w takes a gradient, now or later.
func (w *Param) Learns() bool { return !w.Frozen }

// LearnsNow reports whether w takes a gradient in this step.
func (w *Param) LearnsNow() bool { return !w.Frozen && !w.Later }

// Changed must be called after a change of values that were already used: what was derived from them is computed again.
func (w *Param) Changed() { w.version++ }

// Version counts the calls of Changed.
func (w *Param) Version() uint64 { return w.version }

// Params is a subtree of the tree of parameters. In returns a subtree below it; Normal, Table, Uniform, Zeros and Ones
// make parameters in it. A parameter's initial values are a function of the tree's seed and the parameter's name alone.
type Params struct {
	tree  *tree
	path  string
	unset bool // parameters get no values
}

type tree struct {
	seed   uint64
	params []*Param
	byName map[string]*Param
}

// NewParams returns the root of an empty tree.
func NewParams(seed uint64) Params {
	return Params{tree: &tree{seed: seed, byName: map[string]*Param{}}}
}

// In returns the subtree called name below p.
func (p Params) In(name string) Params { return Params{p.tree, join(p.path, name), p.unset} }

// WithoutValues returns the same subtree, in which parameters are made with nil Data, for callers that set Data to
// values from a file.
func (p Params) WithoutValues() Params { p.unset = true; return p }

// Apart returns the same subtree of a tree of its own, in which parameters have the initial values of p's.
func (p Params) Apart() Params {
	p.tree = &tree{seed: p.tree.seed, byName: map[string]*Param{}}
	return p
}

// Path returns the path of p in the tree, its names joined by dots; the root's is empty.
func (p Params) Path() string { return p.path }

// Normal makes a parameter drawn from a normal distribution of mean 0 and standard deviation std. It decays if it has
// two dimensions or more.
func (p Params) Normal(name string, std float64, shape ...int) *Param {
	return p.draw(name, shape, func(r *rand.Rand) float64 { return r.NormFloat64() * std })
}

// Table makes a table of embeddings [rows width], initialised as by Normal.
func (p Params) Table(name string, std float64, rows, width int) *Param {
	w := p.Normal(name, std, rows, width)
	w.Table = true
	return w
}

// Uniform makes a parameter drawn evenly from -bound to bound.
func (p Params) Uniform(name string, bound float64, shape ...int) *Param {
	return p.draw(name, shape, func(r *rand.Rand) float64 { return (2*r.Float64() - 1) * bound })
}

func (p Params) draw(name string, shape []int, next func(r *rand.Rand) float64) *Param {
	w := p.make(name, shape)
	if p.unset {
		return w
	}
	r := rand.New(rand.NewPCG(p.tree.seed, hashOf(w.Name)))
	for i := range w.Data {
		w.Data[i] = float32(next(r))
	}
	return w
}

// Zeros makes a parameter of zeros.
func (p Params) Zeros(name string, shape ...int) *Param { return p.make(name, shape) }

// Ones makes a parameter of ones.
func (p Params) Ones(name string, shape ...int) *Param {
	w := p.make(name, shape)
	for i := range w.Data {
		w.Data[i] = 1
	}
	return w
}

// All returns the parameters at and below p, in the order they were made.
func (p Params) All() []*Param {
	var all []*Param
	for _, w := range p.tree.params {
		if p.path == "" || len(w.Name) > len(p.path) && w.Name[:len(p.path)] == p.path && w.Name[len(p.path)] == '.' {
			all = append(all, w)
		}
	}
	return all
}

func (p Params) make(name string, shape []int) *Param {
	n := 1
	for _, d := range shape {
		if d <= 0 || n > math.MaxInt32/d {
			panic(fmt.Sprintf("nn: parameter %s of shape %v", join(p.path, name), shape))
		}
		n *= d
	}
	w := &Param{Name: join(p.path, name), Shape: append([]int(nil), shape...), Decay: len(shape) > 1}
	if !p.unset {
		w.Data = kernel.Floats(n)
	}
	if p.tree.byName[w.Name] != nil {
		panic("nn: duplicate parameter " + w.Name)
	}
	p.tree.byName[w.Name] = w
	p.tree.params = append(p.tree.params, w)
	return w
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}

func hashOf(s string) uint64 {
	h := fnv.New64a()
	h.Write([]byte(s))
	return h.Sum64()
}

// ParamState is a parameter and what the optimizer keeps of it.
type ParamState struct {
	Name   string
	Values []float32
	OptimizerState
}

// OptimizerState is what an optimizer keeps of a parameter.
type OptimizerState struct {
	Steps int    // updates of the parameter
	Slots []Slot // always the same, in the same order; none before the first update
}

// Slot is a vector that an optimizer keeps of a parameter, such as the running mean of its gradient.
type Slot struct {
	Name   string
	Values []float32
}

type slotSize struct {
	name   string
	values int
}

// CheckState returns an error if the names and sizes in a state are not those of params, in their order.
func CheckState(params []*Param, state []ParamState) error {
	for i := range max(len(params), len(state)) {
		switch {
		case i >= len(state):
			return fmt.Errorf("parameter %q not found", params[i].Name)
		case i >= len(params):
			return fmt.Errorf("unexpected parameter %q", state[i].Name)
		case state[i].Name != params[i].Name:
			return fmt.Errorf("unexpected parameter %q; want %q", state[i].Name, params[i].Name)
		case len(state[i].Values) != len(params[i].Data):
			return fmt.Errorf("parameter %q has %d values; want %d",
				state[i].Name, len(state[i].Values), len(params[i].Data))
		}
	}
	return nil
}

// checkSlots returns an error if a state is not one of those slots, or of no update.
func checkSlots(s OptimizerState, slots []slotSize) error {
	if s.Steps == 0 && len(s.Slots) == 0 {
		return nil
	}
	if s.Steps < 1 || len(s.Slots) != len(slots) || len(slots) == 0 {
		return fmt.Errorf("%d updates and %d slots of the optimizer's state; want %d slots after an update",
			s.Steps, len(s.Slots), len(slots))
	}
	for i, want := range slots {
		if slot := s.Slots[i]; slot.Name != want.name || len(slot.Values) != want.values {
			return fmt.Errorf("slot %q of the optimizer's state has %d values; want %q with %d",
				slot.Name, len(slot.Values), want.name, want.values)
		}
	}
	return nil
}

// Copies copies values into memory that it uses again: new memory takes longer to get than to fill. A nil Copies makes
// new copies.
type Copies struct {
	blocks    []copiesBlock
	beside    int            // values for which no block had space
	allocated chan []float32 // by Prepare, if it is not nil
}

type copiesBlock struct {
	memory []float32
	used   int
}

// Prepare allocates memory for n values of copies in the background. It is called before there are copies.
func (c *Copies) Prepare(n int) {
	const page = 1024 // values
	allocated := make(chan []float32, 1)
	c.allocated = allocated
	go func() {
		memory := make([]float32, n)
		for i := 0; i < n; i += page {
			memory[i] = 0 // the system provides a page when it is first written
		}
		allocated <- memory
	}()
}

// Reuse allows the memory of all copies to be overwritten by the next ones.
func (c *Copies) Reuse() {
	if c.beside > 0 {
		c.blocks = append(c.blocks, copiesBlock{memory: make([]float32, c.beside)})
	}
	for i := range c.blocks {
		c.blocks[i].used = 0
	}
	c.beside = 0
}

// Floats returns n values, which are not zeros where memory is used again.
func (c *Copies) Floats(n int) []float32 {
	if c == nil {
		return make([]float32, n)
	}
	if c.allocated != nil {
		c.blocks, c.allocated = []copiesBlock{{memory: <-c.allocated}}, nil
	}
	for i := range c.blocks {
		if b := &c.blocks[i]; n <= len(b.memory)-b.used {
			b.used += n
			return b.memory[b.used-n : b.used : b.used]
		}
	}
	c.beside += n
	return make([]float32, n)
}

// Clone returns a copy of x, nil of nil.
func (c *Copies) Clone(x []float32) []float32 {
	if c == nil || x == nil {
		return slices.Clone(x)
	}
	y := c.Floats(len(x))
	copy(y, x)
	return y
}
