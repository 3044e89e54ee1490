package train

import (
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// asked records the passes of an encoder in training.
type asked struct {
	encoders.Encoder
	recompute []bool
}

func (a *asked) Encode(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
	if p.Training {
		a.recompute = append(a.recompute, mode.Recompute)
	}
	return a.Encoder.Encode(p, tokens, mode)
}

func TestRecomputingChangesNoBitOfGradientsByTask(t *testing.T) {
	var trained []map[string][]float32
	for _, recompute := range []bool{false, true} {
		m, plan := smallModel(t, "none", 0.1), smallPlan()
		plan.Recompute, plan.Weighting = recompute, pcgrad()
		train(t, m, smallData(m, 8), plan)
		trained = append(trained, values(m))
	}
	for name, want := range trained[0] {
		if !slices.Equal(trained[1][name], want) {
			t.Errorf("%s has other bits where the encoder computes again what it did not keep", name)
		}
	}
}

func TestRecomputeIsPassedToTheEncoderAndChangesNoBit(t *testing.T) {
	var trained []map[string][]float32
	for _, recompute := range []bool{false, true} {
		m, plan := smallModel(t, "none", 0.1), smallPlan()
		encoder := &asked{Encoder: m.Encoder}
		m.Encoder, plan.Recompute = encoder, recompute
		train(t, m, smallData(m, 8), plan)
		if len(encoder.recompute) == 0 || slices.Contains(encoder.recompute, !recompute) {
			t.Errorf("recompute: %v, but the encoder is asked %v", recompute, encoder.recompute)
		}
		trained = append(trained, values(m))
	}
	for name, want := range trained[0] {
		if !slices.Equal(trained[1][name], want) {
			t.Errorf("%s has other bits where the encoder computes again what it did not keep", name)
		}
	}
}
