package parttest

import (
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// checkLaterLayers requires that each parameter is in one of a Layered's levels, and that levels that learn later give
// the same states and gradients as frozen ones.
func checkLaterLayers(t *testing.T, m encoderMaker) {
	e := m.encoder(t, encoders.FreezeNone, 0.5)
	in := map[*nn.Param]int{}
	for _, level := range e.Encoder.(encoders.Layered).Levels() {
		for _, w := range level {
			in[w]++
		}
	}
	for _, w := range e.params {
		if in[w] != 1 {
			t.Errorf("parameter %s is in %d levels, want one", w.Name, in[w])
		}
	}
	for _, freeze := range []string{"1", encoders.FreezeAll} {
		checkLater(t, m.encoder(t, encoders.FreezeNone, 0.5), m.encoder(t, freeze, 0.5))
	}
}

// checkLater compares an encoder, some of whose parameters learn later, with one in which they are frozen.
func checkLater(t *testing.T, later, frozen encoder) {
	for i, w := range later.params {
		w.Later = frozen.params[i].Frozen
	}
	tokens := tokensOf(1, 5, 3)
	_, want := frozen.encode(t, tokens, nn.AllLayers, true)
	_, got := later.encode(t, tokens, nn.AllLayers, true)
	for l := range want {
		if !sameBits(got[l], want[l]) {
			t.Errorf("layer %d differs from that of an encoder that is frozen as far", l)
		}
	}
	wantGradients, _ := frozen.gradients(t, tokens, nn.LastLayer)
	gradients, _ := later.gradients(t, tokens, nn.LastLayer)
	for i, w := range later.params {
		switch d := gradients.Of(w); {
		case w.Later && d != nil:
			t.Errorf("parameter %s, which learns later, has a gradient", w.Name)
		case !w.Later && !sameBits(d, wantGradients.Of(frozen.params[i])):
			t.Errorf("parameter %s has another gradient than in an encoder that is frozen as far", w.Name)
		}
	}
}
