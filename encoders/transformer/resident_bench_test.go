//go:build gpu && linux && (amd64 || arm64)

package transformer

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/internal/cuda/cudatest"
	"github.com/jenga-nlp/jenga/nn"
)

// benchSizes are those of published encoders.
func benchSizes(name string) config {
	c := bertLayout.defaults()
	c.Vocabulary, c.MaxPositions = 30522, 512
	switch name {
	case "distilbert":
		c.Layers = 6
	case "modernbert":
		c = modernbertLayout.defaults()
	case "tiny":
		c.Layers, c.Width, c.Heads, c.FeedForward, c.Vocabulary = 2, 32, 2, 64, 200
	}
	return c
}

// BenchmarkADevice measures training steps and inference of the encoder alone, with the first tokens' states read, and
// logs how long the device's operations take: go test -tags gpu -bench ADevice -v.
func BenchmarkADevice(b *testing.B) {
	names := []string{"tiny"} // under emulation
	if cudatest.Real() {
		names = []string{"bert", "distilbert", "modernbert"}
	}
	for _, name := range names {
		for _, precision := range []nn.Precision{nn.BFloat16, nn.Float32} {
			for _, texts := range []int{64, 16} {
				if !cudatest.Real() {
					texts /= 16
				}
				b.Run(fmt.Sprintf("%s/%v/%dx128", name, precision, texts), func(b *testing.B) {
					benchmarkDevice(b, benchSizes(name), precision, texts)
				})
			}
		}
	}
}

func benchmarkDevice(b *testing.B, c config, precision nn.Precision, texts int) {
	params := nn.NewParams(1)
	e, err := newEncoder(c, encoders.Env{Params: params.In("encoder")})
	if err != nil {
		b.Fatal(err)
	}
	r, err := toDevice(e, cudatest.Open(b))
	if err != nil {
		b.Fatal(err)
	}
	tokens := randomTexts(texts, 128, c.Vocabulary)
	store := r.newStore(0.01, 0)
	mode := encoders.Mode{Layers: nn.LastLayer, Precision: precision, Read: tokens.Rows.Starts[:texts]}
	at := make([]float32, len(tokens.IDs)*c.Width)
	for _, row := range mode.Read {
		copy(at[row*c.Width:], normal(uint64(row), c.Width))
	}
	p := training(1)
	step := func() {
		store.Zero()
		if _, err := r.Encode(p, tokens, mode); err != nil {
			b.Fatal(err)
		}
		r.backward(p, [][]float32{at})
		if _, err := store.SumSquares(); err != nil {
			b.Fatal(err)
		}
		if err := store.Update(1e-3, 2e-5); err != nil {
			b.Fatal(err)
		}
	}
	q := nn.NewPass(1)
	infer := func() {
		q.Reset(0)
		if _, err := r.Encode(q, tokens, mode); err != nil {
			b.Fatal(err)
		}
	}
	for _, run := range []struct {
		name string
		do   func()
	}{{"train", step}, {"infer", infer}} {
		b.Run(run.name, func(b *testing.B) { measureOnDevice(b, r.gpu, len(tokens.IDs), run.do) })
	}
}

// randomTexts returns a batch of texts of a number of tokens each.
func randomTexts(texts, length, vocabulary int) corpus.Tokens {
	random := rand.New(rand.NewPCG(1, 0))
	var all [][]int32
	for range texts {
		text := make([]int32, length)
		for i := range text {
			text[i] = int32(random.IntN(vocabulary))
		}
		all = append(all, text)
	}
	return pack(all...)
}

// measureOnDevice measures what do queues for a batch of so many tokens.
func measureOnDevice(b *testing.B, gpu *cuda.Device, tokens int, do func()) {
	do()
	do()
	gpu.Synchronize()
	before := gpu.Launches()
	start := time.Now()
	for b.Loop() {
		do()
	}
	gpu.Synchronize()
	took := time.Since(start)
	b.ReportMetric(float64(tokens)*float64(b.N)/took.Seconds(), "tokens/s")
	b.ReportMetric(float64(gpu.Launches()-before)/float64(b.N), "launches/op")
	b.ReportMetric(float64(gpu.Free())/(1<<20), "MiB-free")
	if testing.Verbose() {
		const logged = 24
		for i, op := range gpu.Profile(do) {
			if i < logged {
				b.Logf("%9.3f ms %4d %s", op.Time.Seconds()*1e3, op.Count, op.Name)
			}
		}
	}
}
