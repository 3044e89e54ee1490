package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// plainAttention is the formula in float64, of one text at a time, with drop as the mask of the weights.
func plainAttention(a Attention, q, k, v []float64, drop func(text, head, i, j, t int) float64) []float64 {
	out := make([]float64, len(q))
	d := a.Width / a.Heads
	for b := range len(a.Starts) - 1 {
		start, t := a.Starts[b], a.Starts[b+1]-a.Starts[b]
		for head := range a.Heads {
			at := func(i int) int { return (start+i)*a.Width + head*d } // row i's first element
			for i := range t {
				scores := make([]float64, t)
				for j := range t {
					for l := range d {
						scores[j] += q[at(i)+l] * k[at(j)+l] / math.Sqrt(float64(d))
					}
				}
				for j, weight := range plainSoftmax(scores) {
					for l := range d {
						out[at(i)+l] += weight * drop(b, head, i, j, t) * v[at(j)+l]
					}
				}
			}
		}
	}
	return out
}

func keepAll(_, _, _, _, _ int) float64 { return 1 }

// someAttention has an empty text, one of a token, and one longer than a block of queries.
var someAttention = Attention{Starts: []int{0, 5, 5, 6, 26}, Heads: 2, Width: 10}

func TestAttention(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		attendsAsTheFormulaSays(t, someAttention)
		attendsAsTheFormulaSays(t, Attention{Starts: []int{0, queryBlock + 3}, Heads: 2, Width: 10})
		attendsAsTheFormulaSays(t, Attention{Starts: []int{0, keyBlock + 9, keyBlock + 40}, Heads: 2, Width: 36})
	})
}

func attendsAsTheFormulaSays(t *testing.T, a Attention) {
	t.Helper()
	n := a.Starts[len(a.Starts)-1] * a.Width
	q, k, v := normal(1, n), normal(2, n), normal(3, n)
	got := make([]float32, n)
	a.Forward(got, nil, q, k, v)
	near(t, "Attention", got, plainAttention(a, float64s(q), float64s(k), float64s(v), keepAll), 1e-6)
	same(t, "Attention", func() []float32 { out := make([]float32, n); a.Forward(out, nil, q, k, v); return out })

	for b := range len(a.Starts) - 1 {
		lo, hi := a.Starts[b]*a.Width, a.Starts[b+1]*a.Width
		alone := make([]float32, hi-lo)
		Attention{Starts: []int{0, (hi - lo) / a.Width}, Heads: a.Heads, Width: a.Width}.Forward(alone, nil, q[lo:hi],
			k[lo:hi], v[lo:hi])
		if !slices.Equal(alone, got[lo:hi]) {
			t.Errorf("text %d alone differs from the same among others", b)
		}
	}
}

func TestAttentionOfLargeScores(t *testing.T) { inEachSet(t, attentionOfLargeScores) }

func attentionOfLargeScores(t *testing.T) {
	a := Attention{Starts: []int{0, 3}, Heads: 1, Width: 1}
	q, k, v := []float32{100, -100, 0}, []float32{100, -100, 0}, []float32{1, 2, 6}
	got := make([]float32, 3)
	a.Forward(got, nil, q, k, v) // scores of ±1e4
	near(t, "Attention", got, []float64{1, 2, 3}, 1e-6)
}

func TestAttentionBackwardEqualsNumericalGradient(t *testing.T) {
	inEachSet(t, attentionBackwardGivesTheSlopes)
}

