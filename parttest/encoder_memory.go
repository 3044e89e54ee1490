package parttest

import (
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// checkMemory compares the estimate with what passes take.
func checkMemory(t *testing.T, m encoderMaker) {
	tokens := tokensOf(longest, longest, longest)
	for _, training := range []bool{false, true} {
		for _, c := range []struct {
			layers nn.LayerSet
			freeze string
		}{
			{nn.LastLayer, encoders.FreezeNone}, {nn.AllLayers, encoders.FreezeNone},
			{nn.LastLayer, "1"}, {nn.LastLayer, encoders.FreezeAll},
		} {
			layers, e := c.layers, m.encoder(t, c.freeze, 0.2)
			load := encoders.Workload{Tokens: len(tokens.IDs), Layers: layers, Training: training}
			estimate := e.Encoder.(encoders.MemoryEstimator).Memory(load)
			load.Tokens *= 2
			if twice := e.Encoder.(encoders.MemoryEstimator).Memory(load); estimate <= 0 || twice <= estimate {
				t.Errorf("training %v: %d tokens take %d bytes, twice as many %d", training, len(tokens.IDs), estimate,
					twice)
			}

			if training && e.trainable() == nil {
				continue
			}
			p, states := e.encode(t, tokens, layers, training)
			if training {
				e.trainable().Backward(p, upstream(states), nn.NewGradients(e.params))
			}
			if takes := p.Bytes(); estimate < takes*9/10 || estimate > takes*2 {
				t.Errorf("training %v, freeze %s: Memory says %d bytes, a pass takes %d", training, c.freeze, estimate,
					takes)
			}
		}
	}
}

// checkMemoryOfMaps checks that a pass takes as much more as the estimate says where attention maps are observed.
func checkMemoryOfMaps(t *testing.T, m encoderMaker) {
	e := m.encoder(t, encoders.FreezeNone, 0)
	if (e.Describe().Attention == encoders.AttentionMaps{}) {
		t.Skip("it has no attention maps")
	}
	takes := func(observe bool) int64 {
		p, texts := nn.NewPass(1), 0
		if observe {
			p.Observe(nn.AttentionMaps(0), func(int, []int, []float32) { texts++ })
		}
		if _, err := e.Encode(p, tokensOf(longest, 2), nn.LastLayer); err != nil || observe != (texts == 2) {
			t.Fatalf("%d texts were observed, want 2; %v", texts, err)
		}
		return p.Bytes()
	}
	load := encoders.Workload{Tokens: longest + 2, Layers: nn.LastLayer}
	estimate := e.Encoder.(encoders.MemoryEstimator).Memory(load)
	load.Mapped = longest
	more := e.Encoder.(encoders.MemoryEstimator).Memory(load) - estimate
	if got := takes(true) - takes(false); more <= 0 || got < more || got > more+64 { // parts of memory are aligned
		t.Errorf("maps take %d bytes, Memory says %d", got, more)
	}
}
