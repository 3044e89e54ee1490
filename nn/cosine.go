package nn

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// MeanOfRows returns the mean of each group's rows of x [N D], [G D]; zeros for an empty group.
func MeanOfRows(x *Node, groups [][]int) *Node {
	d := x.Shape()[1]
	n := rowsOf("mean of rows", x, d)
	for _, group := range groups {
		for _, r := range group {
			if r < 0 || r >= n {
				panic(fmt.Sprintf("nn: mean of row %d of %d", r, n))
			}
		}
	}
	return Operation{
		Name: "mean of rows", Shape: []int{len(groups), d},
		Forward: func(in [][]float32, out []float32) {
			for g, group := range groups {
				for _, r := range group {
					addScaled(out[g*d:(g+1)*d], in[0][r*d:(r+1)*d], 1/float32(len(group)))
				}
			}
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			for g, group := range groups {
				for _, r := range group {
					addScaled(dIn[0][r*d:(r+1)*d], dOut[g*d:(g+1)*d], 1/float32(len(group)))
				}
			}
		},
	}.Apply(x)
}

// leastNorm is the lower bound of a vector's norm in a cosine, as in PyTorch.
const leastNorm = 1e-8

// Cosine returns a·b/(|a|·|b|) of each row of a and b [N D], [N 1].
func Cosine(a, b *Node) *Node {
	d := a.Shape()[1]
	n := rowsOf("cosine", a, d)
	if rowsOf("cosine", b, d) != n {
		panic(fmt.Sprintf("nn: cosine of %v and %v", a.Shape(), b.Shape()))
	}
	norm := func(x []float32) float64 { return max(leastNorm, math.Sqrt(float64(dot(x, x)))) }
	return Operation{
		Name: "cosine", Shape: []int{n, 1},
		Forward: func(in [][]float32, out []float32) {
			for i := range n {
				x, y := in[0][i*d:(i+1)*d], in[1][i*d:(i+1)*d]
				out[i] = float32(float64(dot(x, y)) / (norm(x) * norm(y)))
			}
		},
		// d cos/da = b/(|a|·|b|) - cos·a/|a|²
		Backward: func(in [][]float32, out, dOut []float32, dIn [][]float32) {
			for i := range n {
				x, y := in[0][i*d:(i+1)*d], in[1][i*d:(i+1)*d]
				nx, ny := norm(x), norm(y)
				for side, v := range [2][]float32{x, y} {
					if dIn[side] == nil {
						continue
					}
					own, other := nx, y
					if side == 1 {
						own, other = ny, x
					}
					row := dIn[side][i*d : (i+1)*d]
					addScaled(row, other, dOut[i]*float32(1/(nx*ny)))
					addScaled(row, v, -dOut[i]*float32(float64(out[i])/(own*own)))
				}
			}
		},
	}.Apply(a, b)
}

// CoSENT returns N·log(1 + Σ exp(scale·(s_i - s_j))) over the pairs of rows with gold_i < gold_j, a scalar:
// similarities [N 1], gold [N]. A row whose gold is NaN is left out; N is the number of the others (Su 2022, "CoSENT").
// It compares rows with each other, so that, unlike other losses, it is not a sum over rows.
func CoSENT(similarities *Node, gold []float64, scale float64) *Node {
	if n := rowsOf("CoSENT", similarities, 1); n != len(gold) {
		panic(fmt.Sprintf("nn: CoSENT of %d rows and %d numbers", n, len(gold)))
	}
	var order []int // rows by ascending gold
	for i, g := range gold {
		if !math.IsNaN(g) {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(gold[i], gold[j]) })
	terms := func(s []float32, visit func(low, high int, x float64)) {
		for k, high := range order {
			for _, low := range order[:k] {
				if gold[low] < gold[high] {
					visit(low, high, scale*(float64(s[low])-float64(s[high])))
				}
			}
		}
	}
	total := func(s []float32) float64 { // log(1 + Σ exp)
		all := []float64{0}
		terms(s, func(_, _ int, x float64) { all = append(all, x) })
		return logSum(all)
	}
	return Operation{
		Name:    "CoSENT",
		Forward: func(in [][]float32, out []float32) { out[0] = float32(float64(len(order)) * total(in[0])) },
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			if dIn[0] == nil {
				return
			}
			sum := total(in[0])
			terms(in[0], func(low, high int, x float64) {
				d := dOut[0] * float32(float64(len(order))*scale*math.Exp(x-sum))
				dIn[0][low] += d
				dIn[0][high] -= d
			})
		},
	}.Apply(similarities)
}
