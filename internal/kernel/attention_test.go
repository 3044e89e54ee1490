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

// localAttention is the formula in float64, with the weights outside the window and those that are dropped at zero.
func localAttention(a Attention, q, k, v []float64, keeps func(unit, at int) float64) []float64 {
	out := make([]float64, len(q))
	d := a.Width / a.Heads
	for unit := range (len(a.Starts) - 1) * a.Heads {
		start, t := a.Starts[unit/a.Heads], a.Starts[unit/a.Heads+1]-a.Starts[unit/a.Heads]
		at := func(i int) int { return (start+i)*a.Width + unit%a.Heads*d }
		for i := range t {
			from, to := max(0, i-a.Window), min(t, i+a.Window+1)
			logits := make([]float64, to-from)
			for j := range logits {
				for l := range d {
					logits[j] += q[at(i)+l] * k[at(from+j)+l] / math.Sqrt(float64(d))
				}
			}
			for j, weight := range plainSoftmax(logits) {
				for l := range d {
					out[at(i)+l] += weight * keeps(unit, i*t+from+j) * v[at(from+j)+l]
				}
			}
		}
	}
	return out
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
		t.Run(fmt.Sprint(a.Starts, a.Window), func(t *testing.T) {
			n := a.Starts[len(a.Starts)-1] * a.Width
			inputs, weights := [][]float32{normal(1, n), normal(2, n), normal(3, n)}, normal(4, n)
			want, gradients := localFormula(a, inputs, weights, n <= 1000)
			inEachSet(t, func(t *testing.T) {
				q, k, v := inputs[0], inputs[1], inputs[2]
				out, normalizers := make([]float32, n), make([]float32, a.Heads*n/a.Width)
				a.Forward(out, normalizers, q, k, v)
				near(t, "Forward", out, want, 2e-6)
				if gradients == nil {
					return
				}
				backward := func() []float32 {
					d := make([]float32, 3*n)
					a.Backward(d[:n], d[n:2*n], d[2*n:], q, k, v, out, normalizers, weights)
					return d
				}
				for i, d := range slices.Collect(slices.Chunk(backward(), n)) {
					near(t, "gradient "+"qkv"[i:i+1], d, gradients[i], 1e-5)
				}
				same(t, "Backward", backward)
			})
		})
	}
}

// localFormula returns the result of the formula for the inputs q, k and v, and with gradients those of weights times
// it at each of them.
func localFormula(a Attention, inputs [][]float32, weights []float32, gradients bool) (out []float64, at [][]float64) {
	keeps := func(unit, at int) float64 {
		switch {
		case a.Dropout == 0:
			return 1
		case newMask(a.Key, a.Dropout).of(unit).keeps(at):
			return 1 / (1 - a.Dropout)
		}
		return 0
	}
	all := [][]float64{float64s(inputs[0]), float64s(inputs[1]), float64s(inputs[2])}
	out = localAttention(a, all[0], all[1], all[2], keeps)
	for i := range inputs {
		if gradients {
			at = append(at, slopes(func(x []float64) []float64 {
				with := slices.Clone(all)
				with[i] = x
				return localAttention(a, with[0], with[1], with[2], keeps)
			}, inputs[i], weights))
		}
	}
	return out, at
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

func TestRotate(t *testing.T) {
	starts, heads, width := []int{0, 3, 3, 40}, 2, 12
	const half = 3
	angles := make([]float32, 40*2*half)
	for i := range 40 {
		for l := range half {
			sin, cos := math.Sincos(float64(i) / float64(l+1))
			angles[i*2*half+l], angles[i*2*half+half+l] = float32(cos), float32(sin)
		}
	}
	x := normal(1, 40*width)
	want := make([]float64, len(x))
	for row := range 40 {
		position := row
		if row >= 3 {
			position = row - 3
		}
		for h := range heads {
			for l := range half {
				at := row*width + h*2*half + l
				sin, cos := math.Sincos(float64(position) / float64(l+1))
				a, b := float64(x[at]), float64(x[at+half])
				want[at], want[at+half] = a*cos-b*sin, a*sin+b*cos
			}
		}
	}
	got := slices.Clone(x)
	Rotate(got, angles, starts, heads, width)
	near(t, "Rotate", got, want, 1e-6)
	same(t, "Rotate", func() []float32 { y := slices.Clone(x); Rotate(y, angles, starts, heads, width); return y })
	RotateBack(got, angles, starts, heads, width)
	near(t, "RotateBack", got, float64s(x), 1e-6)
}

func TestGatedGELU(t *testing.T) {
	inEachSet(t, func(t *testing.T) {
		x, gate, weights := normal(1, 9000), normal(2, 9000), normal(3, 9000)
		gelu := func(x float64) float64 { return x * (1 + math.Erf(x/math.Sqrt2)) / 2 }
		out, d, dGate := make([]float32, 9000), slices.Clone(weights), make([]float32, 9000)
		Product{M: 90, N: 100, C: x, After: Epilogue{GELU: out, Gate: gate}}.Multiply() // of K = 0: C is x
		GatedGELUBackward(d, dGate, x, gate)
		var want, wantD, wantGate []float64
		for i, v := range float64s(x) {
			g, w := float64(gate[i]), float64(weights[i])
			want = append(want, gelu(v)*g)
			wantD = append(wantD, w*g*(gelu(v+1e-5)-gelu(v-1e-5))/2e-5)
			wantGate = append(wantGate, w*gelu(v))
		}
		near(t, "GELU times gate", out, want, 2e-6)
		near(t, "gradient of x", d, wantD, 2e-5)
		near(t, "gradient of gate", dGate, wantGate, 5e-6)
	})
}
