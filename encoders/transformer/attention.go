package transformer

import (
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// attention is multi-head self-attention of each text.
type attention struct {
	query, key, value *linear // [D D]
	output            *linear // [D D]
	heads             int
	drop              dropout // of the weights
	rotary            *rotary // nil where queries and keys are not rotated
	window            int     // tokens at each side of a token that it reads; 0: all
}

func (b *builder) attention(layer int) attention {
	linear := func(part string) *linear { return b.linear(part, b.Width, b.Width, !b.NoBias.Attention) }
	a := attention{
		query: linear("attention.self.query"), key: linear("attention.self.key"), value: linear("attention.self.value"),
		output: linear("attention.output.dense"),
		heads:  b.Heads, drop: b.dropout("attention.self", b.AttentionDropout), rotary: b.global,
	}
	if b.Local[layer] {
		a.rotary, a.window = b.local, b.Window
	}
	return a
}

// attended is what attention's forward keeps for backward.
type attended struct {
	query, key, value, context []float32 // [T D] each
	normalizers                []float32 // [heads T]
	distances                  distances
}

func newAttended(m memory, c config, rows int) attended {
	state := func() []float32 { return m.Scratch(rows * c.Width) }
	return attended{query: state(), key: state(), value: state(), context: state(),
		normalizers: m.Scratch(c.Heads * rows)}
}

// kernel returns the arithmetic for texts that begin at starts, with the biases of by.
func (a attention) kernel(p pass, by distances, starts []int, drops bool) kernel.Attention {
	k := kernel.Attention{Starts: starts, Heads: a.heads, Width: a.query.weight.Shape[1], Window: a.window,
		Bias: by.bias, DBias: by.dBias, Reach: by.reach}
	if drops {
		k.Dropout, k.Key = a.drop.rate, p.Key(a.drop.place)
	}
	return k
}

// attend writes to s.context what each token reads of x [T D]: attention before its output layer.
func (a attention) attend(p pass, s attended, x []float32, starts []int, drops bool) {
	none := kernel.Epilogue{}
	kernel.MultiplyAll(a.query.product(p, s.query, x, none), a.key.product(p, s.key, x, none),
		a.value.product(p, s.value, x, none))
	if a.rotary != nil {
		a.rotary.rotate(s.query, starts)
		a.rotary.rotate(s.key, starts)
	}
	a.kernel(p, s.distances, starts, drops).Forward(s.context, s.normalizers, s.query, s.key, s.value)
}

// backward takes the gradient at the output layer's result, dOut. It writes the gradient at x, plus beside, to dx,
// unless dx is nil, and adds the parameters' gradients to into. d is scratch memory.
func (a attention) backward(p pass, s attended, d attendedGradients, dx, x, dOut, beside []float32, starts []int,
	drops bool, into nn.Gradients) {
	a.output.backward(p, s.context, dOut, into)
	a.output.backwardTo(p, d.context, dOut, kernel.StartAtZero, kernel.Epilogue{})
	a.kernel(p, s.distances, starts, drops).Backward(d.query, d.key, d.value, s.query, s.key, s.value, s.context,
		s.normalizers, d.context)
	if a.rotary != nil {
		a.rotary.rotateBack(d.query, starts)
		a.rotary.rotateBack(d.key, starts)
	}
	a.query.backward(p, x, d.query, into)
	a.key.backward(p, x, d.key, into)
	a.value.backward(p, x, d.value, into)
	if dx == nil {
		return
	}
	a.query.backwardTo(p, dx, d.query, kernel.StartAtZero, kernel.Epilogue{Residual: beside})
	a.key.backwardTo(p, dx, d.key, kernel.StartAtC, kernel.Epilogue{})
	a.value.backwardTo(p, dx, d.value, kernel.StartAtC, kernel.Epilogue{})
}

// attendedGradients is memory for the gradients at the values in attended, [T D] each.
type attendedGradients struct{ query, key, value, context []float32 }

// rotary are the positions of rotary embeddings (Su et al. 2021): queries and keys are rotated by angles that grow with
// a token's position, pair l of a head's d/2 by the position times base^(−2l/d).
type rotary struct {
	base         float64
	heads, width int
	angles       atomic.Pointer[[]float32] // [positions d]: cosines, then sines, of each position
}

func (r *rotary) rotate(x []float32, starts []int) {
	kernel.Rotate(x, r.anglesOf(starts), starts, r.heads, r.width)
}

// rotateBack turns the gradient at rotate's result into that at its x.
func (r *rotary) rotateBack(d []float32, starts []int) {
	kernel.RotateBack(d, r.anglesOf(starts), starts, r.heads, r.width)
}

// anglesOf returns the angles for the longest of the texts that begin at starts.
func (r *rotary) anglesOf(starts []int) []float32 {
	longest := 1
	for b := range len(starts) - 1 {
		longest = max(longest, starts[b+1]-starts[b])
	}
	d := r.width / r.heads
	if have := r.angles.Load(); have != nil && len(*have) >= longest*d {
		return *have
	}
	longest = 1 << bits.Len(uint(longest-1)) // so that it is seldom computed again
	made := make([]float32, longest*d)
	for l := range d / 2 {
		// in float32, as PyTorch computes it: far positions are large multiples of its rounding
		speed := 1 / float32(math.Pow(r.base, float64(float32(2*l)/float32(d))))
		for i := range longest {
			sin, cos := math.Sincos(float64(float32(i) * speed))
			made[i*d+l], made[i*d+d/2+l] = float32(cos), float32(sin)
		}
	}
	r.angles.Store(&made)
	return made
}

// relative are the positions of MPNet (Song et al. 2020): a bias of attention's logits for each distance between query
// and key, in buckets that become wider with the distance (Raffel et al. 2020, "T5"). All layers share it.
type relative struct {
	table *nn.Param // [buckets heads]
	heads int
}

const relativePart = "encoder.relative_attention_bias"

// relativeBuckets is the number of buckets that MPNet's code has, whatever its config.json says; half of them are for
// keys after the query.
const relativeBuckets = 32

func (b *builder) relative() *relative {
	if b.Buckets == 0 {
		return nil
	}
	// its values are few, and read as they are: it stays float32 where tables are quantized
	shape := []int{b.Buckets, b.Heads}
	table := b.add(relativePart, "weight", parameter{shape: shape}, func(at nn.Params) *nn.Param {
		return at.Table("weight", b.InitializerRange, b.Buckets, b.Heads)
	})
	return &relative{table, b.Heads}
}

// bucket returns the bucket of a key that is so many tokens after the query.
func bucket(distance int) int {
	const half, exact, farthest = relativeBuckets / 2, relativeBuckets / 4, 128
	first := 0
	if distance > 0 {
		first = half
	}
	n := max(distance, -distance)
	if n < exact {
		return first + n
	}
	// in float32, as PyTorch computes it
	wide := float32(math.Log(float64(float32(n)/exact))) / float32(math.Log(farthest/exact)) * (half - exact)
	return first + min(exact+int(wide), half-1)
}

// expand writes the biases to bias [heads 2·reach−1], by the distances from −(reach−1) on.
func (r *relative) expand(bias []float32, reach int) {
	for distance := 1 - reach; distance < reach; distance++ {
		row := r.table.Data[bucket(distance)*r.heads:]
		for h := range r.heads {
			bias[h*(2*reach-1)+distance+reach-1] = row[h]
		}
	}
}

// backward adds the gradient of the table to into, given that of expand's result.
func (r *relative) backward(dBias []float32, reach int, into nn.Gradients) {
	d := into.Of(r.table)
	if d == nil {
		return
	}
	for h := range r.heads {
		for distance := 1 - reach; distance < reach; distance++ {
			d[bucket(distance)*r.heads+h] += dBias[h*(2*reach-1)+distance+reach-1]
		}
	}
}

// distances are the biases of a pass.
type distances struct {
	bias, dBias []float32 // [heads 2·reach−1]; nil where the layout has none
	reach       int
}

// newDistances returns memory for the biases of texts of a pass, in which no text has more than reach tokens, and for
// their gradients where the table learns.
func (r *relative) newDistances(m memory, reach int, learns bool) distances {
	if r == nil {
		return distances{}
	}
	d := distances{reach: reach, bias: m.Scratch(r.heads * (2*reach - 1))}
	if learns {
		d.dBias = m.Scratch(r.heads * (2*reach - 1))
	}
	return d
}

// reach returns the largest number of tokens that a text of a batch can have.
func (e *encoder) reach(tokens int) int { return max(1, min(tokens, e.config.maxTokens())) }
