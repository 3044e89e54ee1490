package transformer

import (
	"fmt"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

func TestMemoryIsWhatAPassTakes(t *testing.T) {
	const texts, longest = 5, 20
	tokens := corpus.Tokens{Rows: nn.Rows{Starts: []int{0}}}
	for b := range texts {
		for range longest - b%3 {
			tokens.IDs = append(tokens.IDs, int32(len(tokens.IDs)%100))
		}
		tokens.Rows.Starts = append(tokens.Rows.Starts, len(tokens.IDs))
	}
	tokens.Rows.Segment = make([]int8, len(tokens.IDs))

	for _, freeze := range []string{"none", "embeddings", "2", "all"} {
		for _, training := range []bool{true, false} {
			for _, layers := range []nn.LayerSet{nn.LastLayer, nn.AllLayers} {
				for _, recompute := range []bool{false, true} {
					t.Run(fmt.Sprint(freeze, training, layers, recompute), func(t *testing.T) {
						params := nn.NewParams(1)
						o := Options{Layers: 4, Width: 32, Heads: 4, FeedForward: 96, MaxPositions: longest,
							InitializerRange: 0.02}
						made, err := New(o,
							encoders.Env{Vocabulary: 100, MaxLength: longest, Freeze: freeze, Params: params})
						if err != nil {
							t.Fatal(err)
						}
						e, into := made.(*encoder), nn.NewGradients(params.All())
						got := e.Memory(encoders.Workload{Tokens: len(tokens.IDs), Layers: layers, Training: training,
							Recompute: recompute}) - e.packedMemory(training)

						p := nn.NewPass(1)
						p.Training, p.Recompute = training, recompute
						states, err := e.Encode(p, tokens, layers)
						if err != nil {
							t.Fatal(err)
						}
						if training {
							e.Backward(p, make([][]float32, len(states)), into)
						}
						if want := p.Bytes(); got < want*97/100 || got > want*103/100 {
							t.Errorf("Memory = %d bytes, a pass takes %d", got, want)
						}
					})
				}
			}
		}
	}
}
