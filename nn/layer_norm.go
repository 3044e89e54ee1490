package nn

import (
	"math"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// LayerNorm is γ·(x - mean)/√(variance + ε) + β over each row (Ba et al. 2016).
type LayerNorm struct {
	Weight, Bias *Param // γ and β, [D]
	Epsilon      float64
}

// NewLayerNorm makes the parameters "weight", one, and "bias", zero.
func NewLayerNorm(params Params, width int, epsilon float64) *LayerNorm {
	return &LayerNorm{Weight: params.Ones("weight", width), Bias: params.Zeros("bias", width), Epsilon: epsilon}
}

const normTile = 32 // rows

// Apply normalises rows [N D].
func (l *LayerNorm) Apply(x *Node) *Node {
	d := l.Weight.Shape[0]
	n := rowsOf("layer norm", x, d)
	return Operation{
		Name: "layer norm", Shape: []int{n, d}, Params: []*Param{l.Weight, l.Bias},
		Forward: func(in [][]float32, out []float32) {
			kernel.Parallel(n, normTile, func(lo, hi int) {
				for i := lo; i < hi; i++ {
					row, y := in[0][i*d:i*d+d], out[i*d:i*d+d]
					mean, scale := l.moments(row)
					for j, v := range row {
						y[j] = (v-mean)*scale*in[1][j] + in[2][j]
					}
				}
			})
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i := range n {
				row, dy := in[0][i*d:i*d+d], dOut[i*d:i*d+d]
				if dIn[0] != nil {
					l.rowBackward(dIn[0][i*d:i*d+d], row, dy, in[1])
				}
				mean, scale := l.moments(row)
				for j, v := range row {
					if dIn[1] != nil {
						dIn[1][j] += dy[j] * (v - mean) * scale
					}
					if dIn[2] != nil {
						dIn[2][j] += dy[j]
					}
				}
			}
		},
	}.Apply(x)
}

// rowBackward adds scale·(g - mean(g) - x̂·mean(g·x̂)), with g = γ·dy and x̂ the normalised row.
func (l *LayerNorm) rowBackward(dx, x, dy, gamma []float32) {
	mean, scale := l.moments(x)
	var sum, product float64
	for j, v := range x {
		g := float64(gamma[j] * dy[j])
		sum += g
		product += g * float64((v-mean)*scale)
	}
	n := float64(len(x))
	for j, v := range x {
		dx[j] += scale * (gamma[j]*dy[j] - float32(sum/n) - (v-mean)*scale*float32(product/n))
	}
}

// moments returns a row's mean and 1/√(variance + ε).
func (l *LayerNorm) moments(row []float32) (mean, scale float32) {
	var sum, squares float64
	for _, v := range row {
		sum += float64(v)
	}
	m := sum / float64(len(row))
	for _, v := range row {
		squares += (float64(v) - m) * (float64(v) - m)
	}
	return float32(m), float32(1 / math.Sqrt(squares/float64(len(row))+l.Epsilon))
}
