package nn

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// states returns n numbers from normal(0, by).
func states(seed uint64, n int, by float64) []float32 {
	r := rand.New(rand.NewPCG(seed, 1))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * by)
	}
	return x
}

func finite(t *testing.T, what string, x []float32) {
	t.Helper()
	for i, v := range x {
		if v-v != 0 {
			t.Fatalf("%s at %d is %v", what, i, v)
		}
	}
}

// attention returns softmax(Q·Kᵀ/√d)·V of each text over its own rows, for each of the heads, which divide the columns
// evenly, d each: q, k and v [T D] (Vaswani et al. 2017, equation 1). Its memory grows with the length of a text, not
// with its square.
func attention(p *Pass, q, k, v *Node, rows Rows, heads int) *Node {
	tokens, width := rows.Tokens(), q.Shape()[1]
	for _, x := range []*Node{q, k, v} {
		if n := rowsOf("attention", x, width); n != tokens {
			panic(fmt.Sprintf("nn: attention of %d rows for %d tokens", n, tokens))
		}
	}
	if heads < 1 || width%heads != 0 {
		panic(fmt.Sprintf("nn: attention of width %d with %d heads", width, heads))
	}
	a := kernel.Attention{Starts: rows.Starts, Heads: heads, Width: width}
	normalizers := make([]float32, heads*tokens)
	return Operation{
		Name: "attention", Shape: []int{tokens, width},
		Forward: func(in [][]float32, out []float32) {
			a.Forward(out, normalizers, in[0], in[1], in[2])
		},
		Backward: func(in [][]float32, out, dOut []float32, dIn [][]float32) {
			var d [3][]float32
			for i := range d {
				d[i] = p.Scratch(len(out))
			}
			a.Backward(d[0], d[1], d[2], in[0], in[1], in[2], out, normalizers, dOut)
			for i := range d {
				if dIn[i] != nil {
					kernel.Add(dIn[i], d[i])
				}
			}
		},
	}.Apply(q, k, v)
}

// multiHead is Concat(head_1 … head_h)·W_O with head_i = Attention(x·W_Qi, x·W_Ki, x·W_Vi) (Vaswani et al. 2017,
// section 3.2.2), of each text over its own rows.
type multiHead struct {
	query, key, value, out *Linear
	heads                  int
}

// newMultiHead makes four linear layers, "query", "key", "value" and "out". The number of heads divides the width.
func newMultiHead(params Params, width, heads int) *multiHead {
	return &multiHead{
		query: NewLinear(params.In("query"), width, width), key: NewLinear(params.In("key"), width, width),
		value: NewLinear(params.In("value"), width, width), out: NewLinear(params.In("out"), width, width),
		heads: heads,
	}
}

// Apply maps states [T D] to [T D].
func (m *multiHead) Apply(p *Pass, x *Node, rows Rows) *Node {
	q, k, v := m.query.Apply(x), m.key.Apply(x), m.value.Apply(x) // [T D] each
	return m.out.Apply(attention(p, q, k, v, rows, m.heads))
}

// attended runs attention over texts and returns its result and the gradients at q, k and v of the sum of its
// squares/2.
func attended(t *testing.T, q, k, v []float32, width, heads int, starts []int) (out []float32, d [3][]float32) {
	t.Helper()
	p := NewPass(1)
	rows := Rows{Starts: starts}
	var at []*Node
	var dAt [][]float32
	for i, x := range [][]float32{q, k, v} {
		at = append(at, p.Input(x, rows.Tokens(), width))
		d[i] = zeros(len(x))
		dAt = append(dAt, d[i])
	}
	y := attention(p, at[0], at[1], at[2], rows, heads)
	loss := halfSquares(y)
	forward(t, p)
	if err := p.Backward(loss, 1, Gradients{}, at, dAt); err != nil {
		t.Fatal(err)
	}
	return Values(y), d
}

// halfSquares is Σ x²/2.
func halfSquares(x *Node) *Node {
	return Operation{
		Name:     "half squares",
		Forward:  func(in [][]float32, out []float32) { out[0] = dot(in[0], in[0]) / 2 },
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) { addScaled(dIn[0], in[0], dOut[0]) },
	}.Apply(x)
}

