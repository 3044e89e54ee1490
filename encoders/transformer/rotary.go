package transformer

import (
	"math"
	"math/bits"
	"sync/atomic"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// rotary are the positions of rotary embeddings (Su et al. 2021): queries and keys are rotated by angles that grow with
// a token's position, pair l of a head's d/2 by the position times base^(−2l/d).
type rotary struct {
	base         float64
	heads, width int
	angles       atomic.Pointer[[]float32] // [positions d]: cosines, then sines, of each position
}

func newRotary(c config, base float64) *rotary {
	return &rotary{base: base, heads: c.Heads, width: c.Width}
}

// rotate rotates x [T D] in place.
func (r *rotary) rotate(x []float32, starts []int) {
	kernel.Rotate(x, r.of(starts), starts, r.heads, r.width)
}

// rotateBack turns the gradient at rotate's result into that at its x.
func (r *rotary) rotateBack(d []float32, starts []int) {
	kernel.RotateBack(d, r.of(starts), starts, r.heads, r.width)
}

// of returns the angles for the longest of the texts that begin at starts.
func (r *rotary) of(starts []int) []float32 {
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
