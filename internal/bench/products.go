package bench

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Product is a product of matrices of a training step, [M K] times [K N], and the time it takes, packing included.
type Product struct {
	Layout  string // which operand is transposed: "A·B" forward, "A·Bᵀ" to the rows' gradient, "Aᵀ·B" to the weight's
	M, K, N int
	Count   int // in a step
	Time    time.Duration
}

// GFLOPS is 10⁹ floating-point operations a second.
func (p Product) GFLOPS() float64 { return float64(2*p.M*p.K*p.N) / float64(p.Time) }

// MeanGFLOPS is the speed of a step's products together.
func MeanGFLOPS(products []Product) float64 {
	var operations, nanoseconds float64
	for _, p := range products {
		operations += float64(p.Count) * float64(2*p.M*p.K*p.N)
		nanoseconds += float64(p.Count) * float64(p.Time)
	}
	return operations / nanoseconds
}

// Products measures all shapes of products of a step of the work `full` in all layouts. did is told how many of how
// many are done.
func (n *Network) Products(ctx context.Context, did func(done, of int)) ([]Product, error) {
	const rows = fullTexts * fullTokens
	products := n.shapes(rows)
	for i := range products {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		products[i].measure(n.BFloat16)
		did(i+1, len(products))
	}
	return products, nil
}

// shapes lists the products of so many rows with all layers' weights, and the two of each one's backward.
func (n *Network) shapes(rows int) []Product {
	var shapes []Product
	add := func(p Product) {
		for i, have := range shapes {
			if have.Layout == p.Layout && have.M == p.M && have.K == p.K && have.N == p.N {
				shapes[i].Count++
				return
			}
		}
		p.Count = 1
		shapes = append(shapes, p)
	}
	for _, layout := range []string{"A·B", "A·Bᵀ", "Aᵀ·B"} {
		for _, w := range n.products() {
			in, out := w.Shape[0], w.Shape[1]
			switch layout {
			case "A·B": // y = x·W
				add(Product{Layout: layout, M: rows, K: in, N: out})
			case "A·Bᵀ": // dx = dy·Wᵀ
				add(Product{Layout: layout, M: rows, K: out, N: in})
			case "Aᵀ·B": // dW = xᵀ·dy
				add(Product{Layout: layout, M: in, K: rows, N: out})
			}
		}
	}
	return shapes
}

// A product is measured so long, and so often at least.
const (
	productTime  = 100 * time.Millisecond
	productTimes = 3
)

func (p *Product) measure(bfloat16 bool) {
	r := rand.New(rand.NewPCG(seed, 3))
	a, b, c := normal(r, p.M*p.K), normal(r, p.K*p.N), make([]float32, p.M*p.N)
	product := kernel.Product{M: p.M, K: p.K, N: p.N, A: kernel.Dense(a, p.K), B: kernel.Dense(b, p.N), C: c, BFloat16: bfloat16}
	switch p.Layout {
	case "A·Bᵀ":
		product.B = kernel.Dense(b, p.K).T()
	case "Aᵀ·B":
		product.A = kernel.Dense(a, p.M).T()
	}
	product.Multiply()
	p.Time = fastest(product.Multiply)
}

// Stream is how fast the layers' weights go by where few rows are multiplied by them, so that memory is the limit.
type Stream struct {
	Bytes int // of all weights
	Time  time.Duration
}

// GBPerSecond is 10⁹ bytes of weights a second.
func (s Stream) GBPerSecond() float64 { return float64(s.Bytes) / float64(s.Time) }

// Stream measures products of 16 rows with the weights of all layers, one after the other as a text goes through them.
func (n *Network) Stream() Stream {
	const rows = oneTokens
	weights, widest := n.products(), 0
	var s Stream
	for _, w := range weights {
		s.Bytes += 4 * len(w.Data)
		widest = max(widest, w.Shape[0], w.Shape[1])
	}
	x, y := normal(rand.New(rand.NewPCG(seed, 4)), rows*widest), make([]float32, rows*widest)
	through := func() {
		for _, w := range weights {
			in, out := w.Shape[0], w.Shape[1]
			clear(y[:rows*out])
			kernel.MatMul(y[:rows*out], x[:rows*in], w.Data, rows, in, out)
		}
	}
	through()
	s.Time = fastest(through)
	return s
}

// fastest is the shortest time that do takes.
func fastest(do func()) time.Duration {
	var best, all time.Duration
	for times := 0; times < productTimes || all < productTime; times++ {
		start := time.Now()
		do()
		took := max(1, time.Since(start)) // a clock may be too coarse for a small product
		all += took
		if times == 0 || took < best {
			best = took
		}
	}
	return best
}

func normal(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}