// The three failures of a naive implementation of attention: overflow, memory of T², vanishing gradients.
func TestAttentionOfLargeLogitsDoesNotOverflow(t *testing.T) {
	const tokens, width = 9, 4
	for _, size := range []float64{1e4, -1e4} {
		q, k, v := zeros(tokens*width), zeros(tokens*width), states(3, tokens*width, 1)
		for i := range tokens { // logits of ±size with the token itself, 0 with others
			q[i*width+i%width] = float32(math.Sqrt(math.Abs(size) * math.Sqrt(width)))
			k[i*width+i%width] = q[i*width+i%width] * float32(math.Copysign(1, size))
		}
		out, d := attended(t, q, k, v, width, 1, []int{0, tokens})
		finite(t, "attention", out)
		for i, name := range []string{"queries", "keys", "values"} {
			finite(t, "gradient at the "+name, d[i])
		}
		if size > 0 { // all of a query's weight is on the tokens with its own feature
			for i := range tokens {
				want, n := 0.0, 0.0
				for j := i % width; j < tokens; j += width {
					want += float64(v[j*width])
					n++
				}
				if got := float64(out[i*width]); !(math.Abs(got-want/n) <= 1e-4) {
					t.Errorf("row %d is %v, want %v", i, got, want/n)
				}
			}
		}
	}
}

// growsWithTokens fails where a pass over four times as many tokens takes memory that grows with their square.
func growsWithTokens(t *testing.T, what string, tokens, heads int, pass func(tokens int)) {
	t.Helper()
	allocated := func(tokens int) float64 {
		least := math.Inf(1)
		for range 8 { // pools fill in the first, and now and then have given away what they had
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			pass(tokens)
			runtime.ReadMemStats(&after)
			least = min(least, float64(after.TotalAlloc-before.TotalAlloc))
		}
		return least
	}
	short, long := allocated(tokens), allocated(4*tokens)
	if !(long <= 6*short) { // the square of four times the tokens is 16 times
		t.Errorf("%s: %d tokens take %.3g bytes, %d take %.3g", what, tokens, short, 4*tokens, long)
	}
	if square := 4.0 * float64(heads*4*tokens*4*tokens); !(long <= square/4) {
		t.Errorf("%s: %d tokens take %.3g bytes; the maps have %.3g", what, 4*tokens, long, square)
	}
}

// skipShort leaves out what is measured by allocations: with the race detector, which short tests run with, pools give
// memory away at random.
func skipShort(t *testing.T) {
	if testing.Short() {
		t.Skip("allocations are counted in long tests")
	}
}

func TestAttentionsMemoryGrowsWithTheTextsLength(t *testing.T) {
	skipShort(t)
	const width, heads = 16, 2
	growsWithTokens(t, "attention", 1024, heads, func(tokens int) {
		q, k, v := states(1, tokens*width, 1), states(2, tokens*width, 1), states(3, tokens*width, 1)
		attended(t, q, k, v, width, heads, []int{0, tokens})
	})
}

func TestGradientsPassThroughLongChainsOfAttention(t *testing.T) {
	const tokens, width, heads, depth = 12, 8, 2, 24
	p, params := NewPass(1), NewParams(5)
	rows := Rows{Starts: []int{0, tokens}}
	x := p.Input(states(4, tokens*width, 1), tokens, width)
	y := x
	for i := range depth { // as a transformer's blocks
		at := params.In(string(rune('a' + i)))
		m := newMultiHead(at, width, heads)
		y = NewLayerNorm(at.In("norm"), width, 1e-12).Apply(Sum(y, m.Apply(p, y, rows)))
	}
	weights := states(6, tokens*width, 1)
	loss := Operation{
		Name:     "weigh",
		Forward:  func(in [][]float32, out []float32) { out[0] = dot(in[0], weights) },
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) { addScaled(dIn[0], weights, dOut[0]) },
	}.Apply(y)
	forward(t, p)
	dx := zeros(tokens * width)
	if err := p.Backward(loss, 1, NewGradients(params.All()), []*Node{x}, [][]float32{dx}); err != nil {
		t.Fatal(err)
	}
	norm := math.Sqrt(float64(dot(dx, dx) / dot(weights, weights)))
	if !(norm > 1e-3 && norm < 1e3) {
		t.Errorf("behind %d layers the gradient is %.3g times what came in", depth, norm)
	}
}

