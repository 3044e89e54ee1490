package nn

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"gonum.org/v1/gonum/graph"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// run is the state of the runner.
//
// gorgonia's own machines compute in place and its Grad works once a graph, so a pass walks the graph itself: forward
// in the order in which nodes were made, which puts inputs before their readers; backward the other way.
type run struct {
	done   int              // nodes of the graph that have been computed
	inputs int              // made so far: gorgonia merges inputs of one name
	params map[*Param]*Node // made by Param
	behind map[*Node]*Param // the other way
}

func newRun() run { return run{params: map[*Param]*Node{}, behind: map[*Node]*Param{}} }

// Input makes a node of data without copying it.
func (p *Pass) Input(data []float32, shape ...int) *Node {
	n := 1
	for _, d := range shape {
		n *= d
	}
	if n != len(data) {
		panic(fmt.Sprintf("nn: input of %d values and shape %v", len(data), shape))
	}
	p.run.inputs++
	node := gorgonia.NewUniqueNode(gorgonia.In(p.graph), gorgonia.WithType(typeOf(shape)), gorgonia.WithShape(shape...),
		gorgonia.WithName("input "+strconv.Itoa(p.run.inputs)))
	bind(node, valueOf(data, shape))
	return node
}

// Param returns w's node in this pass, for operations of gorgonia's on a parameter.
func (p *Pass) Param(w *Param) *Node {
	if n := p.run.params[w]; n != nil {
		return n
	}
	n := p.Input(w.Data, w.Shape...)
	p.run.params[w], p.run.behind[n] = n, w
	return n
}

