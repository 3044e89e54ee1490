package nn

import (
	"fmt"
	"math"
)

// BinaryCrossEntropy returns the sum over logits [N L] of each one's binary cross entropy, a scalar: -log σ(s) where
// gold [N·L] is above 0, -log(1-σ(s)) where it is 0, nothing where it is below. Weights multiply the terms of positive
// labels, (1-p)^γ all terms, p being the gold label's probability; there is no smoothing.
func (l LabelLoss) BinaryCrossEntropy(logits *Node, gold []int8) *Node {
	shape := logits.Shape()
	if len(shape) != 2 || shape[0]*shape[1] != len(gold) || l.Smoothing != 0 {
		panic(fmt.Sprintf("nn: binary cross entropy of logits %v and %d labels, smoothed by %v", shape, len(gold),
			l.Smoothing))
	}
	labels := shape[1]
	l.check("binary cross entropy", shape[0], labels)
	factor := func(i int) float64 {
		by := float64(l.row(i / labels))
		if gold[i] > 0 {
			by *= float64(l.weight(i % labels))
		}
		return by
	}
	return Operation{
		Name: "binary cross entropy",
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			for i, s := range in[0] {
				if gold[i] >= 0 {
					t := towards(s, gold[i])
					sum += factor(i) * math.Pow(sigmoid(-t), l.Gamma) * softplus(-t)
				}
			}
			out[0] = float32(sum)
		},
		// with t = ±s of f(t) = σ(-t)^γ·softplus(-t): f' = -σ(-t)^γ·(γ·σ(t)·softplus(-t) + σ(-t))
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			if dIn[0] == nil {
				return
			}
			for i, s := range in[0] {
				if gold[i] < 0 {
					continue
				}
				t := towards(s, gold[i])
				slope := -math.Pow(sigmoid(-t), l.Gamma) * (l.Gamma*sigmoid(t)*softplus(-t) + sigmoid(-t))
				dIn[0][i] += dOut[0] * float32(factor(i)*towards(float32(slope), gold[i]))
			}
		},
	}.Apply(logits)
}

// towards returns s where gold is positive, -s where it is not.
func towards(s float32, gold int8) float64 {
	if gold > 0 {
		return float64(s)
	}
	return -float64(s)
}

// sigmoid returns 1/(1 + exp(-x)).
func sigmoid(x float64) float64 {
	if x >= 0 {
		return 1 / (1 + math.Exp(-x))
	}
	e := math.Exp(x)
	return e / (1 + e)
}

// softplus returns log(1 + exp(x)).
func softplus(x float64) float64 { return max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// Sigmoids returns 1/(1 + exp(-x)) of each.
func Sigmoids(x []float32) []float32 {
	probabilities := make([]float32, len(x))
	for i, v := range x {
		probabilities[i] = float32(sigmoid(float64(v)))
	}
	return probabilities
}
