package nn

import (
	"fmt"
	"math"
	"testing"
)

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