func attentionBackwardGivesTheSlopes(t *testing.T) {
	a := someAttention
	n := a.Starts[len(a.Starts)-1] * a.Width
	q, k, v, weights := normal(1, n), normal(2, n), normal(3, n), normal(4, n)
	q64, k64, v64 := float64s(q), float64s(k), float64s(v)
	for _, rate := range []float64{0, 0.3} {
		a.Dropout, a.Key = rate, 9
		drop := func(text, head, i, j, t int) float64 {
			if newMask(9, rate).of(text*a.Heads + head).keeps(i*t + j) {
				return 1 / (1 - rate)
			}
			return 0
		}
		out, normalizers := make([]float32, n), make([]float32, a.Heads*n/a.Width)
		a.Forward(out, normalizers, q, k, v)
		near(t, fmt.Sprintf("attention with dropout %v", rate), out, plainAttention(a, q64, k64, v64, drop), 2e-6)

		backward := func() []float32 {
			d := make([]float32, 3*n)
			a.Backward(d[:n], d[n:2*n], d[2*n:], q, k, v, out, normalizers, weights)
			return d
		}
		d := backward()
		near(t, "dq", d[:n], slopes(func(q []float64) []float64 { return plainAttention(a, q, k64, v64, drop) }, q,
			weights), 1e-5)
		near(t, "dk", d[n:2*n], slopes(func(k []float64) []float64 { return plainAttention(a, q64, k, v64, drop) }, k,
			weights), 1e-5)
		near(t, "dv", d[2*n:], slopes(func(v []float64) []float64 { return plainAttention(a, q64, k64, v, drop) }, v,
			weights), 1e-5)
		same(t, "Backward", backward)
	}
}

func TestAttentionWeightsAreASoftmaxForEachQuery(t *testing.T) {
	a := someAttention
	n := a.Starts[len(a.Starts)-1] * a.Width
	q, k := normal(1, n), normal(2, n)
	const text, tokens = 3, 20
	got := make([]float32, a.Heads*tokens*tokens)
	a.Weights(got, q, k, text)
	// A value that is 1 at one token shows the weight of that token.
	for j := range tokens {
		v := make([]float32, n)
		for l := range a.Width {
			v[(a.Starts[text]+j)*a.Width+l] = 1
		}
		out := make([]float32, n)
		a.Forward(out, nil, q, k, v)
		for i := range tokens {
			for head := range a.Heads {
				want := out[(a.Starts[text]+i)*a.Width+head*a.Width/a.Heads]
				if w := got[(head*tokens+i)*tokens+j]; math.Abs(float64(w-want)) > 3e-7 {
					t.Fatalf("head %d: weight of query %d on token %d is %v, want %v", head, i, j, w, want)
				}
			}
		}
	}
}

// TestAttentionInPiecesIsAttentionAsAWhole compares Backward of a text with several blocks of keys with the plain
// version.
func TestAttentionInPiecesIsAttentionAsAWhole(t *testing.T) {
	a := Attention{Starts: []int{0, keyBlock + 100}, Heads: 2, Width: 32, Dropout: 0.1, Key: 5}
	n := a.Starts[1] * a.Width
	q, k, v, dOut := normal(1, n), normal(2, n), normal(3, n), normal(4, n)
	gradients := func() []float32 {
		out, normalizers, d := make([]float32, n), make([]float32, a.Heads*n/a.Width), make([]float32, 3*n)
		a.Forward(out, normalizers, q, k, v)
		a.Backward(d[:n], d[n:2*n], d[2*n:], q, k, v, out, normalizers, dOut)
		return d
	}
	chosen := use
	use = &plain
	want := float64s(gradients())
	use = chosen
	inEachSet(t, func(t *testing.T) { near(t, "gradient", gradients(), want, 2e-5) })
}

func TestAttentionAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	if use.tile == nil {
		t.Skip("the plain version may")
	}
	a := someAttention
	n := a.Starts[len(a.Starts)-1] * a.Width
	x, normalizers := normal(1, n), make([]float32, a.Heads*n/a.Width)
	out, d := make([]float32, n), make([]float32, 3*n)
	if allocs := testing.AllocsPerRun(50, func() {
		a.Forward(out, normalizers, x, x, x)
		a.Backward(d[:n], d[n:2*n], d[2*n:], x, x, x, out, normalizers, x)
	}); allocs > 0 {
		t.Errorf("attention allocates %v times", allocs)
	}
}
