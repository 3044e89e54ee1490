package transformer

import (
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/nn"
)

func TestAnUnpackedPassLeavesPackedWeightsAsTheyAre(t *testing.T) {
	e, _ := network(t, tiny("bert"), "all")
	tokens := someBatch()
	states := func(precision nn.Precision, unpacked bool) []float32 {
		p := nn.NewPass(1)
		p.Precision, p.Unpacked = precision, unpacked
		return slices.Clone(encode(t, e, p, tokens, nn.LastLayer)[0])
	}
	want := states(nn.Float32, false)
	states(nn.Int8, false)
	kept := e.blocks[0].attention.query.packed.Load()
	if got := states(nn.Float32, true); !slices.Equal(got, want) {
		t.Errorf("states are up to %v from those of packed weights", farthest(got, want))
	}
	if after := e.blocks[0].attention.query.packed.Load(); after != kept || kept.precision != nn.Int8 {
		t.Error("the packed weights were replaced")
	}
}
