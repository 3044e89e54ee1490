package nn

import (
	"math"
	"slices"
	"sync"
	"testing"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

func forward(t *testing.T, p *Pass) {
	t.Helper()
	if err := p.Forward(); err != nil {
		t.Fatal(err)
	}
}

// gradient returns factor times the loss's gradient at a node.
func gradient(t *testing.T, p *Pass, loss *Node, factor float32, at *Node) []float32 {
	t.Helper()
	d := make([]float32, max(1, at.Shape().TotalSize()))
	if err := p.Backward(loss, factor, Gradients{}, []*Node{at}, [][]float32{d}); err != nil {
		t.Fatal(err)
	}
	return d
}

func near(got, want []float32, tolerance float64) bool {
	if len(got) != len(want) {
		return false
	}
	for i := range got {
		if !(math.Abs(float64(got[i])-float64(want[i])) <= tolerance) {
			return false
		}
	}
	return true
}

func TestNodesDoNotMerge(t *testing.T) {
	t.Run("inputs that print alike are two", func(t *testing.T) {
		p := NewPass(1)
		a, b := noise(1, 4096), noise(1, 4096)
		b[2000]++
		sum := Sum(p.Input(a, 64, 64), Scale(p.Input(b, 64, 64), -1))
		forward(t, p)
		if got := Values(sum)[2000]; got != -1 {
			t.Errorf("difference of two inputs = %v, want -1", got)
		}
	})

	t.Run("dropouts of one rate have masks of their own", func(t *testing.T) {
		p, params := NewPass(1), NewParams(1)
		p.Training = true
		x := p.Input(slices.Repeat([]float32{1}, 1000), 10, 100)
		a := NewDropout(params.In("a"), 0.5).Apply(p, x)
		b := NewDropout(params.In("b"), 0.5).Apply(p, x)
		again := NewDropout(params.In("a"), 0.5).Apply(p, x)
		forward(t, p)
		if slices.Equal(Values(a), Values(b)) {
			t.Error("two places share a mask")
		}
		if !slices.Equal(Values(a), Values(again)) {
			t.Error("one place has two masks")
		}
	})

	t.Run("losses on the same scores are two", func(t *testing.T) {
		p := NewPass(1)
		x := p.Input([]float32{1, 2, 4}, 1, 3)
		a, b := CrossEntropy(x, []int{0}), CrossEntropy(x, []int{2})
		forward(t, p)
		if got := Values(a)[0] - Values(b)[0]; got != 3 {
			t.Errorf("losses differ by %v, want 3", got)
		}
	})
}

func TestBackwardTwice(t *testing.T) {
	p, params := NewPass(1), NewParams(1)
	layer, unused := NewLinear(params, 3, 2), params.Zeros("unused", 4)
	x := p.Input(noise(1, 12), 4, 3)
	y := layer.Apply(x)
	squares := gorgonia.Must(gorgonia.Square(y))
	first, second := weigh(y), gorgonia.Must(gorgonia.Sum(squares))
	elsewhere := p.Input([]float32{1, 2}, 1, 2)
	third := CrossEntropy(elsewhere, []int{1})
	forward(t, p)
	values := slices.Clone(Values(y))

	alone := func(loss *Node) []float32 { return gradient(t, p, loss, 1, x) }
	a, b := alone(first), alone(second)

	t.Run("the same loss again gives the same gradient", func(t *testing.T) {
		if got := alone(first); !slices.Equal(got, a) {
			t.Errorf("second gradient %v, want %v", got, a)
		}
		if got := alone(second); !slices.Equal(got, b) {
			t.Errorf("second gradient through gorgonia %v, want %v", got, b)
		}
	})
	t.Run("another factor scales it", func(t *testing.T) {
		got, want := gradient(t, p, second, -2, x), slices.Clone(b)
		for i := range want {
			want[i] *= -2
		}
		if !near(got, want, 1e-5) {
			t.Errorf("gradient times -2 is %v, want %v", got, want)
		}
	})
	t.Run("gradients add to what is there", func(t *testing.T) {
		into, sum := NewGradients(params.All()), make([]float32, 12)
		for _, loss := range []*Node{first, second} {
			if err := p.Backward(loss, 1, into, []*Node{x}, [][]float32{sum}); err != nil {
				t.Fatal(err)
			}
		}
		for i := range a {
			if !(math.Abs(float64(sum[i]-a[i]-b[i])) <= 1e-5) {
				t.Errorf("gradient at %d is %v, want %v", i, sum[i], a[i]+b[i])
			}
		}
		if slices.Max(into.Of(unused)) != 0 {
			t.Errorf("a parameter that no loss uses has the gradient %v", into.Of(unused))
		}
	})
	t.Run("what was made in between stays", func(t *testing.T) {
		later := Scale(y, 3) // not computed yet
		alone(second)
		p.Floats(64)[0] = 99
		if got := Values(later); got[0] != 3*values[0] {
			t.Errorf("its value is %v, want %v", got[0], 3*values[0])
		}
	})
	t.Run("losses on other parts leave a node alone", func(t *testing.T) {
		if got := alone(third); slices.Max(got) != 0 || slices.Min(got) != 0 {
			t.Errorf("gradient of a loss elsewhere is %v", got)
		}
		want := []float32{0.26894143, -0.26894143} // softmax(1, 2) less the label
		if got := gradient(t, p, third, 1, elsewhere); !near(got, want, 1e-6) {
			t.Errorf("gradient = %v, want %v", got, want)
		}
	})
	t.Run("a node between gets its gradient too", func(t *testing.T) {
		if got, want := gradient(t, p, second, 1, y), values; !near(got, doubled(want), 1e-6) {
			t.Errorf("gradient of Σy² at y is %v, want %v", got, doubled(want))
		}
	})
	t.Run("values stay as they are", func(t *testing.T) {
		if !slices.Equal(Values(y), values) {
			t.Errorf("values are %v, were %v", Values(y), values)
		}
	})
}

func doubled(x []float32) []float32 {
	y := slices.Clone(x)
	add(y, x)
	return y
}

// gorgonias lists operations of gorgonia's on x [6 4], whose elements are positive.
var gorgonias = map[string]func(p *Pass, x *Node) *Node{
	"matrix product":      func(p *Pass, x *Node) *Node { return must(gorgonia.Mul(x, p.Input(noise(3, 8), 4, 2))) },
	"product with itself": func(p *Pass, x *Node) *Node { return must(gorgonia.Mul(x, must(gorgonia.Transpose(x)))) },
	"matrix times vector": func(p *Pass, x *Node) *Node { return must(gorgonia.Mul(x, p.Input(noise(3, 4), 4))) },
	"sum of equals":       func(p *Pass, x *Node) *Node { return must(gorgonia.Add(x, x)) },
	"difference":          func(p *Pass, x *Node) *Node { return must(gorgonia.Sub(x, p.Input(noise(3, 24), 6, 4))) },
	"elementwise product": func(p *Pass, x *Node) *Node { return must(gorgonia.HadamardProd(x, x)) },
	"elementwise quotient": func(p *Pass,
		x *Node) *Node {
		return must(gorgonia.HadamardDiv(must(gorgonia.Exp(x)), x))
	},
	"number times matrix": func(p *Pass, x *Node) *Node { return must(gorgonia.Mul(must(gorgonia.Sum(x)), x)) },
	"constant times matrix": func(p *Pass,
		x *Node) *Node {
		return must(gorgonia.Mul(x, gorgonia.NewConstant(float32(-3))))
	},
	"sum of all":        func(p *Pass, x *Node) *Node { return must(gorgonia.Sum(x)) },
	"sum along rows":    func(p *Pass, x *Node) *Node { return must(gorgonia.Sum(x, 1)) },
	"sum along columns": func(p *Pass, x *Node) *Node { return must(gorgonia.Sum(x, 0)) },
	"mean":              func(p *Pass, x *Node) *Node { return must(gorgonia.Mean(x)) },
	"slice":             func(p *Pass, x *Node) *Node { return must(gorgonia.Slice(x, gorgonia.S(1, 4))) },
	"one row":           func(p *Pass, x *Node) *Node { return row(x, 2) },
	"concatenation": func(p *Pass,
		x *Node) *Node {
		return must(gorgonia.Concat(1, x, must(gorgonia.Square(x))))
	},
	"reshape":   func(p *Pass, x *Node) *Node { return must(gorgonia.Reshape(x, tensor.Shape{4, 6})) },
	"transpose": func(p *Pass, x *Node) *Node { return must(gorgonia.Transpose(x)) },
	"transposed and reshaped": func(p *Pass, x *Node) *Node {
		return must(gorgonia.Reshape(must(gorgonia.Transpose(x)), tensor.Shape{24}))
	},
	"exponential": func(p *Pass, x *Node) *Node { return must(gorgonia.Exp(x)) },
	"logarithm":   func(p *Pass, x *Node) *Node { return must(gorgonia.Log(x)) },
	"square root": func(p *Pass, x *Node) *Node { return must(gorgonia.Sqrt(x)) },
	"cube":        func(p *Pass, x *Node) *Node { return must(gorgonia.Cube(x)) },
	"inverse":     func(p *Pass, x *Node) *Node { return must(gorgonia.Inverse(x)) },
	"sigmoid":     func(p *Pass, x *Node) *Node { return must(gorgonia.Sigmoid(x)) },
	"tanh":        func(p *Pass, x *Node) *Node { return must(gorgonia.Tanh(x)) },
	"softplus":    func(p *Pass, x *Node) *Node { return must(gorgonia.Softplus(x)) },
	"rectifier":   func(p *Pass, x *Node) *Node { return must(gorgonia.Rectify(x)) },
	"broadcast sum": func(p *Pass, x *Node) *Node {
		return must(gorgonia.BroadcastAdd(x, must(gorgonia.Reshape(row(x, 0), tensor.Shape{1, 4})), nil, []byte{0}))
	},
	"vector product": func(p *Pass, x *Node) *Node { return must(gorgonia.Mul(row(x, 0), row(x, 1))) },
	"power": func(p *Pass,
		x *Node) *Node {
		return must(gorgonia.Pow(x, gorgonia.NewConstant(float32(3))))
	},
	"power of itself":      func(p *Pass, x *Node) *Node { return must(gorgonia.Pow(x, x)) },
	"maximum of columns":   func(p *Pass, x *Node) *Node { return must(gorgonia.Max(x, 0)) },
	"maximum of rows":      func(p *Pass, x *Node) *Node { return must(gorgonia.Max(x, 1)) },
	"maximum":              func(p *Pass, x *Node) *Node { return must(gorgonia.Max(x)) },
	"softmax":              func(p *Pass, x *Node) *Node { return must(gorgonia.SoftMax(x)) },
	"softmax down columns": func(p *Pass, x *Node) *Node { return must(gorgonia.SoftMax(x, 0)) },
	"log softmax":          func(p *Pass, x *Node) *Node { return must(gorgonia.LogSoftMax(x)) },
	"batched product": func(p *Pass, x *Node) *Node {
		y := must(gorgonia.Reshape(x, tensor.Shape{2, 3, 4}))
		return must(gorgonia.BatchedMatMul(y, must(gorgonia.Transpose(y, 0, 2, 1))))
	},
	"matrix over number": func(p *Pass, x *Node) *Node { return must(gorgonia.Div(x, must(gorgonia.Sum(x)))) },
	"number over matrix": func(p *Pass, x *Node) *Node { return must(gorgonia.Div(must(gorgonia.Sum(x)), x)) },
	"number less matrix": func(p *Pass, x *Node) *Node { return must(gorgonia.Sub(must(gorgonia.Sum(x)), x)) },
	"matrix less number": func(p *Pass, x *Node) *Node { return must(gorgonia.Sub(x, must(gorgonia.Sum(x)))) },
	"norm":               func(p *Pass, x *Node) *Node { return must(gorgonia.Norm(x, 0, 2)) },
	"absolute value":     func(p *Pass, x *Node) *Node { return must(gorgonia.Abs(x)) },
	"negative":           func(p *Pass, x *Node) *Node { return must(gorgonia.Neg(x)) },
	"log1p":              func(p *Pass, x *Node) *Node { return must(gorgonia.Log1p(x)) },
	"expm1":              func(p *Pass, x *Node) *Node { return must(gorgonia.Expm1(x)) },
	"sine":               func(p *Pass, x *Node) *Node { return must(gorgonia.Sin(x)) },
	"cosine":             func(p *Pass, x *Node) *Node { return must(gorgonia.Cos(x)) },
	"slice of columns":   func(p *Pass, x *Node) *Node { return must(gorgonia.Slice(x, nil, gorgonia.S(1, 3))) },
	"one column":         func(p *Pass, x *Node) *Node { return must(gorgonia.Slice(x, nil, gorgonia.S(1))) },
	"rows on rows":       func(p *Pass, x *Node) *Node { return must(gorgonia.Concat(0, x, must(gorgonia.Square(x)))) },
	"transpose of three axes": func(p *Pass, x *Node) *Node {
		y := must(gorgonia.Reshape(x, tensor.Shape{2, 3, 4}))
		return must(gorgonia.Transpose(y, 2, 0, 1))
	},
	"sum along two axes": func(p *Pass, x *Node) *Node {
		y := must(gorgonia.Reshape(x, tensor.Shape{2, 3, 4}))
		return must(gorgonia.Sum(y, 0, 2))
	},
	"sum along the middle axis": func(p *Pass, x *Node) *Node {
		y := must(gorgonia.Reshape(x, tensor.Shape{2, 3, 4}))
		return must(gorgonia.Sum(y, 1))
	},
	"mean of columns": func(p *Pass, x *Node) *Node { return must(gorgonia.Mean(x, 0)) },
	"mean of rows":    func(p *Pass, x *Node) *Node { return must(gorgonia.Mean(x, 1)) },
	"broadcast product": func(p *Pass, x *Node) *Node {
		return must(gorgonia.BroadcastHadamardProd(x, must(gorgonia.Reshape(row(x, 0), tensor.Shape{1, 4})), nil,
			[]byte{0}))
	},
	"broadcast difference": func(p *Pass, x *Node) *Node {
		return must(gorgonia.BroadcastSub(x,
			must(gorgonia.Reshape(must(gorgonia.Slice(x, nil, gorgonia.S(1))), tensor.Shape{6, 1})), nil, []byte{1}))
	},
	"transposed times vector": func(p *Pass, x *Node) *Node {
		return must(gorgonia.Mul(must(gorgonia.Transpose(x)), p.Input(noise(3, 6), 6)))
	},
	"comparison": func(p *Pass, x *Node) *Node {
		return must(gorgonia.HadamardProd(must(gorgonia.Gt(x, gorgonia.NewConstant(float32(1)), true)), x))
	},
	"leaky rectifier": func(p *Pass, x *Node) *Node { return must(gorgonia.LeakyRelu(x, 0.1)) },
	"contraction":     func(p *Pass, x *Node) *Node { return must(gorgonia.Tensordot([]int{0}, []int{0}, x, x)) },
	"rows by index": func(p *Pass, x *Node) *Node {
		i := gorgonia.NewTensor(x.Graph(), tensor.Int, 1, gorgonia.WithShape(2), gorgonia.WithName("i"),
			gorgonia.WithValue(tensor.New(tensor.WithBacking([]int{5, 1}))))
		return must(gorgonia.ByIndices(x, i, 0))
	},
	"sparsemax": func(p *Pass, x *Node) *Node { return must(gorgonia.Sparsemax(x)) },
	"numbers": func(p *Pass, x *Node) *Node {
		s := must(gorgonia.Sum(x))
		return must(gorgonia.Mul(s, must(gorgonia.Log(s))))
	},
	"ours between": func(p *Pass, x *Node) *Node { return must(gorgonia.Square(Tanh(must(gorgonia.Square(x))))) },
}

func must(n *Node, err error) *Node { return gorgonia.Must(n, err) }

func row(x *Node, i int) *Node { return must(gorgonia.Slice(x, gorgonia.S(i))) }

func TestGorgonia(t *testing.T) {
	for name, build := range gorgonias {
		t.Run(name+" has the gradient of central differences", func(t *testing.T) {
			x := noise(1, 24)
			for i := range x {
				x[i] = 0.5 + x[i]*x[i]
			}
			p := NewPass(1)
			forward := func() (*Node, *Node) {
				p.Reset(0)
				at := p.Input(x, 6, 4)
				loss := build(p, at)
				if !loss.IsScalar() {
					loss = weigh(loss)
				}
				forward(t, p)
				return at, loss
			}
			before := slices.Clone(x)
			at, loss := forward()
			got := gradient(t, p, loss, 1, at)
			if !slices.Equal(x, before) {
				t.Fatal("the input was overwritten")
			}
			checkGradient(t, "x", x, got, 1, func() float64 { _, l := forward(); return float64(Values(l)[0]) })
		})
	}

	for name, y := range map[string]func(p *Pass, x *Node) *Node{
		"log2":         func(_ *Pass, x *Node) *Node { return must(gorgonia.Log2(x)) },
		"inverse root": func(_ *Pass, x *Node) *Node { return must(gorgonia.InverseSqrt(x)) },
		"outer product": func(p *Pass, x *Node) *Node {
			return must(gorgonia.OuterProd(row(x, 1), p.Input(noise(3, 4), 4)))
		},
		"element": func(_ *Pass, x *Node) *Node { return must(gorgonia.At(x, 1, 2)) },
	} {
		t.Run("a derivative that gorgonia gets wrong is an error: "+name, func(t *testing.T) {
			p := NewPass(1)
			x := p.Input(noise(1, 24), 6, 4)
			loss := y(p, x)
			if !loss.IsScalar() {
				loss = weigh(loss)
			}
			forward(t, p)
			if err := p.Backward(loss, 1, Gradients{}, []*Node{x}, [][]float32{make([]float32, 24)}); err == nil {
				t.Error("Backward finds nothing wrong")
			}
			if err := p.Backward(loss, 1, Gradients{}, nil, nil); err != nil {
				t.Errorf("Backward where no gradient is required: %v", err)
			}
		})
	}

	t.Run("each node has memory of its own", func(t *testing.T) {
		p := NewPass(1)
		x := p.Input([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
		reshaped := must(gorgonia.Reshape(x, tensor.Shape{3, 2}))
		turned := must(gorgonia.Transpose(x))
		alone := must(gorgonia.Concat(0, x))
		gold := must(gorgonia.Sub(x, p.Input([]float32{1, 1, 1, 1, 1, 1}, 2, 3)))
		forward(t, p)
		for _, n := range []*Node{reshaped, turned, alone, gold} {
			Values(n)[0] = 99
		}
		if Values(x)[0] != 1 {
			t.Error("a result stands in its input's memory")
		}
		if got := x.Shape(); !got.Eq(tensor.Shape{2, 3}) {
			t.Errorf("the input's shape is %v", got)
		}
		if got, want := Values(turned)[1:], []float32{4, 2, 5, 3, 6}; !slices.Equal(got, want) {
			t.Errorf("transposed values %v, want %v", got, want)
		}
	})

	t.Run("a failing operation is an error with its name", func(t *testing.T) {
		p := NewPass(1)
		if _, err := gorgonia.Mul(p.Input(make([]float32, 6), 2, 3), p.Input(make([]float32, 4), 4)); err != nil {
			t.Skip("gorgonia sees it at building")
		}
		if err := p.Forward(); err == nil {
			t.Error("Forward of a matrix [2 3] times a vector [4] is no error")
		}
	})

	t.Run("an operation of ours runs in gorgonia's machines", func(t *testing.T) {
		p := NewPass(1)
		x := p.Input([]float32{0, 1}, 1, 2)
		y := Tanh(x)
		for range 2 { // its type is built anew each time
			if y.Op().Type() == nil || y.Op().Arity() != 1 {
				t.Error("no type")
			}
		}
		v, err := y.Op().Do(x.Value())
		if err != nil || !near(v.Data().([]float32), []float32{0, 0.7615942}, 1e-7) {
			t.Errorf("Do = %v, %v", v, err)
		}
	})

	t.Run("an operation of ours takes constants of gorgonia's", func(t *testing.T) {
		p := NewPass(1)
		c := gorgonia.NewConstant(tensor.New(tensor.WithBacking([]float32{3, 4}), tensor.WithShape(1, 2)))
		x := p.Input([]float32{1, 2}, 1, 2)
		y := Sum(x, c)
		loss := weigh(y)
		forward(t, p)
		if got, want := Values(y), []float32{4, 6}; !slices.Equal(got, want) {
			t.Errorf("sum with a constant = %v, want %v", got, want)
		}
		if got, want := gradient(t, p, loss, 1, x), noise(99, 2); !near(got, want, 1e-6) {
			t.Errorf("gradient beside a constant = %v, want %v", got, want)
		}
	})

	t.Run("a value is bound to its node", func(t *testing.T) {
		p := NewPass(1)
		y := Scale(p.Input([]float32{2}, 1, 1), 3)
		var read gorgonia.Value
		gorgonia.Read(y, &read)
		number := CrossEntropy(y, []int{0})
		forward(t, p)
		if got := y.Value().Data(); got.([]float32)[0] != 6 {
			t.Errorf("Value() = %v, want 6", got)
		}
		if got := number.Value().Data(); got.(float32) != 0 {
			t.Errorf("Value() = %v, want 0", got)
		}
	})
}

func TestProducts(t *testing.T) {
	const rows, k, n = 2048, 37, 19
	a, b := noise(1, rows*k), noise(2, k*n)
	product := func(a []float32, rows int, b []float32, transposed bool) []float32 {
		p := NewPass(1)
		w := p.Input(b, k, n)
		if transposed {
			w = must(gorgonia.Transpose(p.Input(b, n, k)))
		}
		y := must(gorgonia.Mul(p.Input(a, rows, k), w))
		forward(t, p)
		return Values(y)
	}
	for _, transposed := range []bool{false, true} {
		all := product(a, rows, b, transposed)
		shifted := append(make([]float32, 1, 1+k), a[1000*k:1001*k]...)[1:] // at another alignment
		if got := product(shifted, 1, b, transposed); !slices.Equal(got, all[1000*n:1001*n]) {
			t.Errorf("a row alone and among %d differ in gorgonia's product (transposed %v)", rows, transposed)
		}
	}

	t.Run("a row times a vector is the same alone and in a matrix", func(t *testing.T) {
		v := noise(3, k)
		times := func(a []float32, rows int) []float32 {
			p := NewPass(1)
			y := must(gorgonia.Mul(p.Input(a, rows, k), p.Input(v, k)))
			forward(t, p)
			return Values(y)
		}
		all := times(a[:100*k], 100)
		if got := times(a[99*k:100*k], 1); got[0] != all[99] {
			t.Errorf("row 99 alone gives %v, among 100 %v", got[0], all[99])
		}
	})
}

func TestEmptyRows(t *testing.T) {
	p, params := NewPass(1), NewParams(1)
	layer := NewLinear(params, 3, 2)
	x := p.Input(noise(1, 6), 2, 3)
	y := layer.Apply(Tanh(GatherRows(x, nil)))
	loss := CrossEntropy(y, nil)
	forward(t, p)
	if got := Values(y); len(got) != 0 {
		t.Errorf("scores of no rows are %v", got)
	}
	if got := Values(loss); got[0] != 0 {
		t.Errorf("loss of no rows is %v", got)
	}
	if got := gradient(t, p, loss, 1, x); slices.Max(got) != 0 {
		t.Errorf("gradient of no rows is %v", got)
	}
}

func TestPassesAtOnce(t *testing.T) {
	params := NewParams(1)
	layer := NewLinear(params, 8, 3)
	once := func(p *Pass) []float32 {
		p.Reset(5)
		x := p.Input(noise(1, 48), 6, 8)
		y := must(gorgonia.Square(layer.Apply(x)))
		loss := must(gorgonia.Sum(MaxPool(Hidden{States: y, Rows: threeTexts})))
		forward(t, p)
		return append(gradient(t, p, loss, 1, x), Values(loss)...)
	}
	want := once(NewPass(1))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			p := NewPass(1)
			for range 20 {
				if got := once(p); !slices.Equal(got, want) {
					t.Errorf("gradient %v, alone %v", got, want)
				}
			}
		})
	}
	wg.Wait()
}

