package nn

import (
	"fmt"
	"slices"
	"strings"

	"gorgonia.org/gorgonia"
)

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

	for n, w := range p.run.behind {
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
		if w := b.pass.run.behind[n]; w != nil && b.into.Has(w) {
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
	return n.Op() == nil && n.ID() < int64(len(b.gradients)) && b.pass.run.behind[n] == nil
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

// step adds a node's contribution to the gradients at its inputs.
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

func add(to, from []float32) {
	for i, x := range from {
		to[i] += x
	}
}
