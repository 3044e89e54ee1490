package nn

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
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

// partCase is a case of testdata/parts.json, which scripts/fixtures/parts.py writes.
type partCase struct {
	Inputs, Params   map[string]partTensor
	Y, C             []float32
	Gold             []int
	Starts           []int
	Heads            int
	Weights          []float32
	Values           []float32
	Smoothing, Gamma float64
	May              []bool   // of each token, whether a span may begin or end with it
	Spans            [][2]int // of each text, as rows; below 0 for none
	// Unit is what an input is counted in, if not in ones: its gradient is compared times that. A lens of aperture σ is
	// moved by fractions of σ; the float32 gradient of a narrow one has no more precision.
	Unit map[string]float32
}

type partTensor struct {
	Shape          []int
	Data, Gradient []float32
}

func (c partCase) loss() LabelLoss {
	return LabelLoss{Smoothing: c.Smoothing, Gamma: c.Gamma, Weights: c.Weights}
}

func (c partCase) flags() []int8 {
	flags := make([]int8, len(c.Gold))
	for i, g := range c.Gold {
		flags[i] = int8(g)
	}
	return flags
}

// chains are the texts of a case as a CRF takes them.
func (c partCase) chains() []Chain {
	var chains []Chain
	for b := range len(c.Starts) - 1 {
		var chain Chain
		for t := c.Starts[b]; t < c.Starts[b+1]; t++ {
			chain.Rows, chain.Gold = append(chain.Rows, t), append(chain.Gold, c.Gold[t])
		}
		chains = append(chains, chain)
	}
	return chains
}

type partMaker func(p *Pass, params Params, in map[string]*Node, c partCase) *Node

var partMakers = map[string]partMaker{
	"cross entropy smoothed":               labelsLoss,
	"cross entropy weighted":               labelsLoss,
	"cross entropy smoothed and weighted":  labelsLoss,
	"cross entropy focal":                  labelsLoss,
	"binary cross entropy":                 flagsLoss,
	"binary cross entropy weighted":        flagsLoss,
	"binary cross entropy focal":           flagsLoss,
	"binary cross entropy of large scores": flagsLoss,
	"number loss mse":                      numberLoss("mse"),
	"number loss mae":                      numberLoss("mae"),
	"number loss huber":                    numberLoss("huber"),
	"BiLSTM": func(p *Pass, params Params, in map[string]*Node, c partCase) *Node {
		return NewBiLSTM(params, 6, 5).Apply(p, in["x"], Rows{Starts: c.Starts})
	},
	"multi-head attention": func(p *Pass, params Params, in map[string]*Node, c partCase) *Node {
		return newMultiHead(params, 8, c.Heads).Apply(p, in["x"], Rows{Starts: c.Starts})
	},
	"focus sum":                      focused(false),
	"focus sum, a lens per head":     focused(false),
	"focus sum, as narrow as can be": focused(false),
	"focus softmax":                  focused(true),
	"focus softmax, a lens per head": focused(true),
	"CRF": func(_ *Pass, params Params, in map[string]*Node, c partCase) *Node {
		return NewCRF(params, 4, nil).Loss(in["x"], c.chains())
	},
	"span loss": func(_ *Pass, _ Params, in map[string]*Node, c partCase) *Node {
		return SpanLoss(in["x"], c.May, c.Spans, Rows{Starts: c.Starts})
	},
	"squared error": func(_ *Pass, _ Params, in map[string]*Node,
		_ partCase) *Node {
		return SquaredError(in["a"], in["b"])
	},
	"tied scores": func(_ *Pass, params Params, in map[string]*Node, _ partCase) *Node {
		tied := Linear{Weight: params.Normal("weight", 1, 5, 4), Bias: params.Zeros("bias", 5), Tied: true}
		return tied.Apply(in["x"])
	},
	"cosine": func(_ *Pass, _ Params, in map[string]*Node, _ partCase) *Node { return Cosine(in["a"], in["b"]) },
	"layer mix": func(_ *Pass, params Params, in map[string]*Node, _ partCase) *Node {
		var layers []*Node
		for l := range len(in) {
			layers = append(layers, in["x"+strconv.Itoa(l)])
		}
		return NewLayerMix(params, len(layers)).Apply(layers...)
	},
}

func labelsLoss(_ *Pass, _ Params, in map[string]*Node, c partCase) *Node {
	return c.loss().CrossEntropy(in["x"], c.Gold)
}

func flagsLoss(_ *Pass, _ Params, in map[string]*Node, c partCase) *Node {
	return c.loss().BinaryCrossEntropy(in["x"], c.flags())
}

