package nn

import (
	"fmt"
	"unsafe"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

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
