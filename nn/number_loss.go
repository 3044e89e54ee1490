package nn

import (
	"fmt"
	"math"
)

// Distance is the loss of a number as a function of its difference d from the gold number, and its slope.
type Distance struct {
	Of, Slope func(d float64) float64
}

// Distances are the losses of a number by name: mse d², mae |d|, and huber (Huber 1964), which is d²/2 for |d| < 1,
// else |d| - 1/2.
var Distances = map[string]Distance{
	"mse": {
		func(d float64) float64 { return d * d },
		func(d float64) float64 { return 2 * d },
	},
	"mae": {
		math.Abs,
		sign,
	},
	"huber": {
		func(d float64) float64 {
			if math.Abs(d) < 1 {
				return d * d / 2
			}
			return math.Abs(d) - 0.5
		},
		func(d float64) float64 { return max(-1, min(1, d)) },
	},
}

// sign returns -1, 0 or 1, and NaN for NaN.
func sign(d float64) float64 {
	switch {
	case d > 0:
		return 1
	case d < 0:
		return -1
	}
	return d
}

// NumberLoss returns the sum of the distances between x [N 1] and gold [N], each times its factor of rows [N], a
// scalar. Where the factor is 0 there is no gold number.
func NumberLoss(x *Node, gold, rows []float32, distance Distance) *Node {
	if n := rowsOf("number loss", x, 1); n != len(gold) || n != len(rows) {
		panic(fmt.Sprintf("nn: number loss of %d rows, %d numbers and %d factors", n, len(gold), len(rows)))
	}
	return Operation{
		Name: "number loss",
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			for i, by := range rows {
				if by != 0 {
					sum += float64(by) * distance.Of(float64(in[0][i])-float64(gold[i]))
				}
			}
			out[0] = float32(sum)
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, by := range rows {
				if by != 0 && dIn[0] != nil {
					dIn[0][i] += dOut[0] * by * float32(distance.Slope(float64(in[0][i])-float64(gold[i])))
				}
			}
		},
	}.Apply(x)
}