// lensed runs a focus with one lens a query and returns its result and the gradients at centre and aperture.
func lensed(t *testing.T, tokens int, centre, aperture float32, twice bool) (weights, out []float32, dCentre,
	dAperture []float32) {
	t.Helper()
	const width = 4
	p := NewPass(1)
	rows := Rows{Starts: []int{0, tokens}}
	input := func(x []float32, columns int) *Node { return p.Input(x, tokens, columns) }
	mu, sigma := zeros(tokens), zeros(tokens)
	for i := range mu {
		mu[i], sigma[i] = centre, aperture
	}
	m, s := input(mu, 1), input(sigma, 1)
	p.Observe("lens", func(_ int, _ []int, values []float32) { weights = append([]float32(nil), values...) })
	q, k, v := input(states(1, tokens*width, 1), width), input(states(2, tokens*width, 1), width),
		input(states(3, tokens*width, 1), width)
	y := Focus{Heads: 1, SoftmaxTwice: twice, Name: "lens"}.Apply(p, q, k, v, m, s, rows)
	loss := halfSquares(y)
	forward(t, p)
	dCentre, dAperture = zeros(tokens), zeros(tokens)
	if err := p.Backward(loss, 1, Gradients{}, []*Node{m, s}, [][]float32{dCentre, dAperture}); err != nil {
		t.Fatal(err)
	}
	return weights, Values(y), dCentre, dAperture
}

func TestTheLensAtItsBounds(t *testing.T) {
	for _, twice := range []bool{false, true} {
		for _, tokens := range []int{1, 2, 512} {
			for _, aperture := range []float32{0.02, 1, 1e4} {
				for _, centre := range []float32{0, 0.5, 1} {
					weights, out, dCentre, dAperture := lensed(t, tokens, centre, aperture, twice)
					finite(t, "focus", out)
					finite(t, "gradient at the centre", dCentre)
					finite(t, "gradient at the aperture", dAperture)
					for i := range tokens {
						sum := 0.0
						for _, w := range weights[i*tokens : (i+1)*tokens] {
							sum += float64(w)
						}
						if !(math.Abs(sum-1) <= 1e-4) {
							t.Fatalf("%d tokens, σ %v, μ %v, twice %v: weights of query %d sum to %v", tokens, aperture,
								centre, twice, i, sum)
						}
					}
				}
			}
		}
	}
}

func TestANarrowLensSelectsItsCentre(t *testing.T) {
	const tokens = 512
	weights, _, _, _ := lensed(t, tokens, 0.25, 0.02, false)
	near := 0.0
	for j, w := range weights[:tokens] {
		if math.Abs(float64(j)/(tokens-1)-0.25) < 0.08 { // 4 σ
			near += float64(w)
		}
	}
	if !(near >= 0.999) {
		t.Errorf("%.4f of the weight is near the centre", near)
	}
	// the other interpretation is nearly flat: products are in [0, 1]
	weights, _, _, _ = lensed(t, tokens, 0.25, 0.02, true)
	for j, w := range weights[:tokens] {
		if !(w <= 3.0/tokens) {
			t.Errorf("weight %v at %d, of %d tokens", w, j, tokens)
		}
	}
}

func TestAWideLensIsPlainAttention(t *testing.T) {
	const tokens, width = 40, 4
	_, got, _, _ := lensed(t, tokens, 0.5, 1e4, false)
	want, _ := attended(t, states(1, tokens*width, 1), states(2, tokens*width, 1), states(3, tokens*width, 1), width, 1,
		[]int{0, tokens})
	if !near(got, want, 1e-5) {
		t.Error("focus through a wide lens is not attention")
	}
}

// The three failures of a naive implementation of attention, for a lens: overflow, vanishing gradients, memory of T².

func TestLensesOverLargeLogitsDoNotOverflow(t *testing.T) {
	const tokens, width = 9, 4
	for _, twice := range []bool{false, true} {
		for _, size := range []float64{1e4, -1e4} {
			for _, aperture := range []float32{0.02, 1, 1e4} {
				t.Run(fmt.Sprintf("twice %v, scores %v, aperture %v", twice, size, aperture), func(t *testing.T) {
					q, k, v := zeros(tokens*width), zeros(tokens*width), states(3, tokens*width, 1)
					mu, sigma := zeros(tokens), zeros(tokens)
					for i := range tokens { // logits of ±size with tokens of the same feature, 0 with others
						q[i*width+i%width] = float32(math.Sqrt(math.Abs(size) * math.Sqrt(width)))
						k[i*width+i%width] = q[i*width+i%width] * float32(math.Copysign(1, size))
						mu[i], sigma[i] = 0.5, aperture
					}
					p := NewPass(1)
					var at []*Node
					var dAt [][]float32
					for _, x := range [][]float32{q, k, v, mu, sigma} {
						at = append(at, p.Input(x, tokens, len(x)/tokens))
						dAt = append(dAt, zeros(len(x)))
					}
					var weights []float32
					p.Observe("lens", func(_ int, _ []int, values []float32) { weights = append(weights, values...) })
					y := Focus{Heads: 1, SoftmaxTwice: twice, Name: "lens"}.Apply(p, at[0], at[1], at[2], at[3], at[4],
						Rows{Starts: []int{0, tokens}})
					loss := halfSquares(y)
					forward(t, p)
					if err := p.Backward(loss, 1, Gradients{}, at, dAt); err != nil {
						t.Fatal(err)
					}
					finite(t, "focus", Values(y))
					for i, name := range []string{"queries", "keys", "values", "centres", "apertures"} {
						finite(t, "gradient at the "+name, dAt[i])
					}
					if len(weights) != tokens*tokens {
						t.Fatalf("%d weights of %d tokens", len(weights), tokens)
					}
					for i := range tokens {
						sum, same := 0.0, 0.0 // of all, of tokens with the query's feature
						for j, w := range weights[i*tokens : (i+1)*tokens] {
							if sum += float64(w); i%width == j%width {
								same += float64(w)
							}
						}
						if !(math.Abs(sum-1) <= 1e-5) {
							t.Errorf("weights of query %d sum to %v", i, sum)
						}
						if size > 0 && !twice && !(same >= 0.999) { // 1e4 is more than any of these lenses takes away
							t.Errorf("query %d gives %v to tokens of its own feature", i, same)
						}
					}
				})
			}
		}
	}
}

