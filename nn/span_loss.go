package nn

import (
	"fmt"
	"math"
)

// SpanLoss returns the sum over texts of the mean of -log p(start) and -log p(end), a scalar: logits [T 2] of each
// token as the start and as the end of a span, allowed [T] the tokens that can be either, gold [B][2] the first and the
// last token of the span as rows. A text whose gold is negative adds nothing.
func SpanLoss(logits *Node, allowed []bool, gold [][2]int, rows Rows) *Node {
	if n := rowsOf("span loss", logits, 2); n != rows.Tokens() || n != len(allowed) || len(gold) != rows.Texts() {
		panic(fmt.Sprintf("nn: span loss of %d rows, %d flags and %d spans for %d tokens and %d texts", n,
			len(allowed), len(gold), rows.Tokens(), rows.Texts()))
	}
	for b, span := range gold {
		for _, row := range span {
			if row >= 0 && (row < rows.Starts[b] || row >= rows.Starts[b+1] || !allowed[row]) {
				panic(fmt.Sprintf("nn: span loss of row %d, which is outside text %d or is not allowed", row, b))
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
						sum += (logSumSide(in[0], allowed, rows.Starts[b], rows.Starts[b+1],
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
					total := logSumSide(in[0], allowed, rows.Starts[b], rows.Starts[b+1], side)
					for t := rows.Starts[b]; t < rows.Starts[b+1]; t++ {
						if allowed[t] {
							dIn[0][2*t+side] += dOut[0] / 2 * float32(math.Exp(float64(in[0][2*t+side])-total))
						}
					}
					dIn[0][2*row+side] -= dOut[0] / 2
				}
			}
		},
	}.Apply(logits)
}

// logSumSide returns log Σ exp of one side's logits over the allowed tokens of from:to.
func logSumSide(logits []float32, allowed []bool, from, to, side int) float64 {
	var x []float32
	for t := from; t < to; t++ {
		if allowed[t] {
			x = append(x, logits[2*t+side])
		}
	}
	return logSumExp(x)
}
