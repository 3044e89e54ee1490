package transformer

import (
	"fmt"
	"slices"
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
						got := e.estimate(encoders.Workload{Tokens: len(tokens.IDs), Layers: layers, Training: training,
							Recompute: recompute}) - e.packedMemory(training)

						p := nn.NewPass(1)
						p.Training = training
						states, err := e.Encode(p, tokens, encoders.Mode{Layers: layers, Recompute: recompute})
						if err != nil {
							t.Fatal(err)
						}
						if training {
							e.backward(p, make([][]float32, len(states)), into)
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

func TestAStepAllocatesNothingOnceItsMemoryIsThere(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	e, params := network(t, tiny("bert"), "none")
	tokens := someBatch()
	into := nn.NewGradients(params.All())
	upstream := [][]float32{normal(7, len(tokens.IDs)*e.config.Width)}
	p, optimizer, serial := nn.NewPass(3), nn.NewAdamW(0.01), uint64(0)
	all := params.All()
	allocs := testing.AllocsPerRun(50, func() {
		serial++
		p.Reset(serial)
		p.Training = true
		encode(t, e, p, tokens, nn.LastLayer)
		e.backward(p, upstream, into)
		optimizer.Step(all, into, 1, 1e-5)
	})
	graph := testing.AllocsPerRun(50, func() { p.Reset(serial) }) // an empty one, for the heads
	if allocs > graph {
		t.Errorf("a step allocates %v times, %v of them for the graph", allocs, graph)
	}
}

func TestRecomputingChangesNoBit(t *testing.T) {
	for _, freeze := range []string{"none", "1"} {
		gradients := func(recompute bool) ([][]float32, int64) {
			e, params := network(t, tiny("bert"), freeze)
			tokens := someBatch()
			p := training(5)
			encodeAs(t, e, p, tokens, encoders.Mode{Recompute: recompute})
			upstream := [][]float32{normal(7, len(tokens.IDs)*e.config.Width)}
			var all [][]float32
			for range 2 { // a weighting may require the gradient of each task
				into := nn.NewGradients(params.All())
				e.backward(p, upstream, into)
				for _, w := range params.All() {
					all = append(all, into.Of(w))
				}
			}
			return all, p.Bytes()
		}
		want, much := gradients(false)
		got, little := gradients(true)
		for i := range want {
			if !slices.Equal(got[i], want[i]) {
				t.Fatalf("freeze %s: gradient %d differs where the blocks are computed again", freeze, i)
			}
		}
		if little >= much {
			t.Errorf("freeze %s: a pass takes %d bytes where it computes again, %d where it keeps all", freeze, little,
				much)
		}
	}
}

func TestRecomputingHalvesTheActivations(t *testing.T) {
	made, err := New(Options{Layers: 6, Width: 32, Heads: 4, FeedForward: 128, MaxPositions: 512,
		InitializerRange: 0.02},
		encoders.Env{Vocabulary: 100, MaxLength: 512, Params: nn.NewParams(1)})
	if err != nil {
		t.Fatal(err)
	}
	load := encoders.Workload{Tokens: 2048, Training: true}
	all := made.(*encoder).estimate(load)
	load.Recompute = true
	if half := made.(*encoder).estimate(load); half > all/2 {
		t.Errorf("a batch takes %d bytes where the blocks are computed again, %d where all is kept", half, all)
	}
}
