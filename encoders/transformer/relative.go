package transformer

import (
	"math"

	"github.com/jenga-nlp/jenga/nn"
)

// relative are the positions of MPNet (Song et al. 2020): a bias of attention's logits for each distance between query
// and key, in buckets that become wider with the distance (Raffel et al. 2020, "T5"). All layers share it.
type relative struct {
	table *nn.Param // [buckets heads]
	heads int
}

// relativePart is the name of the table's subtree of parameters.
const relativePart = "encoder.relative_attention_bias"

// relativeBuckets is the number of buckets that MPNet's code has, whatever its config.json says; half of them are for
// keys after the query.
const relativeBuckets = 32

// newRelative makes the table; nil for a layout without.
func newRelative(root nn.Params, c config) *relative {
	if c.Buckets == 0 {
		return nil
	}
	return &relative{root.In(relativePart).Table("weight", c.InitializerRange, c.Buckets, c.Heads), c.Heads}
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

// biasSize returns the number of values of the biases of texts that have up to reach tokens.
func (r *relative) biasSize(reach int) int {
	if r == nil {
		return 0
	}
	return r.heads * (2*reach - 1)
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

// distances returns the biases of a pass; without memory for their gradients where the table does not learn.
func (e *encoder) distances(p *nn.Pass, s *encoding) distances {
	if e.relative == nil {
		return distances{}
	}
	by := distances{reach: e.reach(len(s.tokens.IDs))}
	by.bias = p.Scratch(e.relative.biasSize(by.reach))
	e.relative.expand(by.bias, by.reach)
	if s.lowest == 0 {
		by.dBias = p.Scratch(len(by.bias))
	}
	return by
}

// reach returns the largest number of tokens that a text of a batch can have.
func (e *encoder) reach(tokens int) int { return max(1, min(tokens, e.config.maxTokens())) }
