package multitask

import (
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

func TestACacheKeepsWhatItHasRoomFor(t *testing.T) {
	m := smallModel(t, "all", 0.1)
	data := smallData(m, 6)[0].Train
	batch, pass := corpus.Pack(data), nn.NewPass(1)
	layers, err := m.encode(pass, batch)
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Clone(layers[0]) // [T D]

	first := (batch.Tokens.Rows.Starts[3] + 1) * m.Encoder.Width() // three texts, and not a fourth
	for _, test := range []struct {
		room  int
		again int // texts that a second pass encodes
	}{{0, 6}, {first, 3}, {len(want), 0}} {
		counted := &counting{Encoder: m.Encoder}
		of := &Model{Encoder: counted, Fusion: m.Fusion, cache: newCache(test.room)}
		for range 2 {
			counted.texts = 0
			pass.Reset(1)
			got, err := of.encode(pass, batch)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got[0], want) {
				t.Errorf("with room for %d numbers the states are others", test.room)
			}
		}
		if counted.texts != test.again {
			t.Errorf("with room for %d numbers a second pass encodes %d texts, want %d", test.room, counted.texts, test.again)
		}
	}
}
