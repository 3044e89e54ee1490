package nn

import (
	"encoding/binary"
	"fmt"
	"hash"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/chewxy/hm"
	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Node is a value in a pass's graph: gorgonia's own, so its operations apply. Take rows by GatherRows rather than by
// gorgonia.Slice, which hashes starts modulo 256: of two slices whose starts differ by 256, the second returns the
// first's rows.
type Node = gorgonia.Node

// Operation is a differentiable function of our own.
type Operation struct {
	Name   string
	Shape  []int    // of the result; nil for a scalar
	Params []*Param // parameters that it reads: they follow the nodes in in and dIn
	// Forward fills out, which is zero at first.
	Forward func(in [][]float32, out []float32)
	// Backward adds to dIn, of which dIn[i] is nil where that gradient is not required, but not all are. An operation
	// without it passes no gradient.
	Backward func(in [][]float32, out, dOut []float32, dIn [][]float32)
}

// Apply makes the node of the operation's result in the graph of its inputs, of which there is at least one.
// It panics with the operation's name on wrong shapes.
func (o Operation) Apply(in ...*Node) *Node {
	if len(in) == 0 {
		panic("nn: " + o.Name + " of nothing")
	}
	n := 1
	for _, d := range o.Shape {
		if d < 0 || d > 0 && n > math.MaxInt32/d {
			panic(fmt.Sprintf("nn: %s gives the shape %v", o.Name, o.Shape))
		}
		n *= d
	}
	op := &operation{Operation: o, size: n, serial: serials.Add(1)}
	var graph *gorgonia.ExprGraph
	for _, x := range in {
		op.in = append(op.in, x.Type())
		switch {
		case x.Graph() == nil: // a constant, which is in no graph yet
		case graph == nil:
			graph = x.Graph()
		case x.Graph() != graph:
			panic("nn: " + o.Name + " of nodes from two passes")
		}
	}
	if graph == nil {
		panic("nn: " + o.Name + " of constants alone")
	}
	return gorgonia.NewUniqueNode(gorgonia.In(graph), gorgonia.WithType(typeOf(o.Shape)), gorgonia.WithOp(op),
		gorgonia.WithChildren(append(gorgonia.Nodes(nil), in...)), gorgonia.WithShape(o.Shape...))
}

// operation is an Operation with gorgonia's interface.
type operation struct {
	Operation
	size   int       // of the result
	in     []hm.Type // of the input nodes
	serial uint32
}

// gorgonia merges nodes whose operations have the same hash: each of ours has a number of its own.
var serials atomic.Uint32

func (o *operation) Arity() int            { return len(o.in) }
func (o *operation) ReturnsPtr() bool      { return true }
func (o *operation) CallsExtern() bool     { return false }
func (o *operation) OverwritesInput() int  { return -1 }
func (o *operation) Hashcode() uint32      { return o.serial }
func (o *operation) WriteHash(h hash.Hash) { binary.Write(h, binary.LittleEndian, o.serial) }
func (o *operation) String() string        { return o.Name }

// Type builds a new type each time: gorgonia modifies it.
func (o *operation) Type() hm.Type {
	return hm.NewFnType(append(append([]hm.Type(nil), o.in...), typeOf(o.Shape))...)
}

func (o *operation) InferShape(...gorgonia.DimSizer) (tensor.Shape, error) {
	return append(tensor.Shape(nil), o.Shape...), nil
}

// Do is for gorgonia's machines; a pass runs the operation itself.
func (o *operation) Do(in ...gorgonia.Value) (gorgonia.Value, error) {
	data := make([][]float32, 0, len(in)+len(o.Params))
	for _, v := range in {
		data = append(data, floats(v))
	}
	out := make([]float32, o.size)
	o.Forward(o.withParams(data), out)
	return valueOf(out, o.Shape), nil
}

func (o *operation) withParams(in [][]float32) [][]float32 {
	for _, w := range o.Params {
		in = append(in, w.Data)
	}
	return in
}

func typeOf(shape []int) hm.Type {
	if len(shape) == 0 {
		return tensor.Float32
	}
	return gorgonia.TensorType{Dims: len(shape), Of: tensor.Float32}
}

// Values returns the values of a node after Forward, row-major; a scalar is one value.
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
	panic(fmt.Sprintf("nn: want float32 values, have %v", v.Dtype()))
}

// valueOf returns gorgonia's value of data without copying it; nil if data is empty, for which gorgonia has no value.
func valueOf(data []float32, shape []int) gorgonia.Value {
	switch {
	case len(shape) == 0:
		return (*gorgonia.F32)(&data[0])
	case len(data) == 0:
		return nil
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(data))
}

// bind sets a node's value, unless it is nil.
func bind(n *Node, v gorgonia.Value) {
	if v == nil {
		return
	}
	if err := gorgonia.UnsafeLet(n, v); err != nil {
		panic("nn: " + err.Error())
	}
}
