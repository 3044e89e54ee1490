package nn

import (
	"fmt"
	"strconv"

	"gonum.org/v1/gonum/graph"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// run is the state of the runner.
//
// gorgonia's own machines compute in place and its Grad works once per graph, so a pass walks the graph itself: forward
// in the order in which nodes were made, which puts inputs before their consumers; backward in reverse.
type run struct {
	done   int              // nodes of the graph that have been computed
	inputs int              // made so far, used as names: gorgonia merges inputs of the same name
	params map[*Param]*Node // made by Param
	behind map[*Node]*Param // inverse of params
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

// Forward computes the values of all nodes that have none yet, in the order they were made. Values do not change until
// Reset.
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