func TestEmitPerText(t *testing.T) {
	p := NewPass(1)
	kept := map[int][]float32{}
	p.Observe("shares", func(text int, shape []int, values []float32) { kept[text] = slices.Clone(values) })
	scores := p.Input([]float32{1e4, -1e4, 1e4, 0, 3, 3}, 6, 1)
	p.EmitPerText("shares", SoftmaxPerText(scores, threeTexts), threeTexts)
	p.EmitPerText("others", scores, threeTexts)
	forward(t, p)
	for text, want := range [][]float32{{1}, {0, 1, 0}, {0.5, 0.5}} {
		if !near(kept[text], want, 1e-7) {
			t.Errorf("text %d has probabilities %v, want %v", text, kept[text], want)
		}
	}
}

func TestDropout(t *testing.T) {
	p, params := NewPass(1), NewParams(1)
	x := p.Input(slices.Repeat([]float32{1}, 100_000), 100, 1000)
	d := NewDropout(params.In("d"), 0.3)
	if d.Apply(p, x) != x {
		t.Error("dropout does something in evaluation")
	}
	p.Training = true
	if NewDropout(params.In("e"), 0).Apply(p, x) != x {
		t.Error("a dropout of 0 does something")
	}
	y := d.Apply(p, x)
	forward(t, p)
	kept := 0
	for _, v := range Values(y) {
		switch v {
		case 0:
		case float32(1 / 0.7):
			kept++
		default:
			t.Fatalf("dropout makes 1 to %v", v)
		}
	}
	if kept < 69_275 || kept > 70_725 { // five standard deviations of 100,000 trials with probability 0.7
		t.Errorf("kept %d of 100,000, want about 70,000", kept)
	}
	was := slices.Clone(Values(y))
	p.Reset(1)
	y = d.Apply(p, p.Input(slices.Repeat([]float32{1}, 100_000), 100, 1000))
	forward(t, p)
	if slices.Equal(Values(y), was) {
		t.Error("two steps have one mask")
	}
}

func BenchmarkGraph(b *testing.B) {
	const texts, tokens, width = 32, 12, 32
	rows := Rows{Starts: []int{0}}
	for i := range texts {
		rows.Starts, rows.Example = append(rows.Starts, (i+1)*tokens), append(rows.Example, i)
	}
	params := NewParams(1)
	layer, drop := NewLinear(params.In("score"), width, 7), NewDropout(params.In("drop"), 0.1)
	x, dx, gold := noise(1, texts*tokens*width), make([]float32, texts*tokens*width), make([]int, texts)
	p, into := NewPass(1), NewGradients(params.All())
	p.Training = true
	for i := range b.N {
		p.Reset(uint64(i))
		at := p.Input(x, texts*tokens, width)
		loss := CrossEntropy(layer.Apply(drop.Apply(p, MaxPool(Hidden{States: at, Rows: rows}))), gold)
		if err := p.Forward(); err != nil {
			b.Fatal(err)
		}
		if err := p.Backward(loss, 1, into, []*Node{at}, [][]float32{dx}); err != nil {
			b.Fatal(err)
		}
	}
}
