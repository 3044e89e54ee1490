package transformer

import (
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// somePass returns the states and gradients of a training pass over a batch.
func somePass(t *testing.T, e *encoder, tokens corpus.Tokens, change func(p *nn.Pass)) []float32 {
	t.Helper()
	p := training(5)
	change(p)
	all := slices.Clone(encode(t, e, p, tokens, nn.LastLayer)[0])
	into := nn.NewGradients(e.params.All())
	for range 2 { // a weighting may require the gradient of each task
		e.Backward(p, [][]float32{normal(7, len(tokens.IDs)*e.config.Width)}, into)
	}
	for _, w := range e.params.All() {
		all = append(all, into.Of(w)...)
	}
	return all
}

func TestLayoutsRecomputeToTheSameBits(t *testing.T) {
	for _, layout := range testedLayouts {
		c := tiny(layout)
		c.Dropout, c.AttentionDropout, c.Layers = 0.1, 0.1, 4
		for _, freeze := range []string{"none", "1"} {
			e, _ := network(t, c, freeze)
			want := somePass(t, e, someBatch(), func(*nn.Pass) {})
			got := somePass(t, e, someBatch(), func(p *nn.Pass) { p.Recompute = true })
			if !slices.Equal(got, want) {
				t.Errorf("%s, freeze %s: other bits where the blocks are computed again", layout, freeze)
			}
		}
	}
}

func TestLayoutsInInt8AreNear(t *testing.T) {
	for _, layout := range testedLayouts {
		e, _ := network(t, tiny(layout), "none")
		states := func(precision nn.Precision) []float32 {
			p := nn.NewPass(0)
			p.Precision = precision
			return slices.Concat(encode(t, e, p, someBatch(), nn.AllLayers)...)
		}
		if d := relativeDistance(states(nn.Int8), states(nn.Float32)); !(d > 1e-4 && d < 0.01) {
			t.Errorf("%s: products of int8 change states by %v", layout, d)
		}
	}
}

func TestLayoutsInBFloat16AreNear(t *testing.T) {
	for _, layout := range testedLayouts {
		e, _ := network(t, tiny(layout), "none")
		want := somePass(t, e, someBatch(), func(*nn.Pass) {})
		got := somePass(t, e, someBatch(), func(p *nn.Pass) { p.Precision = nn.BFloat16 })
		if d := relativeDistance(got, want); !(d > 1e-5 && d < 0.05) { // 2⁻⁸ a factor
			t.Errorf("%s: products of bfloat16 change states and gradients by %v", layout, d)
		}
	}
}

func TestLayoutsHaveLoRA(t *testing.T) {
	for _, layout := range testedLayouts {
		e, params := network(t, tiny(layout), "none")
		o := encoders.LoRA{Rank: 2, Alpha: 3, Targets: e.blocks[0].targets()}
		if err := e.addLoRA(o, params.In("encoder").In("lora")); err != nil {
			t.Fatal(err)
		}
		for i, w := range params.In("encoder").In("lora").All() {
			copy(w.Data, normal(uint64(i), len(w.Data)))
			w.Changed()
		}
		p := training(1)
		want := slices.Clone(encode(t, e, p, someBatch(), nn.LastLayer)[0])
		into := nn.NewGradients(params.All())
		e.Backward(p, [][]float32{normal(3, len(want))}, into)
		for _, w := range params.All() {
			if moved := into.Has(w) && length(into.Of(w)) > 0; moved != strings.Contains(w.Name, ".lora.") {
				t.Errorf("%s: %s has a gradient: %v", layout, w.Name, moved)
			}
		}
		opened := openModel(t, save(t, e))
		got := encode(t, opened, nn.NewPass(1), someBatch(), nn.LastLayer)[0]
		if d := relativeDistance(got, want); !(d <= 1e-6) {
			t.Errorf("%s: saved and opened it gives states %v from its own", layout, d)
		}
	}
}

func TestLayoutsTakeTheMemoryThatTheyEstimate(t *testing.T) {
	for _, layout := range testedLayouts {
		c := tiny(layout)
		c.Layers, c.MaxPositions = 4, 200
		for _, freeze := range []string{"none", "embeddings", "2"} {
			for _, recompute := range []bool{false, true} {
				e, params := network(t, c, freeze)
				tokens := someTexts(5, 20, 90, c.Vocabulary)
				p := training(1)
				p.Recompute = recompute
				states := encode(t, e, p, tokens, nn.LastLayer)
				e.Backward(p, make([][]float32, len(states)), nn.NewGradients(params.All()))
				got := e.Memory(encoders.Workload{Tokens: len(tokens.IDs), Training: true, Recompute: recompute})
				got -= e.packedMemory(true)
				if want := p.Bytes(); got < want*97/100 || got > want*103/100 {
					t.Errorf("%s, freeze %s: Memory = %d bytes, a pass takes %d", layout, freeze, got, want)
				}
			}
		}
	}
}