// Forward computes the values of all nodes that have none yet, in the order they were made. Values stay as they are
// for the pass's life.
func (p *Pass) Forward() error {
	for ; p.run.done < len(p.graph.AllNodes()); p.run.done++ {
		if err := p.compute(p.graph.AllNodes()[p.run.done]); err != nil {
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

	// gorgonia turns its inputs' headers over while it multiplies, and may return one of its inputs: it gets headers
	// of its own, and what it returns is copied.
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

// ownValue returns v, a result of gorgonia's, in memory of its own, row after row.
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

// Backward adds factor times the loss's gradient to the parameters' in into, and to dAt at the nodes at.
// It leaves the pass as it is.
func (p *Pass) Backward(loss *Node, factor float32, into Gradients, at []*Node, dAt [][]float32) error {
	if !loss.IsScalar() {
		panic(fmt.Sprintf("nn: Backward from %v: a loss is a number", loss))
	}
	mark := p.arena.mark()
	defer p.arena.release(mark)

	// Below, a node's place in nodes is its ID: gorgonia numbers nodes as they are made.
	nodes := p.graph.AllNodes()[:loss.ID()+1]
	b := backward{pass: p, into: into, wanted: make([]bool, len(nodes)), gradients: make([][]float32, len(nodes))}
	b.want(nodes, at)
	b.gradients[loss.ID()] = p.Floats(1)
	b.gradients[loss.ID()][0] = factor
	for i := len(nodes) - 1; i >= 0; i-- {
		if b.gradients[i] == nil || !b.wanted[i] || nodes[i].Op() == nil {
			continue
		}
		if err := b.step(nodes[i]); err != nil {
			return err
		}
	}

	for i := range nodes {
		if w := p.run.behind[nodes[i]]; w != nil && b.gradients[i] != nil && into[w] != nil {
			add(into[w], b.gradients[i])
		}
	}
	for k, n := range at {
		if n.ID() < int64(len(nodes)) && b.gradients[n.ID()] != nil {
			add(dAt[k], b.gradients[n.ID()])
		}
	}
	return nil
}

// backward is one walk from a loss to what it depends on.
type backward struct {
	pass      *Pass
	into      Gradients
	wanted    []bool      // somebody wants the gradient at this node or at one it reads
	gradients [][]float32 // at each node, nil before the first of its readers has added to it
}

func (b *backward) want(nodes []*Node, at []*Node) {
	for _, n := range at {
		if n.ID() < int64(len(nodes)) {
			b.wanted[n.ID()] = true
		}
	}
	for i, n := range nodes {
		if w := b.pass.run.behind[n]; w != nil && b.into[w] != nil {
			b.wanted[i] = true
		}
		if op, ours := n.Op().(*operation); ours {
			for _, w := range op.Params {
				b.wanted[i] = b.wanted[i] || b.into[w] != nil
			}
		}
		children := b.pass.children(n)
		passes := derivatives(n.Op(), len(children))
		for k, c := range children {
			b.wanted[i] = b.wanted[i] || b.wanted[c.ID()] && passes[k]
		}
	}
}

// derivatives tells which of its inputs an operation has a derivative by, or should have.
func derivatives(op gorgonia.Op, inputs int) []bool {
	if op, ok := op.(gorgonia.SDOp); ok && inputs > 0 && instead(op) == "" {
		return op.DiffWRT(inputs)
	}
	return slices.Repeat([]bool{true}, inputs)
}

// instead names what to use for an operation whose derivative gorgonia v0.9.18 gets wrong; "" for all others.
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

// at returns the gradient at a node for a reader to add to, nil if nobody wants it.
func (b *backward) at(n *Node) []float32 {
	if !b.wanted[n.ID()] {
		return nil
	}
	if b.gradients[n.ID()] == nil {
		b.gradients[n.ID()] = b.pass.Floats(max(1, n.Shape().TotalSize()))
	}
	return b.gradients[n.ID()]
}

// step adds a node's part to the gradients at what it reads.
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
		dIn = append(dIn, b.into[w])
	}
	op.Backward(op.withParams(valuesOf(children)), Values(n), b.gradients[n.ID()], dIn)
	return nil
}

// symbolic is step for an operation of gorgonia's: its derivative is new nodes in the graph, which are computed here.
func (b *backward) symbolic(n *Node, children []*Node) error {
	op, ok := n.Op().(gorgonia.SDOp)
	if !ok {
		return fmt.Errorf("nn: gorgonia has no derivative of %v", n)
	}
	if better := instead(op); better != "" {
		return fmt.Errorf("nn: gorgonia's derivative of %v is wrong; %s has a right one", n, better)
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

// Values returns the values of a node after Forward, row-major; a number is one value.
func Values(n *Node) []float32 {
	v := n.Value()
	if v == nil && n.Shape().TotalSize() == 0 && !n.IsScalar() {
		return nil
	}
	if v == nil {
		panic(fmt.Sprintf("nn: values of %v before Forward", n))
	}
	return floats(v)
}

func valuesOf(nodes []*Node) [][]float32 {
	values := make([][]float32, len(nodes))
	for i, n := range nodes {
		values[i] = Values(n)
	}
	return values
}

// children returns the nodes that n reads.
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

// floats returns the float32 values of v without copying them.
func floats(v gorgonia.Value) []float32 {
	switch v := v.(type) {
	case *gorgonia.F32:
		return unsafe.Slice((*float32)(v), 1)
	case *tensor.Dense:
		if v.Dtype() == tensor.Float32 {
			return v.Float32s()
		}
	}
	panic(fmt.Sprintf("nn: %v where float32 values are wanted", v.Dtype()))
}

// valueOf makes gorgonia's value of data without copying it; nil if there is none, which gorgonia has no value for.
func valueOf(data []float32, shape []int) gorgonia.Value {
	switch {
	case len(shape) == 0:
		return (*gorgonia.F32)(&data[0])
	case len(data) == 0:
		return nil
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(data))
}

// bind gives a node its value, if it has one.
func bind(n *Node, v gorgonia.Value) {
	if v == nil {
		return
	}
	if err := gorgonia.UnsafeLet(n, v); err != nil {
		panic("nn: " + err.Error())
	}
}

func add(to, from []float32) {
	for i, x := range from {
		to[i] += x
	}
}
