package kernel

import "math"

// Attention is multi-head attention, softmax(Q·Kᵀ/√d)·V (Vaswani et al. 2017), of each text of a batch over its own
// rows. Its memory is linear in the length of a text: only the weights of a block of queries are in memory at a time,
// and Backward computes them again.
type Attention struct {
	Starts  []int   // [B+1] text b is rows Starts[b]:Starts[b+1]
	Heads   int     // a divisor of Width
	Width   int     // D, of all heads together
	Dropout float64 // dropout rate of the weights: 0 except in training
	Key     uint64  // of the dropout's mask
	// Window limits a query to the keys that are at most so many rows before or after it, for which time grows with
	// the length of a text, not its square; 0: no limit.
	Window int
	// Bias [Heads 2·Reach−1] is added to the logits: to that of query i and key j the value j−i+Reach−1 of the head's
	// row. nil: nothing. Backward adds the gradient of Bias to DBias, unless that is nil.
	Bias, DBias []float32
	Reach       int // no text has more tokens

	partial []float32 // see partialOf
}

// Forward writes to out the attention of q, k and v, [T D] each, and to normalizers [Heads T] the logarithm of each
// softmax's denominator, for Backward. normalizers may be nil; the plain version does not use it.
func (a Attention) Forward(out, normalizers, q, k, v []float32) {
	a.check(out, q, k, v)
	if use.tile == nil {
		a.forwardPlain(out, q, k, v)
		return
	}
	attentionForward.run((len(a.Starts)-1)*a.Heads, 1,
		attentionArgs{a: a, out: out, normalizers: normalizers, q: q, k: k, v: v})
}

// Backward writes to dq, dk and dv the gradients of q, k and v, given the gradient dOut of Forward's result out, and
// the normalizers that Forward wrote.
func (a Attention) Backward(dq, dk, dv, q, k, v, out, normalizers, dOut []float32) {
	a.check(dq, dk, dv, q, k, v, out, dOut)
	if a.DBias != nil {
		partial := biasSums.Get().(*memory)
		defer biasSums.Put(partial)
		a.partial = partial.of(2 * a.Starts[len(a.Starts)-1] * a.Heads)
		defer a.addPartial()
	}
	if use.tile == nil {
		a.backwardPlain(dq, dk, dv, q, k, v, dOut)
		return
	}
	attentionBackward.run((len(a.Starts)-1)*a.Heads, 1,
		attentionArgs{a: a, out: out, normalizers: normalizers, q: q, k: k, v: v, dq: dq, dk: dk, dv: dv, dOut: dOut})
}

// check panics if the states have fewer rows than the texts.
func (a *Attention) check(states ...[]float32) {
	if a.Heads < 1 || a.Width%a.Heads != 0 {
		panic("kernel: attention heads do not divide the width")
	}
	for b := range len(a.Starts) - 1 {
		if a.Bias != nil && (a.Starts[b+1]-a.Starts[b] > a.Reach || len(a.Bias) < a.Heads*(2*a.Reach-1)) {
			panic("kernel: attention with a bias for shorter texts")
		}
	}
	for _, s := range states {
		if len(s) < a.Starts[len(a.Starts)-1]*a.Width {
			panic("kernel: attention over states of fewer rows than the texts have")
		}
	}
}

// reach returns the keys from:to that the queries lo:lo+n of a text of t tokens have in their windows together.
func (a *Attention) reach(t, lo, n int) (from, to int) {
	if a.Window == 0 {
		return 0, t
	}
	return max(0, lo-a.Window), min(t, lo+n+a.Window)
}

// mask adds the bias to the logits of a head's query, and sets those outside its window to -Inf. logits are those of
// the keys from first on.
func (a *Attention) mask(logits []float32, head, query, first int) {
	if a.Bias != nil {
		use.addScaled(logits, a.Bias[head*(2*a.Reach-1)+first-query+a.Reach-1:][:len(logits)], 1)
	}
	a.limit(logits, query, first)
}

// limit sets to -Inf the logits of a query that are outside its window. logits are those of the keys from first on.
func (a *Attention) limit(logits []float32, query, first int) {
	if a.Window == 0 {
		return
	}
	outside := float32(math.Inf(-1))
	for j := range min(len(logits), query-a.Window-first) {
		logits[j] = outside
	}
	for j := max(0, query+a.Window+1-first); j < len(logits); j++ {
		logits[j] = outside
	}
}

// scale is 1/√d.
func (a *Attention) scale() float32 { return float32(1 / math.Sqrt(float64(a.Width/a.Heads))) }

type attentionArgs struct {
	a                Attention
	out, normalizers []float32
	q, k, v          []float32
	dq, dk, dv, dOut []float32
}
