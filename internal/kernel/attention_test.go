package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

// formulaAttention is the formula in float64, one text, head and query at a time, with its gradients at q, k, v and the
// bias, given dOut; without it they are not computed.
type formulaAttention struct {
	Attention
	q, k, v, bias, dOut    []float64
	out, dq, dk, dv, dBias []float64
}

// attentionOf returns the formula's results for float32 inputs.
func attentionOf(a Attention, q, k, v, dOut []float32) *formulaAttention {
	f := &formulaAttention{Attention: a, q: float64s(q), k: float64s(k), v: float64s(v), bias: float64s(a.Bias),
		dOut: float64s(dOut)}
	f.run()
	return f
}

func (f *formulaAttention) run() {
	n := len(f.q)
	f.out, f.dq, f.dk, f.dv = make([]float64, n), make([]float64, n), make([]float64, n), make([]float64, n)
	f.dBias = make([]float64, len(f.bias))
	for unit := range (len(f.Starts) - 1) * f.Heads {
		for i := range f.Starts[unit/f.Heads+1] - f.Starts[unit/f.Heads] {
			f.query(unit, i)
		}
	}
}

// query computes query i of a unit, a head of a text.
func (f *formulaAttention) query(unit, i int) {
	head, start, d := unit%f.Heads, f.Starts[unit/f.Heads], f.Width/f.Heads
	t, root := f.Starts[unit/f.Heads+1]-start, math.Sqrt(float64(d))
	of := func(x []float64, i int) []float64 { return x[(start+i)*f.Width+head*d:][:d] }
	dot := func(x, y []float64) (sum float64) {
		for l := range x {
			sum += x[l] * y[l]
		}
		return sum
	}
	add := func(to, x []float64, by float64) {
		for l := range x {
			to[l] += by * x[l]
		}
	}
	from, to := 0, t
	if f.Window > 0 {
		from, to = max(0, i-f.Window), min(t, i+f.Window+1)
	}
	logits, kept := make([]float64, to-from), make([]float64, to-from)
	for j := range logits {
		logits[j] = dot(of(f.q, i), of(f.k, from+j)) / root
		if len(f.bias) > 0 {
			logits[j] += f.bias[f.distance(head, i, from+j)]
		}
		if kept[j] = 1; f.Dropout > 0 {
			kept[j] = 0
			if newMask(f.Key, f.Dropout).of(unit).keeps(i*t + from + j) {
				kept[j] = 1 / (1 - f.Dropout)
			}
		}
	}
	weights := plainSoftmax(logits)
	for j, w := range weights {
		add(of(f.out, i), of(f.v, from+j), w*kept[j])
	}
	if len(f.dOut) == 0 {
		return
	}
	dWeights := make([]float64, len(weights))
	for j := range weights {
		dWeights[j] = kept[j] * dot(of(f.dOut, i), of(f.v, from+j))
	}
	mean := dot(weights, dWeights)
	for j, w := range weights {
		dLogit := w * (dWeights[j] - mean)
		add(of(f.dq, i), of(f.k, from+j), dLogit/root)
		add(of(f.dk, from+j), of(f.q, i), dLogit/root)
		add(of(f.dv, from+j), of(f.dOut, i), w*kept[j])
		if len(f.bias) > 0 {
			f.dBias[f.distance(head, i, from+j)] += dLogit
		}
	}
}

// distance returns the index of a query's and a key's bias.
func (f *formulaAttention) distance(head, query, key int) int {
	return head*(2*f.Reach-1) + key - query + f.Reach - 1
}

// someAttention has an empty text, one of a token, and one longer than a block of queries.
var someAttention = Attention{Starts: []int{0, 5, 5, 6, 26}, Heads: 2, Width: 10}

// variousAttention is someAttention with a dropout, windows and biases.
func variousAttention() []Attention {
	dropped, windows, biased := someAttention, someAttention, someAttention
	dropped.Dropout, dropped.Key = 0.3, 9
	windows.Window = 3
	biased.Reach = 21
	biased.Bias = normal(5, biased.Heads*(2*biased.Reach-1))
	return []Attention{someAttention, dropped, windows, biased}
}

