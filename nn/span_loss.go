package nn

import (
	"fmt"
	"math"
)

// SpanLoss returns the sum over texts of the mean of -log p(start) and -log p(end), a number: scores [T 2] of each
// token as the start and as the end of a span, may [T] the tokens that can be either, gold [B][2] the first and the
// last token of the span as rows. A text whose gold is negative adds nothing.
func SpanLoss(scores *Node, may []bool, gold [][2]int, rows Rows) *Node {
	if n := rowsOf("span loss", scores, 2); n != rows.Tokens() || n != len(may) || len(gold) != rows.Texts() {
		panic(fmt.Sprintf("nn: span loss of %d rows, %d that may be and %d spans for %d tokens and %d texts", n,
			len(may), len(gold), rows.Tokens(), rows.Texts()))
	}
	for b, span := range gold {
		for _, row := range span {
			if row >= 0 && (row < rows.Starts[b] || row >= rows.Starts[b+1] || !may[row]) {
				panic(fmt.Sprintf("nn: span loss of row %d, which text %d has not or which may not be", row, b))
			}
		}
	}
	return Operation{
		Name: "span loss",
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			for b, span := range gold {
				for side, row := range span {
					if row >= 0 {
						sum += (logSumSide(in[0], may, rows.Starts[b], rows.Starts[b+1],
							side) - float64(in[0][2*row+side])) / 2
					}
				}
			}
			out[0] = float32(sum)
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for b, span := range gold {
				for side, row := range span {
					if row < 0 || dIn[0] == nil {
						continue
					}
					total := logSumSide(in[0], may, rows.Starts[b], rows.Starts[b+1], side)
					for t := rows.Starts[b]; t < rows.Starts[b+1]; t++ {
						if may[t] {
							dIn[0][2*t+side] += dOut[0] / 2 * float32(math.Exp(float64(in[0][2*t+side])-total))
						}
					}
					dIn[0][2*row+side] -= dOut[0] / 2
				}
			}
		},
	}.Apply(scores)
}

// logSumSide is log Σ exp of one side's scores over the tokens from:to that may be it.
func logSumSide(scores []float32, may []bool, from, to, side int) float64 {
	var x []float32
	for t := from; t < to; t++ {
		if may[t] {
			x = append(x, scores[2*t+side])
		}
	}
	return logSumExp(x)
}
