package nn

import (
	"encoding/json"
	"math"
	"os"
	"testing"
)

// readGolden reads a file that a script in scripts/fixtures has written by PyTorch, in float64 arithmetic.
func readGolden(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// checkGolden fails where values differ by more than 1e-5 times the largest, or 1e-5 if that is below 1.
func checkGolden(t *testing.T, what string, got, want []float32) {
	t.Helper()
	size := 1.0
	for _, v := range want {
		size = math.Max(size, math.Abs(float64(v)))
	}
	if !near(got, want, 1e-5*size) {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

// weighed returns the scalar that the scripts take gradients of: Σ c·y, or y itself where it is a scalar.
func weighed(y *Node, c []float32) *Node {
	if y.IsScalar() {
		return y
	}
	return Operation{
		Name:     "weigh",
		Forward:  func(in [][]float32, out []float32) { out[0] = dot(in[0], c) },
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) { addScaled(dIn[0], c, dOut[0]) },
	}.Apply(y)
}

func TestLayersEqualPyTorchs(t *testing.T) {
	var cases map[string]struct {
		Shape           []int
		X, Y, C, DX     []float32
		Params, DParams map[string][]float32
		Gold            []int
	}
	readGolden(t, "testdata/layers.json", &cases)
	layers := map[string]func(params Params, x *Node, gold []int) *Node{
		"GELU": func(_ Params, x *Node, _ []int) *Node { return GELU(x) },
		"tanh": func(_ Params, x *Node, _ []int) *Node { return Tanh(x) },
		"layer norm": func(w Params, x *Node,
			_ []int) *Node {
			return NewLayerNorm(w, 12, 1e-12).Apply(x)
		},
		"linear":                        func(w Params, x *Node, _ []int) *Node { return NewLinear(w, 6, 3).Apply(x) },
		"cross entropy":                 func(_ Params, x *Node, gold []int) *Node { return CrossEntropy(x, gold) },
		"cross entropy of large scores": func(_ Params, x *Node, gold []int) *Node { return CrossEntropy(x, gold) },
	}
	if len(cases) != len(layers) {
		t.Errorf("%d cases for %d layers", len(cases), len(layers))
	}
	for name, layer := range layers {
		t.Run(name, func(t *testing.T) {
			c, ok := cases[name]
			if !ok {
				t.Fatal("no such case")
			}
			p, params := NewPass(1), NewParams(1)
			x := p.Input(c.X, c.Shape...)
			y := layer(params, x, c.Gold)
			for _, w := range params.All() {
				if n := copy(w.Data, c.Params[w.Name]); n != len(w.Data) {
					t.Fatalf("parameter %s has %d values, not %d", w.Name, n, len(w.Data))
				}
			}
			loss := weighed(y, c.C)
			forward(t, p)
			checkGolden(t, "y", Values(y), c.Y)

			into, dx := NewGradients(params.All()), make([]float32, len(c.X))
			if err := p.Backward(loss, 1, into, []*Node{x}, [][]float32{dx}); err != nil {
				t.Fatal(err)
			}
			checkGolden(t, "gradient at x", dx, c.DX)
			for _, w := range params.All() {
				checkGolden(t, "gradient of "+w.Name, into.Of(w), c.DParams[w.Name])
			}
		})
	}
}
