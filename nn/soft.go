package nn

import (
	"fmt"
	"math"
)

// The losses of logits z against a teacher's probabilities q at a temperature T (Hinton et al. 2015, "Distilling the
// Knowledge in a Neural Network", section 2): the cross entropy of q and the probabilities of z/T, times T², so that
// gradients are of the same size at any T.

// Tempered returns logits/T, whose probabilities are those at the temperature T.
func Tempered(logits []float32, temperature float64) []float32 {
	tempered := make([]float32, len(logits))
	for i, z := range logits {
		tempered[i] = float32(float64(z) / temperature)
	}
	return tempered
}

// SoftCrossEntropy returns the sum over rows of w·T²·Σ_c -q_c·log softmax(z/T)_c, a scalar: logits z [N C], a teacher's
// probabilities q [N C], w [N] the factors of rows, nil for 1. A row of zeros has no target and adds nothing, nor does
// one with factor 0.
func SoftCrossEntropy(logits *Node, q []float32, temperature float64, rows []float32) *Node {
	c := checkSoft("soft cross entropy", logits, q, temperature, rows)
	return Operation{
		Name: "soft cross entropy",
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			for i := range len(q) / c {
				if by := factor(rows, i); by != 0 {
					sum += float64(by) * softValue(in[0][i*c:(i+1)*c], q[i*c:(i+1)*c], temperature)
				}
			}
			out[0] = float32(sum)
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			for i := range len(q) / c {
				if by := dOut[0] * factor(rows, i); by != 0 {
					softGradient(dIn[0][i*c:(i+1)*c], in[0][i*c:(i+1)*c], q[i*c:(i+1)*c], temperature, by)
				}
			}
		},
	}.Apply(logits)
}

// checkSoft returns the columns of logits, and panics if a teacher's probabilities or the factors of rows do not fit.
func checkSoft(operation string, logits *Node, q []float32, temperature float64, rows []float32) (columns int) {
	s := logits.Shape()
	if len(s) != 2 || s[0]*s[1] != len(q) || rows != nil && len(rows) != s[0] || !(temperature > 0) {
		panic(fmt.Sprintf("nn: %s of logits %v, %d probabilities and %d factors at temperature %v", operation, s,
			len(q), len(rows), temperature))
	}
	return s[1]
}

// softValue returns T²·Σ_c -q_c·log softmax(z/T)_c, 0 where q is zeros.
func softValue(z, q []float32, temperature float64) float64 {
	total, sum := logSumExp(z, temperature), 0.0
	for c, target := range q {
		if target != 0 {
			sum += float64(target) * (total - float64(z[c])/temperature)
		}
	}
	return temperature * temperature * sum
}

// softGradient adds by times the gradient of softValue to d: T·(Σ q·softmax(z/T) - q).
func softGradient(d, z, q []float32, temperature float64, by float32) {
	mass := 0.0
	for _, target := range q {
		mass += float64(target)
	}
	if mass == 0 {
		return
	}
	total := logSumExp(z, temperature)
	for c, x := range z {
		p := math.Exp(float64(x)/temperature - total)
		d[c] += by * float32(temperature*(mass*p-float64(q[c])))
	}
}