func TestGradientsOfTheFormulaOfAttentionAreItsSlopes(t *testing.T) {
	for _, a := range variousAttention() {
		n := a.Starts[len(a.Starts)-1] * a.Width
		q, k, v, weights := normal(1, n), normal(2, n), normal(3, n), normal(4, n)
		f := attentionOf(a, q, k, v, weights)
		at := func(input *[]float64) func(x []float64) []float64 {
			return func(x []float64) []float64 {
				saved := *input
				*input, f.dOut = x, nil
				f.run()
				*input = saved
				return f.out
			}
		}
		for i, c := range []struct {
			input    *[]float64
			x        []float32
			gradient []float64
		}{{&f.q, q, f.dq}, {&f.k, k, f.dk}, {&f.v, v, f.dv}, {&f.bias, a.Bias, f.dBias}} {
			for l, want := range slopes(at(c.input), c.x, weights) {
				if got := c.gradient[l]; !(math.Abs(got-want) <= 1e-6) {
					t.Fatalf("input %d of %+v: gradient %d is %v, the slope is %v", i, a, l, got, want)
				}
			}
		}
	}
}

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
	near(t, "Attention", got, attentionOf(a, q, k, v, nil).out, 1e-6)
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

// checkAttention compares Forward and Backward of random inputs with the formula, and Backward with itself on other
// numbers of threads.
func checkAttention(t *testing.T, a Attention, tolerance, ofGradients float64) {
	t.Helper()
	n := a.Starts[len(a.Starts)-1] * a.Width
	q, k, v, dOut := normal(1, n), normal(2, n), normal(3, n), normal(4, n)
	want := attentionOf(a, q, k, v, dOut)
	inEachSet(t, func(t *testing.T) {
		out, normalizers := make([]float32, n), make([]float32, a.Heads*n/a.Width)
		a.Forward(out, normalizers, q, k, v)
		near(t, "Forward", out, want.out, tolerance)
		backward := func() []float32 {
			d, b := make([]float32, 3*n+len(a.Bias)), a
			if a.Bias != nil {
				b.DBias = d[3*n:]
			}
			b.Backward(d[:n], d[n:2*n], d[2*n:3*n], q, k, v, out, normalizers, dOut)
			return d
		}
		d := backward()
		near(t, "dq", d[:n], want.dq, ofGradients)
		near(t, "dk", d[n:2*n], want.dk, ofGradients)
		near(t, "dv", d[2*n:3*n], want.dv, ofGradients)
		near(t, "the bias's gradient", d[3*n:], want.dBias, ofGradients)
		same(t, "Backward", backward)
	})
}

func TestAttentionForwardAndBackward(t *testing.T) {
	for _, a := range variousAttention() {
		t.Run(fmt.Sprintf("dropout %v, window %d, reach %d", a.Dropout, a.Window, a.Reach), func(t *testing.T) {
			checkAttention(t, a, 2e-6, 1e-5)
		})
	}
}

// TestAttentionInPiecesIsAttentionAsAWhole has a text with several blocks of keys.
func TestAttentionInPiecesIsAttentionAsAWhole(t *testing.T) {
	a := Attention{Starts: []int{0, keyBlock + 100}, Heads: 2, Width: 32, Dropout: 0.1, Key: 5}
	checkAttention(t, a, 2e-6, 2e-5)
}

// TestAttentionInWindows has texts shorter and longer than windows, and windows shorter and longer than a block of
// keys.
func TestAttentionInWindows(t *testing.T) {
	for _, a := range []Attention{
		{Starts: []int{0, 5, 5, 6, 26}, Heads: 2, Width: 12, Window: 3},
		{Starts: []int{0, 5, 75}, Heads: 1, Width: 6, Window: 20, Dropout: 0.3, Key: 9},
		{Starts: []int{0, 1500}, Heads: 1, Width: 4, Window: 400},
		{Starts: []int{0, 30}, Heads: 1, Width: 4, Window: 64},
	} {
		t.Run(fmt.Sprint(a.Starts, a.Window), func(t *testing.T) { checkAttention(t, a, 2e-6, 1e-5) })
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

func TestWeightsAreZeroOutsideTheWindow(t *testing.T) {
	a := Attention{Starts: []int{0, 40}, Heads: 2, Width: 6, Window: 5}
	maps := repeated(7, 2*40*40)
	a.Weights(maps, normal(1, 240), normal(2, 240), 0)
	for i := range 80 {
		var sum float64
		for j, w := range maps[i*40 : (i+1)*40] {
			if inside := max(i%40-j, j-i%40) <= 5; inside != (w > 0) {
				t.Fatalf("the weight of query %d for key %d is %v", i%40, j, w)
			}
			sum += float64(w)
		}
		if !(math.Abs(sum-1) < 1e-5) {
			t.Fatalf("weights of query %d sum to %v", i, sum)
		}
	}
}

func TestAttentionAllocatesNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	inEachSet(t, func(t *testing.T) {
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
	})
}
