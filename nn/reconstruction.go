package nn

import "fmt"

// Detach returns x without a gradient: none is passed to x.
func Detach(x *Node) *Node {
	return Operation{
		Name: "detach", Shape: x.Shape(),
		Forward: func(in [][]float32, out []float32) { copy(out, in[0]) },
	}.Apply(x)
}

// SquaredError returns the mean over columns of (x-y)² for each row, [N 1]: x and y [N D].
func SquaredError(x, y *Node) *Node {
	d := x.Shape()[1]
	n := rowsOf("squared error", y, d)
	if rowsOf("squared error", x, d) != n {
		panic(fmt.Sprintf("nn: squared error of %v and %v", x.Shape(), y.Shape()))
	}
	return Operation{
		Name: "squared error", Shape: []int{n, 1},
		Forward: func(in [][]float32, out []float32) {
			for i := range n {
				sum := float32(0)
				for j := i * d; j < (i+1)*d; j++ {
					sum += (in[0][j] - in[1][j]) * (in[0][j] - in[1][j])
				}
				out[i] = sum / float32(d)
			}
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i := range n {
				by := 2 * dOut[i] / float32(d)
				for j := i * d; j < (i+1)*d; j++ {
					difference := by * (in[0][j] - in[1][j])
					if dIn[0] != nil {
						dIn[0][j] += difference
					}
					if dIn[1] != nil {
						dIn[1][j] -= difference
					}
				}
			}
		},
	}.Apply(x, y)
}

// WeightedSum returns the sum of the rows of x [N 1], each times its factor, a scalar. Rows whose factor is 0 are left
// out, NaN included.
func WeightedSum(x *Node, factors []float32) *Node {
	if n := rowsOf("weighted sum", x, 1); n != len(factors) {
		panic(fmt.Sprintf("nn: weighted sum of %d rows with %d factors", n, len(factors)))
	}
	return Operation{
		Name: "weighted sum",
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			for i, by := range factors {
				if by != 0 {
					sum += float64(by) * float64(in[0][i])
				}
			}
			out[0] = float32(sum)
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			if dIn[0] != nil {
				addScaled(dIn[0], factors, dOut[0])
			}
		},
	}.Apply(x)
}
