package nn

import (
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Focus is multi-head attention weighted by a Gaussian lens (Focus Mechanism). For query i of a text of T tokens, at
// positions p_j = j/(T-1), 0 where T is 1, with centre μ_i and aperture σ_i, each head's weights are
//
//	softmax_j(q_i·k_j/√d - (p_j-μ_i)²/(2σ_i²))
//
// which is attention times lens, normalised. With Twice they are softmax_j(A_ij·L_ij), A = softmax(q·k/√d), L the lens:
// the other interpretation of "normalized via softmax". As its products lie in [0, 1], it is nearly flat.
type Focus struct {
	Heads        int
	Dropout      float64 // dropout rate of the weights in training
	Place        string  // key of the dropout's mask, see Pass.Key
	SoftmaxTwice bool
	// Name is the name that the weights of a text [Heads T T] are emitted under; FocusCentre and FocusAperture derive
	// the names of centres and apertures from it. "": nothing is emitted.
	Name string
}

// FocusCentre returns the name under which the Focus called name emits the centres of a text, [T lenses].
func FocusCentre(name string) string { return name + ".centre" }

// FocusAperture returns the name under which the Focus called name emits the apertures of a text, [T lenses].
func FocusAperture(name string) string { return name + ".aperture" }

func (f Focus) observed(p *Pass) bool {
	return p.Observed(f.Name) || p.Observed(FocusCentre(f.Name)) || p.Observed(FocusAperture(f.Name))
}

// Apply returns the weights times V, [T D]: q, k and v [T D], centre and aperture [T 1] for one lens of all heads, or
// [T Heads] for one each.
func (f Focus) Apply(p *Pass, q, k, v, centre, aperture *Node, rows Rows) *Node {
	tokens, width := rows.Tokens(), q.Shape()[1]
	lenses := centre.Shape()[1]
	for _, x := range []*Node{q, k, v} {
		if n := rowsOf("focus", x, width); n != tokens {
			panic(fmt.Sprintf("nn: focus of %d rows for %d tokens", n, tokens))
		}
	}
	if rowsOf("focus", centre, lenses) != tokens || rowsOf("focus", aperture, lenses) != tokens {
		panic(fmt.Sprintf("nn: focus of lenses %v and %v for %d tokens", centre.Shape(), aperture.Shape(), tokens))
	}
	if f.Heads < 1 || width%f.Heads != 0 || lenses != 1 && lenses != f.Heads {
		panic(fmt.Sprintf("nn: focus of width %d with %d heads and %d lenses", width, f.Heads, lenses))
	}
	rate := 0.0
	if p.Training {
		rate = f.Dropout
	}
	l := focus{Focus: f, rows: rows, width: width, lenses: lenses, rate: rate, key: p.Key(f.Place)}
	return Operation{
		Name: "focus", Shape: []int{tokens, width},
		Forward: func(in [][]float32, out []float32) {
			kernel.Parallel(rows.Texts(), 1, func(b, _ int) { l.forward(in, out, b) })
			if f.Name != "" && f.observed(p) {
				for b := range rows.Texts() {
					l.show(p, in, b)
				}
			}
		},
		Backward: func(in [][]float32, _, dOut []float32, dIn [][]float32) {
			kernel.Parallel(rows.Texts(), 1, func(b, _ int) { l.backward(in, dOut, dIn, b) })
		},
	}.Apply(q, k, v, centre, aperture)
}

// focusQueries is the number of queries whose weights are in memory at a time, so that memory grows with the length of
// a text, not with its square.
const focusQueries = 32

// focus is one application of a Focus. Inputs are q, k, v, centre and aperture.
type focus struct {
	Focus
	rows          Rows
	width, lenses int
	rate          float64
	key           uint64
}

// focusBlock is a block of queries of one head and text.
type focusBlock struct {
	first, tokens      int // row of the text's first token, and how many it has
	from, to           int // queries
	column, lens, head int
	attention          []float32 // [queries tokens] A, for Twice
	lensed             []float32 // [queries tokens] the weights
	dropped            []float32 // [queries tokens] the same after dropout
	logits             []float64 // [tokens] memory for one query's logits
}

// blocks calls do for the blocks of text b, each with its weights.
func (f *focus) blocks(in [][]float32, b int, do func(w *focusBlock)) {
	tokens := f.rows.Starts[b+1] - f.rows.Starts[b]
	most := min(focusQueries, tokens)
	memory, logits := make([]float32, 3*most*tokens), make([]float64, tokens)
	for h := range f.Heads {
		for from := 0; from < tokens; from += focusQueries {
			to := min(from+focusQueries, tokens)
			n := (to - from) * tokens
			w := focusBlock{
				first: f.rows.Starts[b], tokens: tokens, from: from, to: to, head: h, column: h * f.size(),
				lens:      h * f.lenses / f.Heads,
				attention: memory[:n], lensed: memory[most*tokens:][:n], dropped: memory[2*most*tokens:][:n],
				logits: logits,
			}
			f.weigh(&w, in, b)
			do(&w)
		}
	}
}

// size returns d, the number of columns of a head.
func (f *focus) size() int { return f.width / f.Heads }

// view returns the columns of a block's head in x from a row on.
func (f *focus) view(x []float32, w *focusBlock, row int) kernel.Matrix {
	return kernel.Matrix{Data: x[row*f.width+w.column:], Row: f.width, Col: 1}
}

func (f *focus) weigh(w *focusBlock, in [][]float32, b int) {
	kernel.Product{
		M: w.to - w.from, K: f.size(), N: w.tokens, A: f.view(in[0], w, w.first+w.from),
		B: f.view(in[1], w, w.first).T(), C: w.lensed,
		Start: kernel.StartAtZero,
	}.Multiply()
	scale := float32(1 / math.Sqrt(float64(f.size())))
	for i := w.from; i < w.to; i++ {
		row, plain := w.lensed[(i-w.from)*w.tokens:(i-w.from+1)*w.tokens],
			w.attention[(i-w.from)*w.tokens:(i-w.from+1)*w.tokens]
		for j := range row {
			row[j] *= scale
		}
		if f.SoftmaxTwice {
			kernel.Softmax(row)
			copy(plain, row)
		}
		mu, sigma := f.lens(in, w, i)
		narrow, top := 1/(2*sigma*sigma), math.Inf(-1)
		for j := range row {
			d := w.position(j) - mu
			if f.SoftmaxTwice {
				row[j] *= float32(math.Exp(-d * d * narrow))
				continue
			}
			w.logits[j] = float64(row[j]) - d*d*narrow
			top = math.Max(top, w.logits[j])
		}
		if !f.SoftmaxTwice { // the lens's term may be so large that float32 rounds the logit away
			for j, logit := range w.logits {
				row[j] = float32(logit - top)
			}
		}
		kernel.Softmax(row)
	}
	copy(w.dropped, w.lensed)
	if f.rate > 0 {
		kernel.Dropout(w.dropped, w.lensed, f.mask(w, b), f.rate)
	}
}

func (f *focus) mask(w *focusBlock, b int) uint64 {
	const odd = 0x9e3779b97f4a7c15 // spreads numbers that are close to each other
	return (f.key^uint64(b))*odd ^ (uint64(w.head)<<32 | uint64(w.from))
}

func (f *focus) lens(in [][]float32, w *focusBlock, i int) (centre, aperture float64) {
	at := (w.first+i)*f.lenses + w.lens
	return float64(in[3][at]), float64(in[4][at])
}

// position is p_j.
func (w *focusBlock) position(j int) float64 { return float64(j) / float64(max(1, w.tokens-1)) }

func (f *focus) forward(in [][]float32, out []float32, b int) {
	f.blocks(in, b, func(w *focusBlock) {
		n, d := w.to-w.from, f.size()
		part := make([]float32, n*d)
		kernel.Product{M: n, K: w.tokens, N: d, A: kernel.Dense(w.dropped, w.tokens), B: f.view(in[2], w, w.first),
			C: part, Start: kernel.StartAtZero}.Multiply()
		f.addTo(out, part, w, w.first+w.from)
	})
}

// addTo adds rows of a head's columns to those of x from a row on, unless x is nil.
func (f *focus) addTo(x, part []float32, w *focusBlock, row int) {
	if x == nil {
		return
	}
	d := f.size()
	for i := range len(part) / d {
		add(x[(row+i)*f.width+w.column:][:d], part[i*d:(i+1)*d])
	}
}

func (f *focus) backward(in [][]float32, dOut []float32, dIn [][]float32, b int) {
	d, tokens := f.size(), f.rows.Starts[b+1]-f.rows.Starts[b]
	scale := float32(1 / math.Sqrt(float64(d)))
	most := min(focusQueries, tokens)
	dWeights, part := make([]float32, most*tokens), make([]float32, max(most, tokens)*d)
	var dDropped []float32
	if f.rate > 0 {
		dDropped = make([]float32, most*tokens)
	}
	f.blocks(in, b, func(w *focusBlock) {
		n := w.to - w.from
		dw, dQueries := dWeights[:n*tokens], f.view(dOut, w, w.first+w.from)

		// values
		clear(part)
		kernel.Product{M: tokens, K: n, N: d, A: kernel.Dense(w.dropped, tokens).T(), B: dQueries, C: part}.Multiply()
		f.addTo(dIn[2], part[:tokens*d], w, w.first)

		// weights, then back through dropout, softmax and lens
		kernel.Product{M: n, K: d, N: tokens, A: dQueries, B: f.view(in[2], w, w.first).T(), C: dw,
			Start: kernel.StartAtZero}.Multiply()
		if f.rate > 0 {
			dropped := dDropped[:copy(dDropped, dw)]
			clear(dw)
			kernel.DropoutBackward(dw, dropped, f.mask(w, b), f.rate)
		}
		for i := w.from; i < w.to; i++ {
			lo, hi := (i-w.from)*tokens, (i-w.from+1)*tokens
			f.weightsBackward(in, dIn, w, i, dw[lo:hi], w.lensed[lo:hi], w.attention[lo:hi])
			for j := lo; j < hi; j++ {
				dw[j] *= scale
			}
		}

		// queries and keys
		clear(part)
		kernel.Product{M: n, K: tokens, N: d, A: kernel.Dense(dw, tokens), B: f.view(in[1], w, w.first),
			C: part}.Multiply()
		f.addTo(dIn[0], part[:n*d], w, w.first+w.from)
		clear(part)
		kernel.Product{M: tokens, K: n, N: d, A: kernel.Dense(dw, tokens).T(), B: f.view(in[0], w, w.first+w.from),
			C: part}.Multiply()
		f.addTo(dIn[1], part[:tokens*d], w, w.first)
	})
}

// weightsBackward takes the gradient d at the weights of query i. It adds to the gradients at the query's lens and
// replaces d by the gradient at q·k/√d. It computes in float64: a narrow lens multiplies rounding errors by 1/σ³.
func (f *focus) weightsBackward(in, dIn [][]float32, w *focusBlock, i int, d, weights, attention []float32) {
	mu, sigma := f.lens(in, w, i)
	mean := 0.0
	for j, g := range d {
		mean += float64(g) * float64(weights[j])
	}
	var dMu, dSigma float64
	for j := range d {
		off := w.position(j) - mu
		g := float64(weights[j]) * (float64(d[j]) - mean) // gradient at the input of the softmax
		d[j] = float32(g)
		if f.SoftmaxTwice {
			l := math.Exp(-off * off / (2 * sigma * sigma))
			d[j] = float32(g * l)
			g *= float64(attention[j]) * l // gradient at the logarithm of the lens
		}
		dMu += g * off / (sigma * sigma)
		dSigma += g * off * off / (sigma * sigma * sigma)
	}
	if f.SoftmaxTwice {
		kernel.SoftmaxBackward(d, attention)
	}
	at := (w.first+i)*f.lenses + w.lens
	if dIn[3] != nil {
		dIn[3][at] += float32(dMu)
	}
	if dIn[4] != nil {
		dIn[4][at] += float32(dSigma)
	}
}

func (f *focus) show(p *Pass, in [][]float32, b int) {
	tokens := f.rows.Starts[b+1] - f.rows.Starts[b]
	if p.Observed(f.Name) {
		weights := make([]float32, f.Heads*tokens*tokens)
		f.blocks(in, b, func(w *focusBlock) { copy(weights[(w.head*tokens+w.from)*tokens:], w.lensed) })
		p.Emit(f.Name, b, []int{f.Heads, tokens, tokens}, weights)
	}
	lo, hi := f.rows.Starts[b]*f.lenses, f.rows.Starts[b+1]*f.lenses
	p.Emit(FocusCentre(f.Name), b, []int{tokens, f.lenses}, in[3][lo:hi])
	p.Emit(FocusAperture(f.Name), b, []int{tokens, f.lenses}, in[4][lo:hi])
}
