package transformer

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/safetensors"
	"github.com/jenga-nlp/jenga/nn"
)

// pack returns texts as a batch. From half of each text on, tokens are of type 1.
func pack(texts ...[]int32) corpus.Tokens {
	tokens := corpus.Tokens{Rows: nn.Rows{Starts: []int{0}}}
	for b, text := range texts {
		tokens.IDs = append(tokens.IDs, text...)
		tokens.Rows.Starts = append(tokens.Rows.Starts, len(tokens.IDs))
		tokens.Rows.Example = append(tokens.Rows.Example, b)
		for i := range text {
			tokens.Rows.Segment = append(tokens.Rows.Segment, int8(2*i/len(text)))
		}
	}
	return tokens
}

// tiny returns the sizes of a small network of a layout, without dropout.
func tiny(layout string) config {
	c := config{layout: findLayout(layout), Vocabulary: 30, Layers: 2, Width: 12, Heads: 3, FeedForward: 20,
		MaxPositions: 9, Types: 2, Epsilon: 1e-12}
	switch layout {
	case "distilbert":
		c.Types = 0
	case "roberta":
		c.Types, c.Padding, c.MaxPositions = 1, 1, 11
	case "electra":
		c.Embedding = 7
	case "mpnet":
		c.Types, c.Padding, c.MaxPositions, c.Buckets = 0, 1, 11, 32
	case "modernbert":
		c.Types, c.GlobalBase, c.LocalBase, c.Window = 0, 160000, 10000, 2
		c.NoBias = biases{Attention: true, FeedForward: true, Norms: true}
		c.Local = map[int]bool{1: true}
	}
	return c
}

// network makes an encoder of c whose parameters are all far from their initial values, so that all its parts matter.
func network(t testing.TB, c config, freeze string) (*encoder, nn.Params) {
	t.Helper()
	params := nn.NewParams(1)
	e, err := newEncoder(c, encoders.Env{Params: params.In("encoder"), Freeze: freeze})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(2, 0))
	for _, w := range params.All() {
		for i := range w.Data {
			w.Data[i] += float32(0.2 * r.NormFloat64())
		}
	}
	return e, params
}

func training(serial uint64) *nn.Pass {
	p := nn.NewPass(3)
	p.Reset(serial)
	p.Training = true
	return p
}

func encode(t testing.TB, e *encoder, p *nn.Pass, tokens corpus.Tokens, wanted nn.LayerSet) [][]float32 {
	t.Helper()
	return encodeAs(t, e, p, tokens, encoders.Mode{Layers: wanted})
}

func encodeAs(t testing.TB, e *encoder, p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) [][]float32 {
	t.Helper()
	states, err := e.Encode(p, tokens, mode)
	if err != nil {
		t.Fatal(err)
	}
	return states
}

func TestGradientsAreThoseOfPyTorch(t *testing.T) {
	for _, layout := range []string{"bert", "distilbert"} {
		file, err := safetensors.Open(filepath.Join("testdata", "gradients_"+layout+".safetensors"))
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		values := func(name string) []float32 {
			v, err := file.Floats(name)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}

		c := tiny(layout)
		e, params := network(t, c, "none")
		for _, w := range params.All() {
			copy(w.Data, values("parameter "+strings.TrimPrefix(w.Name, "encoder.")))
		}
		// The texts of scripts/fixtures/gradients.py.
		tokens := pack([]int32{3, 17, 5, 17, 29, 8, 2}, []int32{4}, []int32{11, 12, 13, 1, 22, 9})
		tokens.Rows.Segment = []int8{0, 0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1}
		p := training(1)
		states := encode(t, e, p, tokens, nn.AllLayers)
		if d := farthest(slices.Concat(states...), values("states")); !(d <= 1e-5) {
			t.Errorf("%s: states are up to %v from PyTorch's", layout, d)
		}

		into := nn.NewGradients(params.All())
		e.backward(p, slices.Collect(slices.Chunk(values("upstream"), len(tokens.IDs)*c.Width)), into)
		var largest float64
		want := map[*nn.Param][]float32{}
		for _, w := range params.All() {
			want[w] = values("gradient " + strings.TrimPrefix(w.Name, "encoder."))
			largest = max(largest, farthest(want[w], make([]float32, len(w.Data))))
		}
		for _, w := range params.All() {
			if d := farthest(into.Of(w), want[w]); !(d <= 1e-4*largest) {
				t.Errorf("%s: the gradient of %s is up to %v from PyTorch's; the largest of all is %v", layout, w.Name,
					d, largest)
			}
		}
	}
}

