package nn

import "gorgonia.org/gorgonia"

// Node is a value in a pass's graph: gorgonia's own, so its operations apply.
type Node = gorgonia.Node

// Operation is a differentiable function of our own.
type Operation struct {
	Name   string
	Shape  []int    // of the result; nil: a number
	Params []*Param // parameters it reads: they stand behind the nodes in in and dIn
	// Forward fills out, which is zero before.
	Forward func(in [][]float32, out []float32)
	// Backward adds to dIn; dIn[i] is nil where nobody wants it.
	Backward func(in [][]float32, out, dOut []float32, dIn [][]float32)
}

// Apply makes the node of the operation's result in the graph of its inputs, of which there is at least one.
// It panics with the operation's name on wrong shapes.
func (o Operation) Apply(in ...*Node) *Node { panic("to be written") }

// Input makes a node of data without copying it.
func (p *Pass) Input(data []float32, shape ...int) *Node { panic("to be written") }

// Param returns w's node in this pass, for operations of gorgonia's on a parameter.
func (p *Pass) Param(w *Param) *Node { panic("to be written") }

// Forward computes the values of all nodes that have none yet, in the order they were made. Values stay as they are
// for the pass's life.
func (p *Pass) Forward() error { panic("to be written") }

// Backward adds factor times the loss's gradient to the parameters' in into, and to dAt at the nodes at.
// It leaves the pass as it is.
func (p *Pass) Backward(loss *Node, factor float32, into Gradients, at []*Node, dAt [][]float32) error {
	panic("to be written")
}

// Values returns the values of a node after Forward, row-major; a number is one value.
func Values(n *Node) []float32 { panic("to be written") }

// run is the state of the runner: which nodes are parameters, inputs, what has been computed.
type run struct{}

func newRun() run { return run{} }
