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

// of returns the dropout as it follows a product, none where it does not drop.
func (d dropout) of(p *nn.Pass, drops bool) kernel.Dropped {
	if !drops || d.rate == 0 {
		return kernel.Dropped{}
	}
	return kernel.Dropped{Key: p.Key(d.place), Rate: d.rate}
}

// apply writes to out what is left of x, and returns it: x itself where nothing is dropped. It is its own backward: the
// same elements of a gradient are dropped, the others scaled alike.
func (d dropout) apply(p *nn.Pass, drops bool, out, x []float32) []float32 {
	if !drops || d.rate == 0 {
		return x
	}
	kernel.Dropout(out, x, p.Key(d.place), d.rate)
	return out
}
