package parttest

import (
	"math"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/nn"
)

func checkEncoderGradients(t *testing.T, m encoderMaker) {
	tokens := tokensOf(1, 5, 3)
	for _, layers := range []nn.Wanted{nn.LastLayer, nn.AllLayers} {
		e := m.encoder(t, "none", 0.2)
		into, states := e.gradients(t, tokens, layers)
		at := upstream(states)
		loss := func() float64 {
			for _, w := range e.params {
				w.Changed()
			}
			_, states := e.encode(t, tokens, layers, true)
			sum := 0.0
			for l, x := range states {
				for i, v := range x {
					sum += float64(v) * float64(at[l][i])
				}
			}
			return sum
		}

		total := 0.0
		for _, w := range e.params {
			total = math.Hypot(total, norm(into.Of(w)))
		}
		if total == 0 {
			t.Fatal("all gradients are 0")
		}
		for i, w := range e.params {
			checkAlong(t, "parameter "+w.Name, w.Data, into.Of(w), into.Of(w), total, loss)
			checkAlong(t, "parameter "+w.Name, w.Data, into.Of(w), direction(uint64(i), len(w.Data)), total, loss)
		}
	}
}

func checkFrozenLayers(t *testing.T, m encoderMaker) {
	tokens := tokensOf(1, 5, 3)
	t.Run("all of it", func(t *testing.T) {
		e := m.encoder(t, "all", 0.5)
		if slices.ContainsFunc(e.params, (*nn.Param).Learns) {
			t.Error("freeze: all leaves a parameter that learns")
		}
		_, want := e.encode(t, tokens, nn.AllLayers, false)
		p, got := e.encode(t, tokens, nn.AllLayers, true)
		for l := range want {
			if !sameBits(got[l], want[l]) {
				t.Errorf("layer %d differs in training", l)
			}
		}
		e.trainable().Backward(p, upstream(got), nn.NewGradients(e.params)) // there is nothing to do
	})
	t.Run("its embeddings and first layer", func(t *testing.T) {
		whole, part := m.encoder(t, "none", 0), m.encoder(t, "1", 0)
		want, _ := whole.gradients(t, tokens, nn.LastLayer)
		got, _ := part.gradients(t, tokens, nn.LastLayer)
		frozen := 0
		for i, w := range part.params {
			switch {
			case w.Frozen:
				frozen++
			case !sameBits(got.Of(w), want.Of(whole.params[i])):
				t.Errorf("parameter %s has another gradient than where nothing is frozen", w.Name)
			}
		}
		if frozen == 0 {
			t.Error("freeze: 1 freezes nothing")
		}
	})
}
