package parttest

import (
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// checkReady requires that Backward reports each parameter that learns once, when its gradient is final, and always in
// the same order: processes that sum gradients expect the same parameter at each step.
func checkReady(t *testing.T, m encoderMaker) {
	for _, freeze := range []string{encoders.FreezeNone, "1"} {
		var order []string // of the first batch
		for batch, lengths := range [][]int{{1, 5, 3}, {longest, 2}} {
			e := m.encoder(t, freeze, 0.2)
			p, states := e.encode(t, tokensOf(lengths...), nn.AllLayers, true)
			into := nn.NewGradients(e.params)
			reported, names := map[*nn.Param][]float32{}, []string{} // gradients as they were when they were reported
			e.trainable().Backward(p, upstream(states), into.Observed(func(w *nn.Param) {
				if _, twice := reported[w]; twice {
					t.Errorf("freeze %s: parameter %s is reported twice", freeze, w.Name)
				}
				reported[w], names = slices.Clone(into.Of(w)), append(names, w.Name)
			}))

			for _, w := range e.params {
				then, ok := reported[w]
				switch {
				case !into.Has(w):
				case !ok:
					t.Errorf("freeze %s: parameter %s is not reported by Ready", freeze, w.Name)
				case !sameBits(then, into.Of(w)):
					t.Errorf("freeze %s: the gradient of %s changes after it is reported", freeze, w.Name)
				}
			}
			if batch == 0 {
				order = names
			} else if !slices.Equal(names, order) {
				t.Errorf("freeze %s: the order of reports is %q, in another batch %q", freeze, names, order)
			}
		}
	}
}
