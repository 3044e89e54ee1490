package kernel

import (
	"fmt"
	"math"
	"slices"
	"testing"
)

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
