package nn

import (
	"fmt"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Tanh returns the hyperbolic tangent of each element.
func Tanh(x *Node) *Node {
	return Operation{
		Name: "tanh", Shape: x.Shape(),
		Forward: func(in [][]float32, out []float32) { kernel.Tanh(out, in[0]) },
		Backward: func(_ [][]float32, y, dOut []float32, dIn [][]float32) {
			for i, v := range y {
				dIn[0][i] += dOut[i] * (1 - v*v)
			}
		},
	}.Apply(x)
}

// GELU returns x·Φ(x), Φ the normal distribution function (Hendrycks & Gimpel 2016), by the error function as in BERT.
func GELU(x *Node) *Node {
	return Operation{
		Name: "GELU", Shape: x.Shape(),
		Forward: func(in [][]float32, out []float32) { kernel.GELU(out, in[0]) },
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			kernel.GELUBackward(dIn[0], in[0], dOut)
		},
	}.Apply(x)
}

// Scale returns x times a constant.
func Scale(x *Node, by float32) *Node {
	return Operation{
		Name: "scale", Shape: x.Shape(),
		Forward:  func(in [][]float32, out []float32) { addScaled(out, in[0], by) },
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) { addScaled(dIn[0], dOut, by) },
	}.Apply(x)
}

// Sum returns a + b, which have the same shape.
func Sum(a, b *Node) *Node {
	if !a.Shape().Eq(b.Shape()) {
		panic(fmt.Sprintf("nn: sum of %v and %v", a.Shape(), b.Shape()))
	}
	return Operation{
		Name: "sum", Shape: a.Shape(),
		Forward: func(in [][]float32, out []float32) {
			copy(out, in[0])
			add(out, in[1])
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			for _, d := range dIn {
				if d != nil {
					add(d, dOut)
				}
			}
		},
	}.Apply(a, b)
}

// AddRow adds row [1 D] to each row of x [N D].
func AddRow(x, row *Node) *Node {
	d := row.Shape().TotalSize()
	n := rowsOf("add row", x, d)
	return Operation{
		Name: "add row", Shape: []int{n, d},
		Forward: func(in [][]float32, out []float32) {
			kernel.Repeat(out, in[1])
			kernel.Add(out, in[0])
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			if dIn[0] != nil {
				add(dIn[0], dOut)
			}
			if dIn[1] != nil {
				kernel.SumRows(dIn[1], dOut)
			}
		},
	}.Apply(x, row)
}

// ScaleRows multiplies each row of x [N D] by its own factor: factors [N 1].
func ScaleRows(x, factors *Node) *Node {
	n := rowsOf("scale rows", factors, 1)
	d := x.Shape()[1]
	if rowsOf("scale rows", x, d) != n {
		panic(fmt.Sprintf("nn: scale rows %v by %d factors", x.Shape(), n))
	}
	return Operation{
		Name: "scale rows", Shape: []int{n, d},
		Forward: func(in [][]float32, out []float32) {
			for i := range n {
				addScaled(out[i*d:i*d+d], in[0][i*d:i*d+d], in[1][i])
			}
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i := range n {
				row := dOut[i*d : i*d+d]
				if dIn[0] != nil {
					addScaled(dIn[0][i*d:i*d+d], row, in[1][i])
				}
				if dIn[1] != nil {
					dIn[1][i] += dot(in[0][i*d:i*d+d], row)
				}
			}
		},
	}.Apply(x, factors)
}

// Sigmoid returns 1/(1 + exp(-x)) of each element.
func Sigmoid(x *Node) *Node { return Between(x, 0, 1) }

// Between returns low + (high-low)·sigmoid(x) of each element.
func Between(x *Node, low, high float32) *Node {
	return Operation{
		Name: "sigmoid", Shape: x.Shape(),
		Forward: func(in [][]float32, out []float32) {
			for i, v := range in[0] {
				out[i] = low + (high-low)*float32(sigmoid(float64(v)))
			}
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, v := range in[0] {
				s := sigmoid(float64(v))
				dIn[0][i] += dOut[i] * (high - low) * float32(s*(1-s))
			}
		},
	}.Apply(x)
}

// Softplus returns log(1 + exp(x)) + least of each element.
func Softplus(x *Node, least float32) *Node {
	return Operation{
		Name: "softplus", Shape: x.Shape(),
		Forward: func(in [][]float32, out []float32) {
			for i, v := range in[0] {
				out[i] = least + float32(softplus(float64(v)))
			}
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, v := range in[0] {
				dIn[0][i] += dOut[i] * float32(sigmoid(float64(v)))
			}
		},
	}.Apply(x)
}
