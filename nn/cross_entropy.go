package nn

import (
	"fmt"
	"math"
)

// CrossEntropy returns the sum over rows of -log softmax(scores)[gold], a number: scores [N C], gold [N]. Rows whose
// gold is negative have no label and add nothing.
func CrossEntropy(scores *Node, gold []int) *Node {
	shape := scores.Shape()
	if len(shape) != 2 || shape[0] != len(gold) {
		panic(fmt.Sprintf("nn: cross entropy of scores %v and %d labels", shape, len(gold)))
	}
	c := shape[1]
	for _, label := range gold {
		if label >= c {
			panic(fmt.Sprintf("nn: cross entropy of label %d among %d", label, c))
		}
	}
	return Operation{
		Name: "cross entropy",
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			for i, label := range gold {
				if label >= 0 {
					row := in[0][i*c : i*c+c]
					sum += logSumExp(row) - float64(row[label])
				}
			}
			out[0] = float32(sum)
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i, label := range gold {
				if label < 0 || dIn[0] == nil {
					continue
				}
				row, d := in[0][i*c:i*c+c], dIn[0][i*c:i*c+c]
				total := logSumExp(row)
				for j, x := range row {
					d[j] += dOut[0] * float32(math.Exp(float64(x)-total))
				}
				d[label] -= dOut[0]
			}
		},
	}.Apply(scores)
}