func TestGradientsPassThroughLongChainsOfLenses(t *testing.T) {
	const tokens, width, heads, depth = 12, 8, 2, 24
	for _, twice := range []bool{false, true} {
		p, params := NewPass(1), NewParams(5)
		rows := Rows{Starts: []int{0, tokens}}
		x := p.Input(states(4, tokens*width, 1), tokens, width)
		y := x
		for i := range depth { // as in a head
			at := params.In(string(rune('a' + i)))
			linear := func(name string, out int) *Node { return NewLinear(at.In(name), width, out).Apply(y) }
			seen := Focus{Heads: heads, SoftmaxTwice: twice}.Apply(p, linear("query", width), linear("key", width),
				linear("value", width),
				Sigmoid(linear("centre", 1)), Softplus(linear("aperture", 1), 0.02), rows)
			y = NewLayerNorm(at.In("norm"), width,
				1e-12).Apply(Sum(y, NewLinear(at.In("out"), width, width).Apply(seen)))
		}
		for i, w := range params.All() { // far from where linear layers begin, so that what is seen counts
			if len(w.Shape) == 2 {
				copy(w.Data, states(uint64(10+i), len(w.Data), 0.3))
			}
		}
		upstream := states(6, tokens*width, 1)
		loss := weighed(y, upstream)
		forward(t, p)
		into, dx := NewGradients(params.All()), zeros(tokens*width)
		if err := p.Backward(loss, 1, into, []*Node{x}, [][]float32{dx}); err != nil {
			t.Fatal(err)
		}
		norm := math.Sqrt(float64(dot(dx, dx) / dot(upstream, upstream)))
		if !(norm > 1e-3 && norm < 1e3) {
			t.Errorf("twice %v: behind %d lenses the gradient is %.3g times what came in", twice, depth, norm)
		}
		for _, w := range params.All() {
			finite(t, "gradient of "+w.Name, into.Of(w))
		}
	}
}

func TestTheMemoryOfALensGrowsWithTheTextsLength(t *testing.T) {
	skipShort(t)
	const width, heads = 8, 2
	through := func(p *Pass, tokens int, twice bool) (y *Node, at []*Node) {
		x := func(seed uint64, n int) *Node { return p.Input(states(seed, tokens*n, 0.1), tokens, n) }
		at = []*Node{x(1, width), x(2, width), x(3, width), x(4, 1), x(5, 1)}
		return Focus{Heads: heads, SoftmaxTwice: twice, Dropout: 0.1}.Apply(p, at[0], at[1], at[2], at[3],
			Softplus(at[4], 0.1), Rows{Starts: []int{0, tokens}}), at
	}
	for _, twice := range []bool{false, true} {
		growsWithTokens(t, fmt.Sprintf("forward, twice %v", twice), 512, heads, func(tokens int) {
			p := NewPass(1)
			through(p, tokens, twice)
			forward(t, p)
		})
		growsWithTokens(t, fmt.Sprintf("there and back, twice %v", twice), 256, heads, func(tokens int) {
			p := NewPass(1)
			p.Training = true
			y, at := through(p, tokens, twice)
			loss := halfSquares(y)
			forward(t, p)
			var dAt [][]float32
			for _, n := range at {
				dAt = append(dAt, zeros(n.Shape().TotalSize()))
			}
			if err := p.Backward(loss, 1, Gradients{}, at, dAt); err != nil {
				t.Fatal(err)
			}
		})
	}
}
