package nn

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/gonum/graph"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

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

	seed, serial uint64
	graph        *gorgonia.ExprGraph
	arena        arena
	kept, before map[any]any // values of this batch, of the previous one
	observers    map[string][]Observer

	done   int              // nodes of the graph that have been computed
	inputs int              // made so far, used as names: gorgonia merges inputs of the same name
	params map[*Param]*Node // made by Param
	behind map[*Node]*Param // inverse of params
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
	p.graph, p.done, p.inputs = gorgonia.NewGraph(), 0, 0
	p.params, p.behind = map[*Param]*Node{}, map[*Node]*Param{}
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
	if n < 1<<18 {
		clear(s)
	} else {
		kernel.Clear(s) // by all threads
	}
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

func (a *arena) size() int {
	held := 0
	for _, b := range a.blocks {
		held += len(b)
	}
	return held
}

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

type arenaMark struct{ block, used, allocated int }

func (a *arena) mark() arenaMark { return arenaMark{a.block, a.used, a.allocated} }

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

// gorgonia's own machines compute in place and its Grad works once per graph, so a pass walks the graph itself: forward
// in the order in which nodes were made, which puts inputs before their consumers; backward in reverse.

// Input makes a node of data without copying it.
func (p *Pass) Input(data []float32, shape ...int) *Node {
	if sizeOf(shape) != len(data) {
		panic(fmt.Sprintf("nn: input of %d values and shape %v", len(data), shape))
	}
	p.inputs++
	node := gorgonia.NewUniqueNode(gorgonia.In(p.graph), gorgonia.WithType(typeOf(shape)), gorgonia.WithShape(shape...),
		gorgonia.WithName("input "+strconv.Itoa(p.inputs)))
	bind(node, valueOf(data, shape))
	return node
}

// Param returns w's node in this pass, for operations of gorgonia's on a parameter.
func (p *Pass) Param(w *Param) *Node {
	if n := p.params[w]; n != nil {
		return n
	}
	n := p.Input(w.Data, w.Shape...)
	p.params[w], p.behind[n] = n, w
	return n
}

// Forward computes the values of all nodes that have none yet, in the order they were made. Values do not change until
// Reset.
func (p *Pass) Forward() error {
	for ; p.done < len(p.graph.AllNodes()); p.done++ {
		if err := p.compute(p.graph.AllNodes()[p.done]); err != nil {
			return err
		}
	}
	return nil
}

func (p *Pass) compute(n *Node) error {
	if n.Value() != nil || n.Op() == nil {
		return nil
	}
	children := p.children(n)
	if op, ours := n.Op().(*operation); ours {
		if op.size > 0 {
			out := p.Floats(op.size)
			op.Forward(op.withParams(valuesOf(children)), out)
			bind(n, valueOf(out, op.Shape))
		}
		return nil
	}

	// gorgonia transposes its inputs' headers while it multiplies, and may return one of its inputs: it receives
	// headers of its own, and its result is copied.
	in := make([]gorgonia.Value, len(children))
	for i, c := range children {
		in[i] = c.Value()
		if in[i] == nil {
			return fmt.Errorf("nn: %v reads %v, which has no values", n, c)
		}
		if t, ok := in[i].(*tensor.Dense); ok {
			in[i] = t.ShallowClone()
		}
	}
	v, err := n.Op().Do(in...)
	if err != nil {
		return fmt.Errorf("nn: %v: %w", n, err)
	}
	if v == nil { // a statement
		return nil
	}
	if v, err = ownValue(v, n.Shape()); err != nil {
		return fmt.Errorf("nn: %v: %w", n, err)
	}
	return gorgonia.UnsafeLet(n, v)
}

// ownValue returns a copy of v, a result of gorgonia's, in row-major order.
func ownValue(v gorgonia.Value, shape tensor.Shape) (gorgonia.Value, error) {
	if t, ok := v.(*tensor.Dense); ok && t.RequiresIterator() {
		v = t.Materialize().(*tensor.Dense)
	}
	if v.Dtype() != tensor.Float32 {
		return gorgonia.CloneValue(v)
	}
	data := floats(v)
	if len(data) != max(1, shape.TotalSize()) {
		return nil, fmt.Errorf("%d values for the shape %v", len(data), shape)
	}
	return valueOf(append([]float32(nil), data...), shape), nil
}

func (p *Pass) children(n *Node) []*Node {
	if n.Op() == nil {
		return nil
	}
	from := graph.NodesOf(p.graph.From(n.ID()))
	children := make([]*Node, len(from))
	for i, c := range from {
		children[i] = c.(*Node)
	}
	return children
}

// Backward adds factor times the loss's gradient to the parameters' in into, and to dAt at the nodes at.
// It leaves the pass as it is.
func (p *Pass) Backward(loss *Node, factor float32, into Gradients, at []*Node, dAt [][]float32) error {
	if !loss.IsScalar() {
		panic(fmt.Sprintf("nn: Backward from %v: a loss is a scalar", loss))
	}
	if err := p.Forward(); err != nil { // these values keep their memory; those computed below do not
		return err
	}
	mark := p.arena.mark()
	defer p.arena.release(mark)

	// Below, a node's index in nodes is its ID: gorgonia numbers nodes in the order they are made.
	nodes := p.graph.AllNodes()[:loss.ID()+1]
	b := backward{pass: p, into: into, required: make([]bool, len(nodes)), gradients: make([][]float32, len(nodes))}
	b.require(nodes, at)
	for k, n := range at {
		switch {
		case slices.Contains(at[:k], n):
			panic(fmt.Sprintf("nn: Backward: duplicate node %v", n))
		case b.isBorder(n):
			b.gradients[n.ID()] = dAt[k]
		}
	}
	if d := b.at(loss); d != nil {
		d[0] += factor
	}
	for i := len(nodes) - 1; i >= 0; i-- {
		if b.gradients[i] == nil || !b.required[i] || nodes[i].Op() == nil {
			continue
		}
		if err := b.step(nodes[i]); err != nil {
			return err
		}
	}

	for n, w := range p.behind {
		if d := b.found(n); d != nil && into.Has(w) {
			add(into.Of(w), d)
		}
	}
	for k, n := range at {
		if d := b.found(n); d != nil && !b.isBorder(n) {
			add(dAt[k], d)
		}
	}
	return nil
}

