package nn

import (
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Tanh returns the hyperbolic tangent of each element.
func Tanh(x *Node) *Node {
	return elementwise("tanh", x,
		func(v float64) float64 { return math.Tanh(v) },
		func(_, y float64) float64 { return 1 - y*y })
}

// GELU returns x·Φ(x), Φ the normal distribution's (Hendrycks & Gimpel 2016), by the error function as BERT does.
func GELU(x *Node) *Node {
	return elementwise("GELU", x,
		func(v float64) float64 { return v * normal(v) },
		func(v, _ float64) float64 {
			return normal(v) + v*math.Exp(-v*v/2)/math.Sqrt(2*math.Pi)
		})
}

func normal(x float64) float64 { return 0.5 * (1 + math.Erf(x/math.Sqrt2)) }

const elementTile = 1 << 12 // floats, some 50 µs of exponentials

// elementwise is y = f(x), derivative is dy/dx as a function of x and y.
func elementwise(name string, x *Node, f func(float64) float64, derivative func(x, y float64) float64) *Node {
	return Operation{
		Name: name, Shape: x.Shape(),
		Forward: func(in [][]float32, out []float32) {
			kernel.Parallel(len(out), elementTile, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					out[i] = float32(f(float64(in[0][i])))
				}
			})
		},
		Backward: func(in [][]float32, out, dOut []float32, dIn [][]float32) {
			kernel.Parallel(len(dIn[0]), elementTile, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					dIn[0][i] += dOut[i] * float32(derivative(float64(in[0][i]), float64(out[i])))
				}
			})
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

// Sum returns a + b, of one shape.
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
			copy(out, in[0])
			for i := range n {
				add(out[i*d:i*d+d], in[1])
			}
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			if dIn[0] != nil {
				add(dIn[0], dOut)
			}
			if dIn[1] != nil {
				addRows(dIn[1], dOut)
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
