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

// SoftBinaryCrossEntropy returns the sum over rows of w·T²·Σ_l -(q_l·log σ(z/T)_l + (1-q_l)·log(1-σ(z/T)_l))/L, a
// scalar: logits z [N L], a teacher's probabilities q [N L] of labels of which several may hold, w [N] the factors of
// rows, nil for 1. A row with factor 0 has no target.
func SoftBinaryCrossEntropy(logits *Node, q []float32, temperature float64, rows []float32) *Node {
	labels := checkSoft("soft binary cross entropy", logits, q, temperature, rows)
	return Operation{
		Name: "soft binary cross entropy",
		// -(q·log σ(x) + (1-q)·log(1-σ(x))) = softplus(x) - q·x
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			for i, z := range in[0] {
				if by := factor(rows, i/labels); by != 0 {
					x := float64(z) / temperature
					sum += float64(by) * (softplus(x) - float64(q[i])*x)
				}
			}
			out[0] = float32(temperature * temperature * sum / float64(labels))
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			by := float64(dOut[0]) * temperature / float64(labels)
			for i, z := range in[0] {
				if w := factor(rows, i/labels); w != 0 {
					dIn[0][i] += float32(by * float64(w) * (sigmoid(float64(z)/temperature) - float64(q[i])))
				}
			}
		},
	}.Apply(logits)
}

// SoftSpanLoss returns the sum over texts of T²·(Σ_t -q_t·log p(start=t) + Σ_t -r_t·log p(end=t))/2, a scalar: p are
// the softmaxes of z/T over the tokens of a text that are allowed, [T]; logits z and a teacher's probabilities q, r
// [T 2] of each token as the start and as the end of a span, 0 for those that are not allowed. A text whose
// probabilities are zeros adds nothing.
func SoftSpanLoss(logits *Node, allowed []bool, q []float32, temperature float64, rows Rows) *Node {
	if n := rowsOf("soft span loss", logits, 2); n != rows.Tokens() || n != len(allowed) ||
		checkSoft("soft span loss", logits, q, temperature, nil) != 2 {
		panic(fmt.Sprintf("nn: soft span loss of %d rows and %d flags for %d tokens", n, len(allowed), rows.Tokens()))
	}
	for i, target := range q {
		if target != 0 && !allowed[i/2] {
			panic(fmt.Sprintf("nn: soft span loss of row %d, which is not allowed", i/2))
		}
	}
	// each visits the allowed logits of each side of each text, with the probabilities and where they are in q
	each := func(logits []float32, visit func(z, targets []float32, at []int)) {
		for b := range rows.Texts() {
			for side := range 2 {
				var z, targets []float32
				var at []int
				for t := rows.Starts[b]; t < rows.Starts[b+1]; t++ {
					if i := 2*t + side; allowed[t] {
						z, targets, at = append(z, logits[i]), append(targets, q[i]), append(at, i)
					}
				}
				if len(at) > 0 {
					visit(z, targets, at)
				}
			}
		}
	}
	return Operation{
		Name: "soft span loss",
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			each(in[0], func(z, targets []float32, _ []int) { sum += softValue(z, targets, temperature) / 2 })
			out[0] = float32(sum)
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			each(in[0], func(z, targets []float32, at []int) {
				d := make([]float32, len(z))
				softGradient(d, z, targets, temperature, dOut[0]/2)
				for k, i := range at {
					dIn[0][i] += d[k]
				}
			})
		},
	}.Apply(logits)
}
