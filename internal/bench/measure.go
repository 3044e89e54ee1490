package bench

import (
	"cmp"
	"context"
	"math/rand/v2"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/nn"
)

// rounds is the number of times that a work's batches are run; the fastest counts.
const rounds = 2

// Speed is how fast something was computed, beside the rate of a loop that is limited only by a peak of the machine,
// measured in alternation. Both had the same other load, so on a shared machine their quotient is more reliable than
// either. The rates of the zero value, of what was not measured, are 0.
type Speed struct {
	Steps, Tokens int           // that were timed; products alone are one step
	Operations    float64       // multiplications and additions of the layers' products
	Bytes         float64       // of weights, where it is measured how fast they are read
	Best, Mean    time.Duration // of all steps
	Peak          kernel.Rate   // of operations, or of reading Bytes; zero where the kernels have no such loop
}

// TokensPerSecond returns the number of tokens per second; there is no padding.
func (s Speed) TokensPerSecond() float64 { return s.perSecond(float64(s.Tokens)) }

// Gigaflops returns 10⁹ operations per second.
func (s Speed) Gigaflops() float64 { return s.perSecond(s.Operations) / 1e9 }

// Gigabytes returns 10⁹ bytes per second.
func (s Speed) Gigabytes() float64 { return s.perSecond(s.Bytes) / 1e9 }

func (s Speed) perSecond(n float64) float64 {
	if s.Steps == 0 {
		return 0
	}
	return n / s.Best.Seconds()
}

// Step returns the mean time of a step in the best round.
func (s Speed) Step() time.Duration { return s.Best / time.Duration(max(1, s.Steps)) }

// PeakFraction returns the fraction of the peak that is reached in the mean time; 0 where the peak is unknown.
func (s Speed) PeakFraction() float64 {
	if s.Peak.Time == 0 {
		return 0
	}
	return cmp.Or(s.Bytes, s.Operations) / s.Mean.Seconds() / s.Peak.Mean()
}

// Train measures training steps over all parameters: forward, backward, clipping by the global norm, AdamW. It calls
// did after each step with its number and their total. It panics if the network does not learn.
func (n *Network) Train(ctx context.Context, w Work, did func(done, of int)) (Speed, error) {
	if !n.Learns() {
		panic("bench: training an encoder that does not learn")
	}
	plan := train.Plan{
		Options: multitask.Options{MaxSteps: w.steps(), Rate: 2e-5, WeightDecay: 0.01, ClipNorm: 1,
			BFloat16: n.Precision == nn.BFloat16},
		Seed: seed,
	}
	training, err := train.New(n.model, nil, plan)
	if err != nil {
		return Speed{}, err
	}
	defer training.Close()
	s, err := w.measure(ctx, n.peak(), did, func(batch []*corpus.Example) error {
		_, err := training.Update([]train.Batch{{Group: 0, Examples: batch}})
		return err
	})
	s.Operations = 3 * n.operations(s.Tokens) // twice as many backward as forward
	return s, err
}

// Infer measures how fast the encoder computes the last layer's states.
func (n *Network) Infer(ctx context.Context, w Work, did func(done, of int)) (Speed, error) {
	pass := nn.NewPass(seed)
	s, err := w.measure(ctx, n.peak(), did, func(batch []*corpus.Example) error {
		pass.Reset(0)
		tokens, mode := corpus.Pack(batch).Tokens, encoders.Mode{Precision: n.Precision}
		if n.Device() != "" { // what the head reads is copied
			mode.Read = tokens.Rows.Starts[:len(batch)]
		}
		_, err := n.model.Encoder.Encode(pass, tokens, mode)
		return err
	})
	s.Operations = n.operations(s.Tokens)
	return s, err
}

// operations returns how many a number of tokens cost in the layers' products forward: for each weight one to multiply
// and one to add.
func (n *Network) operations(tokens int) float64 {
	return 2 * float64(n.Multiplied()) * float64(tokens)
}

func (w Work) steps() int { return 1 + rounds*len(w.timed()) }

// measure calls step for the batches, in alternation with a loop.
func (w Work) measure(ctx context.Context, loop kernel.Loop, did func(done, of int),
	step func([]*corpus.Example) error) (Speed, error) {
	s := Speed{Steps: len(w.timed()), Tokens: w.Tokens()}
	done := 0
	run := func(batches [][]*corpus.Example) (all time.Duration, err error) {
		for _, batch := range batches {
			if err := ctx.Err(); err != nil {
				return 0, err
			}
			took, err := beside(loop, &s.Peak, func() error { return step(batch) })
			if err != nil {
				return 0, err
			}
			all += took
			done++
			did(done, w.steps())
		}
		return all, nil
	}

	if _, err := run(w.Batches[:1]); err != nil {
		return Speed{}, err
	}
	s.Peak = kernel.Rate{}
	for range rounds {
		took, err := run(w.timed())
		if err != nil {
			return Speed{}, err
		}
		s.Mean += took / rounds
		if s.Best == 0 || took < s.Best {
			s.Best = took
		}
	}
	return s, nil
}

// oneRuns is the number of times that OneText encodes its text.
const oneRuns = 50

// OneText measures the encoding of batches of a single text of 16 random tokens, one step for each.
func (n *Network) OneText(ctx context.Context) (Speed, error) {
	w := Work{Batches: make([][]*corpus.Example, 1+oneRuns)}
	for i := range w.Batches {
		w.Batches[i] = []*corpus.Example{n.random(rand.New(rand.NewPCG(seed, 2)), min(oneTokens, n.longest))}
	}
	return n.Infer(ctx, w, func(int, int) {})
}