func numberLoss(name string) partMaker {
	return func(_ *Pass, _ Params, in map[string]*Node, c partCase) *Node {
		return NumberLoss(in["x"], c.Values, []float32{1, 1, 1, 1, 1, 1}, Distances[name])
	}
}

func focused(twice bool) partMaker {
	return func(p *Pass, _ Params, in map[string]*Node, c partCase) *Node {
		return Focus{Heads: c.Heads, SoftmaxTwice: twice}.Apply(p, in["q"], in["k"], in["v"], in["mu"], in["sigma"],
			Rows{Starts: c.Starts})
	}
}

func TestPartsEqualPyTorchs(t *testing.T) {
	var file struct{ Cases map[string]partCase }
	readGolden(t, "testdata/parts.json", &file)
	if len(file.Cases) != len(partMakers) {
		t.Errorf("%d cases for %d parts", len(file.Cases), len(partMakers))
	}
	for name, c := range file.Cases {
		t.Run(name, func(t *testing.T) { c.check(t, partMakers[name]) })
	}
}

// check compares values and gradients.
func (c partCase) check(t *testing.T, build partMaker) {
	p, params := NewPass(1), NewParams(1)
	var at []*Node
	var dAt [][]float32
	var names []string
	in := map[string]*Node{}
	for name, x := range c.Inputs {
		in[name] = p.Input(x.Data, x.Shape...)
		at, dAt, names = append(at, in[name]), append(dAt, zeros(len(x.Data))), append(names, name)
	}
	y := build(p, params, in, c)
	for _, w := range params.All() {
		from, ok := c.Params[w.Name]
		if !ok || !slices.Equal(from.Shape, w.Shape) {
			t.Fatalf("parameter %s %v is not among the golden ones", w.Name, w.Shape)
		}
		copy(w.Data, from.Data)
	}
	loss := weighed(y, c.C)
	forward(t, p)
	checkGolden(t, "y", Values(y), c.Y)

	into := NewGradients(params.All())
	if err := p.Backward(loss, 1, into, at, dAt); err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		got, want := dAt[i], c.Inputs[name].Gradient
		if unit := c.Unit[name]; unit != 0 {
			for k := range got {
				got[k], want[k] = got[k]*unit, want[k]*unit
			}
		}
		checkGolden(t, "gradient at "+name, got, want)
	}
	for _, w := range params.All() {
		checkGolden(t, "gradient of "+w.Name, into.Of(w), c.Params[w.Name].Gradient)
	}
}

func zeros(n int) []float32 { return make([]float32, n) }

func TestCRFEqualsPyTorchs(t *testing.T) {
	var file struct {
		Chains []struct {
			Labels                          int
			Scores, Transitions, Start, End []float32
			Gold, Best                      []int
			Loss                            float64
			Gradients                       map[string][]float32 // of some chains: at the scores and the parameters
		}
	}
	readGolden(t, "testdata/parts.json", &file)
	if len(file.Chains) != 200 {
		t.Fatalf("%d chains, want 200", len(file.Chains))
	}
	compared := 0
	for i, c := range file.Chains {
		params := NewParams(1)
		crf := NewCRF(params, c.Labels, nil)
		copy(crf.Transitions.Data, c.Transitions)
		copy(crf.Start.Data, c.Start)
		copy(crf.End.Data, c.End)
		chain := chainOf(c.Gold)
		p := NewPass(1)
		scores := p.Input(c.Scores, len(c.Gold), c.Labels)
		loss := crf.Loss(scores, []Chain{chain})
		forward(t, p)
		if got := float64(Values(loss)[0]); !(math.Abs(got-c.Loss) <= 1e-5*math.Max(1, c.Loss)) {
			t.Errorf("chain %d: loss %v, want %v", i, got, c.Loss)
		}
		if tags, _ := crf.Decode(c.Scores, chain); !slices.Equal(tags, c.Best) {
			t.Errorf("chain %d: tags %v, want %v", i, tags, c.Best)
		}
		if c.Gradients == nil {
			continue
		}
		compared++
		into, d := NewGradients(params.All()), zeros(len(c.Scores))
		if err := p.Backward(loss, 1, into, []*Node{scores}, [][]float32{d}); err != nil {
			t.Fatal(err)
		}
		checkGolden(t, fmt.Sprintf("chain %d: gradient at the scores", i), d, c.Gradients["scores"])
		for _, w := range params.All() {
			checkGolden(t, fmt.Sprintf("chain %d: gradient of %s", i, w.Name), into.Of(w), c.Gradients[w.Name])
		}
	}
	if compared != 20 {
		t.Errorf("gradients of %d chains, want 20", compared)
	}
}
