package transformer

import (
	"math"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// computed returns the results of a pass over a batch: states, and the gradient of each parameter.
func computed(t *testing.T, bfloat16 bool) (states []float32, gradients [][]float32) {
	t.Helper()
	e, params := network(t, tiny("bert"), "none")
	tokens := someBatch()
	p, mode := training(5), encoders.Mode{}
	if bfloat16 {
		mode.Precision = nn.BFloat16
	}
	states = slices.Clone(encodeAs(t, e, p, tokens, mode)[0])
	into := nn.NewGradients(params.All())
	e.backward(p, [][]float32{normal(7, len(tokens.IDs)*e.config.Width)}, into)
	for _, w := range params.All() {
		gradients = append(gradients, into.Of(w))
	}
	return states, gradients
}

// relativeDistance returns the length of a − b divided by that of b.
func relativeDistance(a, b []float32) float64 {
	d := slices.Clone(a)
	for i := range d {
		d[i] -= b[i]
	}
	return length(d) / length(b)
}

func TestBFloat16ChangesNumbersByItsRounding(t *testing.T) {
	wantStates, want := computed(t, false)
	states, gradients := computed(t, true)
	const rounding = 1.0 / (1 << 9) // of one number
	// Twice the values measured on this network: states differ by 0.86 roundings, gradients by 0.6 to 3.9.
	if d := relativeDistance(states, wantStates) / rounding; !(d > 0.1 && d < 2) {
		t.Errorf("states differ by %.2g roundings", d)
	}
	equal := 0
	for i := range want {
		if length(want[i]) < 1e-3 { // a bias of keys changes no attention
			continue
		}
		d := relativeDistance(gradients[i], want[i]) / rounding
		if d == 0 {
			equal++
		}
		if !(d < 8) {
			t.Errorf("gradient %d differs by %.2g roundings", i, d)
		}
	}
	if equal != 1 {
		t.Errorf("%d gradients are the same, want one: the last norm's bias gets the sum of Backward's input",
			equal)
	}
}

func TestATextHasTheSameStatesAloneAndInABatchAndAtAnyThreads(t *testing.T) {
	for _, precision := range []nn.Precision{nn.BFloat16, nn.Int8} {
		t.Run(precision.String(), func(t *testing.T) { textsAreIndependent(t, precision) })
	}
}

func textsAreIndependent(t *testing.T, precision nn.Precision) {
	e, _ := network(t, tiny("bert"), "none")
	texts := [][]int32{{1, 2, 3}, {4, 5, 6, 7, 8, 9}, {10}, {11, 12, 13, 14, 15, 16, 17, 18, 19}}
	states := func(texts ...[]int32) []float32 {
		mode := encoders.Mode{Precision: precision}
		return slices.Clone(encodeAs(t, e, nn.NewPass(5), pack(texts...), mode)[0])
	}
	all, at := states(texts...), 0
	for i, text := range texts {
		alone := states(text)
		if !slices.Equal(alone, all[at:at+len(alone)]) {
			t.Errorf("text %d has other states alone", i)
		}
		at += len(alone)
	}
	defer kernel.SetThreads(0)
	for _, threads := range []int{1, 3} {
		if kernel.SetThreads(threads); !slices.Equal(states(texts...), all) {
			t.Errorf("%d threads change a bit", threads)
		}
	}
	if slices.ContainsFunc(all, func(v float32) bool { return math.IsNaN(float64(v)) }) {
		t.Error("a state is NaN")
	}
}

func TestPrecisionsOfOneNetworkTakeTurns(t *testing.T) {
	e, _ := network(t, tiny("bert"), "none")
	tokens := someBatch()
	states := func(precision nn.Precision) []float32 {
		return slices.Clone(encodeAs(t, e, nn.NewPass(0), tokens, encoders.Mode{Precision: precision})[0])
	}
	want := states(nn.Float32)
	for _, test := range []struct {
		precision nn.Precision
		most      float64 // 1.5 times what was measured
	}{{nn.BFloat16, 0.0025}, {nn.Int8, 0.0065}} {
		got := states(test.precision)
		if d := relativeDistance(got, want); !(d > 0 && d < test.most) {
			t.Errorf("%v changes states by %v", test.precision, d)
		}
		if !slices.Equal(states(nn.Float32), want) || !slices.Equal(states(test.precision), got) {
			t.Errorf("states depend on the precision of the pass before")
		}
	}
}

func TestAnInputTooWideForInt8IsMultipliedInFloat32(t *testing.T) {
	const in = kernel.MaxInt8Depth + 1
	l := newLinear()
	l.weight = nn.NewParams(1).Normal("weight", 1, in, 2)
	x := normal(1, in)
	outputs := map[nn.Precision][]float32{}
	for _, precision := range []nn.Precision{nn.Float32, nn.Int8} {
		p := pass{nn.NewPass(0), encoders.Mode{Precision: precision}}
		outputs[precision] = make([]float32, 2)
		l.forward(p, outputs[precision], x, kernel.Epilogue{})
	}
	if !slices.Equal(outputs[nn.Float32], outputs[nn.Int8]) {
		t.Errorf("the outputs are %v", outputs)
	}
}