// The loop runs 1/peakFraction as long as the measured computation before it, and at most peakLongest.
const (
	peakFraction = 4
	peakLongest  = 200 * time.Millisecond
)

// beside runs do and then loop, adds the loop's rate to peak, and returns do's time.
func beside(loop kernel.Loop, peak *kernel.Rate, do func() error) (time.Duration, error) {
	start := time.Now()
	if err := do(); err != nil {
		return 0, err
	}
	took := time.Since(start)
	if loop != nil {
		peak.Add(loop(min(took/peakFraction, peakLongest)))
	}
	return took, nil
}

// A short computation is measured for at least shortTime and shortTimes times, and for turn before the loop runs.
const (
	shortTime  = 300 * time.Millisecond
	shortTimes = 5
	turn       = 10 * time.Millisecond
)

// timing measures do repeatedly as one step, in alternation with loop.
func timing(loop kernel.Loop, do func()) Speed {
	t := Speed{Steps: 1}
	var all time.Duration
	times := 0
	for times < shortTimes || all < shortTime {
		took, _ := beside(loop, &t.Peak, func() error {
			for begin, now := time.Now(), time.Now(); now.Sub(begin) < turn; times++ {
				start := now
				do()
				now = time.Now()
				if took := max(1, now.Sub(start)); times == 0 || took < t.Best { // a clock may be too coarse
					t.Best = took
				}
			}
			return nil
		})
		all += took
	}
	t.Mean = all / time.Duration(times)
	return t
}

// product is a product of matrices of a training step, [m k] times [k n], and the time it takes.
type product struct {
	layout  string // which operand is transposed: "A·B" forward, "A·Bᵀ" to the rows' gradient, "Aᵀ·B" to the weight's
	m, k, n int
	count   int // in a step
}

// add adds what is one step of a product's speed, as often as a step has it.
func (all *Speed) add(p product, one Speed) {
	count := time.Duration(p.count)
	all.Steps = 1
	all.Operations += float64(p.count * 2 * p.m * p.k * p.n)
	all.Best += count * one.Best
	all.Mean += count * one.Mean
	if one.Peak.Time > 0 { // a loop is weighted by the time of its products
		took := count * one.Mean
		all.Peak.Add(kernel.Rate{Done: one.Peak.Mean() * took.Seconds(), Time: took, Best: one.Peak.Best})
	}
}

// Products measures the products of all shapes and layouts in a step of the work `full`; in Int8, in which nothing
// learns, those forward, whose weights are packed before. It calls did after each one with its number and their total.
func (n *Network) Products(ctx context.Context, did func(done, of int)) (Speed, error) {
	var all Speed
	shapes := n.shapes(batchTokens)
	for i, p := range shapes {
		if err := ctx.Err(); err != nil {
			return Speed{}, err
		}
		all.add(p, p.measure(n.Precision))
		did(i+1, len(shapes))
	}
	return all, nil
}

// shapes returns the products of so many rows with all layers' weights, and the two products of the backward pass of
// each.
func (n *Network) shapes(rows int) []product {
	var shapes []product
	add := func(p product) {
		for i, have := range shapes {
			if have.layout == p.layout && have.m == p.m && have.k == p.k && have.n == p.n {
				shapes[i].count++
				return
			}
		}
		p.count = 1
		shapes = append(shapes, p)
	}
	for _, w := range n.products() {
		in, out := w.Shape[0], w.Shape[1]
		add(product{layout: "A·B", m: rows, k: in, n: out}) // y = x·W
		if n.Precision != nn.Int8 {
			add(product{layout: "A·Bᵀ", m: rows, k: out, n: in}) // dx = dy·Wᵀ
			add(product{layout: "Aᵀ·B", m: in, k: rows, n: out}) // dW = xᵀ·dy
		}
	}
	return shapes
}

func (p product) measure(precision nn.Precision) Speed {
	r := rand.New(rand.NewPCG(seed, 3))
	a, b, c := normal(r, p.m*p.k), normal(r, p.k*p.n), make([]float32, p.m*p.n)
	arithmetic := kernel.Product{M: p.m, K: p.k, N: p.n, A: kernel.Dense(a, p.k), B: kernel.Dense(b, p.n), C: c,
		Precision: precision}
	if precision == nn.Int8 {
		arithmetic.Start, arithmetic.Packed = kernel.StartAtZero, new(kernel.Packed)
		arithmetic.Packed.Pack(arithmetic.B, p.k, p.n, precision)
	}
	switch p.layout {
	case "A·Bᵀ":
		arithmetic.B = kernel.Dense(b, p.k).T()
	case "Aᵀ·B":
		arithmetic.A = kernel.Dense(a, p.m).T()
	}
	arithmetic.Multiply()
	return timing(kernel.MultiplyAdds(precision), arithmetic.Multiply)
}

// Stream measures products of 16 rows with the weights of all layers in turn, as when a text is encoded. It is limited
// by reading them from memory, or nearly so.
func (n *Network) Stream() Speed {
	const rows = oneTokens
	bytes := 0
	var products []kernel.Product
	r := rand.New(rand.NewPCG(seed, 4))
	for _, w := range n.products() {
		in, out := w.Shape[0], w.Shape[1]
		values := w.Data
		if values == nil { // of a quantized model
			values = normal(r, w.Size())
		}
		packed := new(kernel.Packed) // as inference packs them, once
		packed.Pack(kernel.Dense(values, out), in, out, n.Precision)
		bytes += n.Precision.Bytes() * w.Size()
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
	s := timing(kernel.MemoryReads(), run)
	s.Operations, s.Bytes = n.operations(rows), float64(bytes)
	return s
}

func normal(r *rand.Rand, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}
