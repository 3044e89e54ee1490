package bench

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// Product is a product of matrices of a training step, [M K] times [K N], and the time it takes, packing included.
type Product struct {
	Layout  string // which operand is transposed: "A·B" forward, "A·Bᵀ" to the rows' gradient, "Aᵀ·B" to the weight's
	M, K, N int
	Count   int // in a step
	Timing
}

// Operations counts multiplications and additions.
func (p Product) Operations() float64 { return float64(2 * p.M * p.K * p.N) }

// Total returns the number of operations and the time of all products of a step.
func Total(products []Product) (operations float64, t Timing) {
	for _, p := range products {
		count := time.Duration(p.Count)
		operations += float64(p.Count) * p.Operations()
		t.Best += count * p.Best
		t.Mean += count * p.Mean
		if p.Peak.Time > 0 { // a loop is weighted by the time of its products
			took := count * p.Mean
			t.Peak.Add(kernel.Rate{Done: p.Peak.Mean() * took.Seconds(), Time: took, Best: p.Peak.Best})
		}
	}
	return operations, t
}

// Products measures the products of all shapes and layouts in a step of the work `full`; in Int8, in which nothing
// learns, those forward, whose weights are packed before. It calls did after each one
// with its number and their total.
func (n *Network) Products(ctx context.Context, did func(done, of int)) ([]Product, error) {
	const rows = FullTexts * FullTokens
	products := n.shapes(rows)
	for i := range products {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		products[i].measure(n.Precision)
		did(i+1, len(products))
	}
	return products, nil
}

// shapes returns the products of so many rows with all layers' weights, and the two products of the backward pass of
// each.
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
	layouts := []string{"A·B", "A·Bᵀ", "Aᵀ·B"}
	if n.Precision == nn.Int8 {
		layouts = layouts[:1]
	}
	for _, layout := range layouts {
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

// measure measures the product in alternation with a loop.
func (p *Product) measure(precision nn.Precision) {
	r := rand.New(rand.NewPCG(seed, 3))
	a, b, c := normal(r, p.M*p.K), normal(r, p.K*p.N), make([]float32, p.M*p.N)
	product := kernel.Product{M: p.M, K: p.K, N: p.N, A: kernel.Dense(a, p.K), B: kernel.Dense(b, p.N), C: c,
		Precision: precision}
	if precision == nn.Int8 {
		product.Start, product.Packed = kernel.StartAtZero, new(kernel.Packed)
		product.Packed.Pack(product.B, p.K, p.N, precision)
	}
	switch p.Layout {
	case "A·Bᵀ":
		product.B = kernel.Dense(b, p.K).T()
	case "Aᵀ·B":
		product.A = kernel.Dense(a, p.M).T()
	}
	product.Multiply()
	p.Timing = timing(kernel.MultiplyAdds(precision), product.Multiply)
}

// Stream is the speed of multiplying few rows by the layers' weights, which is limited by memory, or nearly so.
type Stream struct {
	Bytes      int     // of all weights
	Operations float64 // of all products
	Timing             // its peak is that of reading memory
}

// Stream measures products of 16 rows with the weights of all layers in turn, as when a text is encoded.
func (n *Network) Stream() Stream {
	const rows = oneTokens
	var s Stream
	var products []kernel.Product
	r := rand.New(rand.NewPCG(seed, 4))
	for _, w := range n.products() {
		in, out := w.Shape[0], w.Shape[1]
		s.Operations += float64(2 * rows * w.Size())
		values := w.Data
		if values == nil { // of a quantized model
			values = normal(r, w.Size())
		}
		packed := new(kernel.Packed) // as inference packs them, once
		packed.Pack(kernel.Dense(values, out), in, out, n.Precision)
		s.Bytes += n.Precision.Bytes() * w.Size()
		products = append(products, kernel.Product{
			M: rows, K: in, N: out, A: kernel.Dense(normal(r, rows*in), in), Packed: packed,
			C: make([]float32, rows*out), Start: kernel.StartAtZero, Precision: n.Precision,
		})
	}
	run := func() {
		for _, p := range products {
			p.Multiply()
		}
	}
	run()
	s.Timing = timing(kernel.MemoryReads(), run)
	return s
}

func normal(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}
