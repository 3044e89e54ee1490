package nn

import "fmt"

// Dropout hides a share of its input in training and scales the rest, so that the mean stays.
type Dropout struct {
	place string
	rate  float64
}

// NewDropout makes a dropout whose mask is a function of the place of params, and of seed and step. Two of one place
// share a mask.
func NewDropout(params Params, rate float64) Dropout {
	if !(rate >= 0 && rate < 1) {
		panic(fmt.Sprintf("nn: dropout of %v at %s", rate, params.Path()))
	}
	return Dropout{params.Path(), rate}
}

// Apply drops elements of x in training; else it returns x.
func (d Dropout) Apply(p *Pass, x *Node) *Node {
	if !p.Training || d.rate == 0 {
		return x
	}
	key, scale := p.Key(d.place), float32(1/(1-d.rate))
	dropped := uint64(d.rate * (1 << 32))
	mask := func(to, from []float32) {
		for i := range to {
			if draw(key, uint64(i))>>32 >= dropped {
				to[i] += from[i] * scale
			}
		}
	}
	return Operation{
		Name: "dropout", Shape: x.Shape(),
		Forward:  func(in [][]float32, out []float32) { mask(out, in[0]) },
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) { mask(dIn[0], dOut) },
	}.Apply(x)
}

// draw returns the i-th number of a key: Steele et al. 2014, SplitMix64.
func draw(key, i uint64) uint64 {
	z := key + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