// farthest returns the largest |a−b|; NaN where one of them is.
func farthest(a, b []float32) float64 {
	var d float64
	for i := range a {
		d = max(d, math.Abs(float64(a[i])-float64(b[i])))
	}
	return d
}

func TestGradientsAreSlopes(t *testing.T) {
	for _, layout := range testedLayouts {
		for _, rate := range []float64{0, 0.2} {
			c := tiny(layout)
			c.Dropout, c.AttentionDropout = rate, rate
			e, params := network(t, c, "none")
			tokens := pack([]int32{3, 17, 5, 17, 29, 8, 2}, []int32{4}, []int32{11, 12, 13, 1, 22, 9, 7, 8})
			upstream := normal(5, len(tokens.IDs)*c.Width)
			loss := func() float64 {
				var sum float64
				for i, x := range encode(t, e, training(1), tokens, nn.LastLayer)[0] {
					sum += float64(x) * float64(upstream[i])
				}
				return sum
			}
			p := training(1)
			encode(t, e, p, tokens, nn.LastLayer)
			into := nn.NewGradients(params.All())
			e.backward(p, [][]float32{upstream}, into)

			var largest float64
			for _, w := range params.All() {
				largest = max(largest, length(into.Of(w)))
			}
			for _, w := range params.All() {
				checkSlope(t, w, into.Of(w), largest, loss)
			}
		}
	}
}

// checkSlope compares a parameter's gradient with central differences along itself and along a random direction.
func checkSlope(t *testing.T, w *nn.Param, gradient []float32, largest float64, loss func() float64) {
	t.Helper()
	if strings.HasSuffix(w.Name, "key.bias") {
		// A number added to all of a query's logits changes no softmax.
		if l := length(gradient); !(l <= 1e-5*largest) {
			t.Errorf("%s: the gradient is %v long, want 0; the largest of all is %v", w.Name, l, largest)
		}
		return
	}
	for name, direction := range map[string][]float32{"its gradient": slices.Clone(gradient),
		"a random direction": normal(6, len(gradient))} {
		unit := 1 / length(direction)
		var want float64
		for i := range direction {
			direction[i] = float32(float64(direction[i]) * unit)
			want += float64(direction[i]) * float64(gradient[i])
		}
		const step = 1e-2
		before := slices.Clone(w.Data)
		along := func(step float32) float64 {
			for i, v := range before {
				w.Data[i] = v + step*direction[i]
			}
			return loss()
		}
		// Richardson extrapolation: the third-order error cancels.
		wide, narrow := (along(step)-along(-step))/(2*step), (along(step/2)-along(-step/2))/step
		got := (4*narrow - wide) / 3
		copy(w.Data, before)
		if !(math.Abs(got-want) <= 1e-2*length(gradient)) {
			t.Errorf("%s along %s: the loss rises by %v, the gradient says %v", w.Name, name, got, want)
		}
	}
}

func length(x []float32) float64 {
	var sum float64
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

// normal returns n numbers from a normal distribution.
func normal(seed uint64, n int) []float32 {
	r := rand.New(rand.NewPCG(seed, 0))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64())
	}
	return x
}

// BenchmarkTrainStep is forward, backward and update of a network of MiniLM-L6's sizes with random weights, on a batch
// of 32 texts of 6 to 18 tokens.
func BenchmarkTrainStep(b *testing.B) {
	c := config{
		layout: &bertLayout, Vocabulary: 30522, Layers: 6, Width: 384, Heads: 12, FeedForward: 1536, MaxPositions: 512,
		Types:   2,
		Epsilon: 1e-12, Dropout: 0.1, AttentionDropout: 0.1,
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
		if _, err := e.Encode(p, tokens, encoders.Mode{}); err != nil {
			b.Fatal(err)
		}
		store.Zero()
		e.backward(p, upstream, store.Gradients())
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
