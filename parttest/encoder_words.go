package parttest

import (
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// checkWords compares the gradient at the word embeddings of an encoder, all of which is frozen, with differences.
func checkWords(t *testing.T, m encoderMaker) {
	tokens := tokensOf(1, 5, 3)
	for _, layers := range []nn.LayerSet{nn.LastLayer, nn.AllLayers} {
		e := m.encoder(t, encoders.FreezeAll, 0.2)
		a := e.Encoder.(encoders.Attributable)
		words, err := a.Words(tokens.IDs) // [T E]
		if err != nil {
			t.Fatal(err)
		}

		_, want := e.encode(t, tokens, layers, false)
		encode := func() (*nn.Pass, [][]float32) {
			p := nn.NewPass(5)
			states, err := a.EncodeWords(p, tokens, words, layers)
			if err != nil || len(states) != len(want) {
				t.Fatalf("%d layers, want %d; %v", len(states), len(want), err)
			}
			return p, states
		}
		p, states := encode()
		for l := range want {
			if !sameBits(states[l], want[l]) {
				t.Errorf("layer %d is not what Encode returns", l)
			}
		}
		at := upstream(states)
		gradient := slices.Clone(a.BackwardWords(p, at))
		if len(gradient) != len(words) || norm(gradient) == 0 {
			t.Fatalf("a gradient of %d numbers and norm %v, want %d numbers that are not all 0", len(gradient),
				norm(gradient), len(words))
		}
		if !sameBits(a.BackwardWords(p, at), gradient) {
			t.Error("a second BackwardWords returns another gradient")
		}
		loss := func() float64 {
			_, states := encode()
			sum := 0.0
			for l, x := range states {
				for i, v := range x {
					sum += float64(v) * float64(at[l][i])
				}
			}
			return sum
		}
		for _, along := range [][]float32{gradient, direction(3, len(words))} {
			checkAlong(t, "word embeddings", words, gradient, along, norm(gradient), loss)
		}
	}
}

// checkMemoryOfWords compares the estimate with what passes of an Attributable take.
func checkMemoryOfWords(t *testing.T, m encoderMaker) {
	tokens, e := tokensOf(longest, longest, longest), m.encoder(t, encoders.FreezeAll, 0)
	estimator, estimates := e.Encoder.(encoders.MemoryEstimator)
	if !estimates {
		t.Skip("it does not estimate its memory")
	}
	a, p := e.Encoder.(encoders.Attributable), nn.NewPass(1)
	words := make([]float32, len(tokens.IDs)*e.Describe().WordEmbeddings.Shape[1])
	states, err := a.EncodeWords(p, tokens, words, nn.LastLayer)
	if err != nil {
		t.Fatal(err)
	}
	a.BackwardWords(p, upstream(states))
	estimate := estimator.Memory(encoders.Workload{Tokens: len(tokens.IDs), Words: true})
	if takes := p.Bytes(); estimate < takes*9/10 || estimate > takes*2 {
		t.Errorf("Memory says %d bytes, a pass takes %d", estimate, takes)
	}
}
