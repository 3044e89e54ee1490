package transformer

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// BenchmarkTrainStep is forward, backward and update of a network of MiniLM-L6's sizes with random weights, on a batch
// of 32 texts of 6 to 18 tokens.
func BenchmarkTrainStep(b *testing.B) {
	c := config{
		Layout: "bert", Vocabulary: 30522, Layers: 6, Width: 384, Heads: 12, FeedForward: 1536, MaxPositions: 512,
		Types:   2,
		Epsilon: 1e-12, Dropout: 0.1, AttentionDropout: 0.1, Activation: "gelu",
	}
	params := nn.NewParams(1)
	e, err := newEncoder(c, encoders.Env{Params: params})
	if err != nil {
		b.Fatal(err)
	}
	tokens := someTexts(32, 6, 18, c.Vocabulary)
	n := len(tokens.IDs)
	upstream := [][]float32{normal(3, n*c.Width)}
	store := nn.NewHostStore(params.All(), nn.NewAdamW(0.01))
	p := nn.NewPass(1)
	step := func(serial uint64) {
		p.Reset(serial)
		p.Training = true
		if _, err := e.Encode(p, tokens, nn.LastLayer); err != nil {
			b.Fatal(err)
		}
		store.Zero()
		e.Backward(p, upstream, store.Gradients())
		squares, err := store.SumSquares()
		if err != nil {
			b.Fatal(err)
		}
		store.Update(nn.ClipFactor(math.Sqrt(squares), 1), 1e-5)
	}
	step(0) // allocates the memory

	b.ReportAllocs()
	for serial := uint64(1); b.Loop(); serial++ {
		step(serial)
	}
	weights := c.Layers * c.Width * (4*c.Width + 2*c.FeedForward)
	seconds := b.Elapsed().Seconds() / float64(b.N)
	b.ReportMetric(float64(n)/seconds, "tokens/s")
	// of the layers' products: forward, and backward twice that
	b.ReportMetric(3*2*float64(weights*n)/seconds/1e9, "GFLOP/s")
}

// someTexts returns texts of shortest to longest random tokens.
func someTexts(texts, shortest, longest, vocabulary int) corpus.Tokens {
	r := rand.New(rand.NewPCG(4, 0))
	all := make([][]int32, texts)
	for b := range all {
		all[b] = make([]int32, shortest+r.IntN(longest-shortest+1))
		for i := range all[b] {
			all[b][i] = r.Int32N(int32(vocabulary))
		}
	}
	return pack(all...)
}