// backward is one traversal from a loss to the nodes that it depends on.
type backward struct {
	pass      *Pass
	into      Gradients
	required  []bool      // the gradient is required at this node or at one of its inputs
	gradients [][]float32 // at each node, nil before the first of its consumers has added to it
}

func (b *backward) require(nodes []*Node, at []*Node) {
	for _, n := range at {
		if n.ID() < int64(len(nodes)) {
			b.required[n.ID()] = true
		}
	}
	for i, n := range nodes {
		if w := b.pass.behind[n]; w != nil && b.into.Has(w) {
			b.required[i] = true
		}
		if op, ours := n.Op().(*operation); ours {
			for _, w := range op.Params {
				b.required[i] = b.required[i] || b.into.Has(w)
			}
		}
		children := b.pass.children(n)
		passes := derivatives(n.Op(), len(children))
		for k, c := range children {
			b.required[i] = b.required[i] || b.required[c.ID()] && passes[k]
		}
	}
}

// found returns the gradient at a node, nil if there is none.
func (b *backward) found(n *Node) []float32 {
	if n.ID() >= int64(len(b.gradients)) {
		return nil
	}
	return b.gradients[n.ID()]
}

// isBorder reports whether n is an input, but not a parameter. No gradient goes behind it, so its consumers add to the
// caller's slice directly, without a copy, which for hidden states is large.
func (b *backward) isBorder(n *Node) bool {
	return n.Op() == nil && n.ID() < int64(len(b.gradients)) && b.pass.behind[n] == nil
}

// derivatives reports for each input of an operation whether it has, or should have, a derivative by it.
func derivatives(op gorgonia.Op, inputs int) []bool {
	if op, ours := op.(*operation); ours && op.Backward == nil {
		return make([]bool, inputs)
	}
	if op, ok := op.(gorgonia.SDOp); ok && inputs > 0 && instead(op) == "" {
		return op.DiffWRT(inputs)
	}
	return slices.Repeat([]bool{true}, inputs)
}

// instead names the replacement of an operation whose derivative is wrong in gorgonia v0.9.18; "" for all others.
func instead(op gorgonia.Op) string {
	name, _, _ := strings.Cut(op.String(), "(")
	switch name {
	case "log2":
		return "Log"
	case "invSqrt":
		return "Inverse of Sqrt"
	case "a ⊗ b":
		return "Mul of a column by a row"
	case "At":
		return "Slice"
	}
	return ""
}

// at returns the gradient at a node, to which a consumer adds, nil if it is not required.
func (b *backward) at(n *Node) []float32 {
	if !b.required[n.ID()] {
		return nil
	}
	if b.gradients[n.ID()] == nil {
		b.gradients[n.ID()] = b.pass.Floats(max(1, n.Shape().TotalSize()))
	}
	return b.gradients[n.ID()]
}

func (b *backward) step(n *Node) error {
	children := b.pass.children(n)
	op, ours := n.Op().(*operation)
	if !ours {
		return b.symbolic(n, children)
	}
	if op.size == 0 {
		return nil
	}
	dIn := make([][]float32, 0, len(children)+len(op.Params))
	for _, c := range children {
		dIn = append(dIn, b.at(c))
	}
	for _, w := range op.Params {
		dIn = append(dIn, b.into.Of(w))
	}
	if op.Backward == nil || !slices.ContainsFunc(dIn, func(d []float32) bool { return d != nil }) {
		return nil // the gradient at this node is required, that at its inputs is not
	}
	op.Backward(op.withParams(valuesOf(children)), Values(n), b.gradients[n.ID()], dIn)
	return nil
}

// symbolic is step for an operation of gorgonia's. Its derivative is new nodes in the graph, which are computed here.
func (b *backward) symbolic(n *Node, children []*Node) error {
	op, ok := n.Op().(gorgonia.SDOp)
	if !ok {
		return fmt.Errorf("nn: gorgonia has no derivative of %v", n)
	}
	if better := instead(op); better != "" {
		return fmt.Errorf("nn: gorgonia's derivative of %v is wrong; use %s", n, better)
	}
	dOut := b.pass.Input(append([]float32(nil), b.gradients[n.ID()]...), n.Shape()...)
	byInput, err := op.SymDiff(children, n, dOut)
	if err != nil {
		return fmt.Errorf("nn: derivative of %v: %w", n, err)
	}
	if err := b.pass.Forward(); err != nil {
		return fmt.Errorf("nn: derivative of %v: %w", n, err)
	}
	passes := derivatives(op, len(children))
	for i, c := range children {
		dIn := b.at(c)
		if dIn == nil || !passes[i] || byInput[i] == nil {
			continue
		}
		d := Values(byInput[i])
		if len(d) != len(dIn) {
			return fmt.Errorf("nn: derivative of %v by %v has %d values for %d", n, c, len(d), len(dIn))
		}
		add(dIn, d)
	}
	return nil
}
