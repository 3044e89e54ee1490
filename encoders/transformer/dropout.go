package transformer

import (
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/nn"
)

// dropout hides a share of the hidden states in training. Its place tells its mask from those of other dropouts.
type dropout struct {
	place string
	rate  float64
}

func newDropout(at nn.Params, rate float64) dropout {
	return dropout{at.In("dropout").Path(), rate}
}

// apply drops from x in place. It is its own backward: the same elements of a gradient are dropped, the others scaled
// alike.
func (d dropout) apply(p *nn.Pass, x []float32) {
	if d.rate > 0 {
		kernel.Dropout(x, x, p.Key(d.place), d.rate)
	}
}
