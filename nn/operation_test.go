package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// noise returns n values from normal(0, 1), the same each time.
func noise(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// weigh returns Σ c·x with fixed random c: a loss in which all elements have different gradients.
func weigh(x *Node) *Node {
	c := noise(99, x.Shape().TotalSize())
	return Operation{
		Name: "weigh",
		Forward: func(in [][]float32, out []float32) {
			sum := 0.0
			for i, v := range in[0] {
				sum += float64(v) * float64(c[i])
			}
			out[0] = float32(sum)
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) { addScaled(dIn[0], c, dOut[0]) },
	}.Apply(x)
}

// threeTexts are rows of 1, 3 and 2 tokens.
var threeTexts = Rows{Starts: []int{0, 1, 4, 6}, Example: []int{0, 1, 2}}

// differentiable lists the operations: each makes a result of a node [6 4] and of parameters.
var differentiable = map[string]func(p *Pass, params Params, x *Node) *Node{
	"linear":        func(_ *Pass, w Params, x *Node) *Node { return NewLinear(w, 4, 3).Apply(x) },
	"dropout":       func(p *Pass, w Params, x *Node) *Node { return NewDropout(w, 0.4).Apply(p, x) },
	"cls pool":      func(_ *Pass, _ Params, x *Node) *Node { return ClsPool(Hidden{States: x, Rows: threeTexts}) },
	"mean pool":     func(_ *Pass, _ Params, x *Node) *Node { return MeanPool(Hidden{States: x, Rows: threeTexts}) },
	"max pool":      func(_ *Pass, _ Params, x *Node) *Node { return MaxPool(Hidden{States: x, Rows: threeTexts}) },
	"gather rows":   func(_ *Pass, _ Params, x *Node) *Node { return GatherRows(x, []int{5, 0, 5}) },
	"tanh":          func(_ *Pass, _ Params, x *Node) *Node { return Tanh(x) },
	"GELU":          func(_ *Pass, _ Params, x *Node) *Node { return GELU(x) },
	"scale":         func(_ *Pass, _ Params, x *Node) *Node { return Scale(x, -1.5) },
	"sum with self": func(_ *Pass, _ Params, x *Node) *Node { return Sum(x, x) },
	"scale rows":    func(_ *Pass, w Params, x *Node) *Node { return ScaleRows(x, NewLinear(w, 4, 1).Apply(x)) },
	"cross entropy": func(_ *Pass, _ Params, x *Node) *Node { return CrossEntropy(x, []int{0, 3, -1, 2, -2, 1}) },
	"attention pool": func(_ *Pass, w Params, x *Node) *Node {
		return NewAttentionPool(w, 4).Apply(Hidden{States: x, Rows: threeTexts})
	},
	"layer norm": func(_ *Pass, w Params, x *Node) *Node {
		l := NewLayerNorm(w, 4, 1e-5)
		copy(l.Weight.Data, noise(5, 4))
		copy(l.Bias.Data, noise(6, 4))
		return l.Apply(x)
	},
	"softmax per text": func(_ *Pass, w Params,
		x *Node) *Node {
		return SoftmaxPerText(NewLinear(w, 4, 1).Apply(x), threeTexts)
	},
	"add row": func(p *Pass, w Params, x *Node) *Node {
		return AddRow(x, p.Param(w.Normal("row", 1, 1, 4)))
	},
}

func TestGradients(t *testing.T) {
	for name, build := range differentiable {
		t.Run(name+" agrees with central differences", func(t *testing.T) {
			x, params := noise(1, 24), NewParams(3)
			weights := map[string]*Param{}
			p := NewPass(7)
			p.Training = true
			forward := func() (at, loss *Node) {
				p.Reset(0)
				tree := NewParams(3)
				at = p.Input(x, 6, 4)
				loss = build(p, tree, at)
				for i, w := range tree.All() { // the same parameters each time, where they can be moved
					if weights[w.Name] == nil {
						weights[w.Name] = w
						copy(w.Data, noise(uint64(i+20), len(w.Data)))
					} else {
						w.Data = append(w.Data[:0], weights[w.Name].Data...)
					}
				}
				if !loss.IsScalar() {
					loss = weigh(loss)
				}
				if err := p.Forward(); err != nil {
					t.Fatal(err)
				}
				params = tree
				return at, loss
			}

			at, loss := forward()
			into, dx := NewGradients(params.All()), [][]float32{noise(2, 24)}
			before := append([]float32(nil), dx[0]...)
			if err := p.Backward(loss, 2, into, []*Node{at}, dx); err != nil {
				t.Fatal(err)
			}
			for i := range dx[0] {
				dx[0][i] -= before[i]
			}

			value := func() float64 { _, l := forward(); return float64(Values(l)[0]) }
			checkGradient(t, "input", x, dx[0], 2, value)
			for name, w := range weights {
				checkGradient(t, name, w.Data, into.Of(w), 2, value)
			}
		})
	}
}

// checkGradient compares got with factor times the central differences of value by x.
func checkGradient(t *testing.T, name string, x, got []float32, factor float64, value func() float64) {
	t.Helper()
	const h = 1e-2
	var wrong, size float64
	for i := range x {
		was := x[i]
		x[i] = was + h
		up := value()
		x[i] = was - h
		down := value()
		x[i] = was
		want := factor * (up - down) / (2 * h)
		wrong += (want - float64(got[i])) * (want - float64(got[i]))
		size += want * want
	}
	// Float32 values of some units rounded at 2^-24 and divided by 2h, and h² of the third derivative.
	if !(math.Sqrt(wrong) <= 1e-3*math.Sqrt(size)+1e-3) {
		t.Errorf("gradient of %s is off by %.2g of %.2g", name, math.Sqrt(wrong), math.Sqrt(size))
	}
}

func TestApply(t *testing.T) {
	p := NewPass(1)
	x := p.Input(make([]float32, 6), 2, 3)
	for name, wrong := range map[string]func(){
		"linear of another width":     func() { NewLinear(NewParams(1), 4, 2).Apply(x) },
		"sum of two shapes":           func() { Sum(x, p.Input(make([]float32, 6), 3, 2)) },
		"label beyond the last":       func() { CrossEntropy(x, []int{0, 3}) },
		"labels for other rows":       func() { CrossEntropy(x, []int{0}) },
		"probabilities of other rows": func() { SoftCrossEntropy(x, make([]float32, 3), 1, nil) },
		"temperature 0":               func() { SoftBinaryCrossEntropy(x, make([]float32, 6), 0, nil) },
		"soft span of no side": func() {
			y := p.Input(make([]float32, 6), 3, 2)
			SoftSpanLoss(y, []bool{true, false, true}, []float32{0, 0, 1, 0, 0, 0}, 1, Rows{Starts: []int{0, 3}})
		},
		"row beyond the last":        func() { GatherRows(x, []int{2}) },
		"pool of other tokens":       func() { MaxPool(Hidden{States: x, Rows: threeTexts}) },
		"an input of another size":   func() { p.Input(make([]float32, 5), 2, 3) },
		"operations over two passes": func() { Sum(x, NewPass(1).Input(make([]float32, 6), 2, 3)) },
		"a shape too large to count": func() { Operation{Name: "wide", Shape: []int{1 << 20, 1 << 20}}.Apply(x) },
		"values before Forward":      func() { Values(Tanh(x)) },
		"backward at one node twice": func() {
			dx := make([]float32, 6)
			p.Backward(CrossEntropy(x, []int{0, 1}), 1, Gradients{}, []*Node{x, x}, [][]float32{dx, dx})
		},
		"backward from what is no number": func() { p.Backward(x, 1, Gradients{}, nil, nil) },
	} {
		t.Run(name+" panics and says so", func(t *testing.T) {
			defer func() {
				if s := fmt.Sprint(recover()); len(s) < 4 || s[:4] != "nn: " {
					t.Errorf("panic %q, want one that starts with nn:", s)
				}
			}()
			wrong()
		})
	}
}
