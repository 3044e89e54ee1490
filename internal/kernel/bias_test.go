package kernel

import (
	"math"
	"testing"
)

// biasedAttention is the formula in float64, with a bias for each distance j−i.
func biasedAttention(a Attention, q, k, v, bias []float64) []float64 {
	out := make([]float64, len(q))
	d := a.Width / a.Heads
	for unit := range (len(a.Starts) - 1) * a.Heads {
		head, start := unit%a.Heads, a.Starts[unit/a.Heads]
		t := a.Starts[unit/a.Heads+1] - start
		at := func(i int) int { return (start+i)*a.Width + head*d }
		for i := range t {
			logits := make([]float64, t)
			for j := range logits {
				for l := range d {
					logits[j] += q[at(i)+l] * k[at(j)+l] / math.Sqrt(float64(d))
				}
				logits[j] += bias[head*(2*a.Reach-1)+j-i+a.Reach-1]
			}
			for j, weight := range plainSoftmax(logits) {
				for l := range d {
					out[at(i)+l] += weight * v[at(j)+l]
				}
			}
		}
	}
	return out
}

func TestAttentionWithABias(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		a := Attention{Starts: []int{0, 5, 5, 6, 30}, Heads: 2, Width: 10, Reach: 26}
		n := a.Starts[len(a.Starts)-1] * a.Width
		q, k, v, weights := normal(1, n), normal(2, n), normal(3, n), normal(4, n)
		a.Bias = normal(5, a.Heads*(2*a.Reach-1))
		q64, k64, v64, bias := float64s(q), float64s(k), float64s(v), float64s(a.Bias)
		out, normalizers := make([]float32, n), make([]float32, a.Heads*n/a.Width)
		a.Forward(out, normalizers, q, k, v)
		near(t, "Forward", out, biasedAttention(a, q64, k64, v64, bias), 2e-6)

		backward := func() []float32 {
			d := make([]float32, 3*n+len(a.Bias))
			b := a
			b.DBias = d[3*n:]
			b.Backward(d[:n], d[n:2*n], d[2*n:3*n], q, k, v, out, normalizers, weights)
			return d
		}
		d := backward()
		near(t, "dq", d[:n], slopes(func(q []float64) []float64 {
			return biasedAttention(a, q, k64, v64, bias)
		}, q, weights), 1e-5)
		near(t, "dk", d[n:2*n], slopes(func(k []float64) []float64 {
			return biasedAttention(a, q64, k, v64, bias)
		}, k, weights), 1e-5)
		short := func(b []float64) []float64 { return biasedAttention(a, q64, k64, v64, b) }
		near(t, "the bias's gradient", d[3*n:], slopes(short, a.Bias, weights), 1e-5)
		same(t, "Backward", backward)
	})
}
