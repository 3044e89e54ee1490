package transformer

import (
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// dropout sets hidden states to zero with a probability, its rate, in training. Its place makes its mask different from
// those of other dropouts.
type dropout struct {
	place string
	rate  float64
}

func newDropout(at nn.Params, rate float64) dropout {
	return dropout{at.In("dropout").Path(), rate}
}

// of returns the dropout for the epilogue of a product; none where nothing is dropped.
func (d dropout) of(p *nn.Pass, drops bool) kernel.Dropped {
	if !drops || d.rate == 0 {
		return kernel.Dropped{}
	}
	return kernel.Dropped{Key: p.Key(d.place), Rate: d.rate}
}

// apply writes x after dropout to out and returns out; where nothing is dropped it returns x. It is its own backward:
// the same elements of a gradient are dropped, the others are scaled by the same factor.
func (d dropout) apply(p *nn.Pass, drops bool, out, x []float32) []float32 {
	if !drops || d.rate == 0 {
		return x
	}
	kernel.Dropout(out, x, p.Key(d.place), d.rate)
	return out
}
