package bench

import (
	"math/rand/v2"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// The shapes of the works, those of the peers that jenga is measured against.
const (
	fullTexts, fullTokens = 16, 128
	dataTexts, dataTokens = 32, 128 // texts of a batch, tokens of a text at most
	oneTokens             = 16      // of the text that comes alone
)

// Work is batches of texts, each with a label. The first batch warms up, where there are more.
type Work struct {
	Name    string
	Batches [][]*corpus.Example
}

// timed are the batches that are measured.
func (w Work) timed() [][]*corpus.Example {
	if len(w.Batches) > 1 {
		return w.Batches[1:]
	}
	return w.Batches
}

// Texts returns how many texts the measured batches have, and Tokens how many tokens.
func (w Work) Texts() int {
	sum := 0
	for _, batch := range w.timed() {
		sum += len(batch)
	}
	return sum
}

// Tokens returns how many tokens the measured batches have, special ones included.
func (w Work) Tokens() int {
	sum := 0
	for _, batch := range w.timed() {
		for _, e := range batch {
			sum += e.Tokens()
		}
	}
	return sum
}

// StepTokens returns how many tokens a measured batch has on average.
func (w Work) StepTokens() float64 { return float64(w.Tokens()) / float64(len(w.timed())) }

// Full is so many measured batches of 16 texts of 128 random tokens, or of what the encoder takes.
func (n *Network) Full(batches int) Work {
	r := rand.New(rand.NewPCG(seed, 0))
	w := Work{Name: "full"}
	for range batches + 1 {
		var batch []*corpus.Example
		for range fullTexts {
			batch = append(batch, n.random(r, min(fullTokens, n.longest)))
		}
		w.add(batch)
	}
	return w
}

// Data is so many measured batches of 32 of the texts, or as many as there are texts for, cut at 128 tokens. The
// texts come in their order, or shuffled.
func (n *Network) Data(texts []*corpus.Example, shuffled bool, batches int) Work {
	if n.tokenizer == nil {
		panic("bench: texts for a network without a tokenizer")
	}
	texts = slices.Clone(texts)
	if shuffled {
		r := rand.New(rand.NewPCG(seed, 1))
		r.Shuffle(len(texts), func(i, j int) { texts[i], texts[j] = texts[j], texts[i] })
	}
	texts = texts[:min(len(texts), (batches+1)*dataTexts)]
	w := Work{Name: "data"}
	for from := 0; from < len(texts); from += dataTexts {
		batch := texts[from:min(from+dataTexts, len(texts))]
		for _, e := range batch {
			e.Windows = []corpus.Encoding{n.tokenizer.Encode(e, min(dataTokens, n.longest))}
		}
		w.add(batch)
	}
	return w
}

// add adds a batch; its labels go round.
func (w *Work) add(batch []*corpus.Example) {
	for i, e := range batch {
		e.Targets = []corpus.Target{&outputs.LabelTarget{ID: i % labels}}
	}
	w.Batches = append(w.Batches, batch)
}

// random is a text of random tokens.
func (n *Network) random(r *rand.Rand, tokens int) *corpus.Example {
	text := corpus.Encoding{
		IDs: make([]int32, tokens), Types: make([]int8, tokens), Offsets: make([]corpus.Span, tokens),
		Words: make([]int32, tokens),
	}
	for i := range tokens {
		text.IDs[i] = r.Int32N(int32(n.vocabulary))
		text.Words[i] = -1
	}
	return &corpus.Example{Windows: []corpus.Encoding{text}}
}
