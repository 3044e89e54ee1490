package bench

import (
	"math/rand/v2"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// The shapes of the works, which are those of the programs that jenga is compared with.
const (
	FullTexts, FullTokens = 16, 128 // texts of a batch, tokens of each text
	dataTexts, dataTokens = 32, 128 // texts of a batch, at most so many tokens of a text
	oneTokens             = 16      // of OneText
)

// Work is batches of texts, each with a label. The first of several batches warms up.
type Work struct {
	Name    string
	Batches [][]*corpus.Example
}

// timed returns the batches that are measured.
func (w Work) timed() [][]*corpus.Example {
	if len(w.Batches) > 1 {
		return w.Batches[1:]
	}
	return w.Batches
}

// Texts returns the number of texts in the measured batches.
func (w Work) Texts() int {
	sum := 0
	for _, batch := range w.timed() {
		sum += len(batch)
	}
	return sum
}

// Tokens returns the number of tokens in the measured batches, special ones included.
func (w Work) Tokens() int {
	sum := 0
	for _, batch := range w.timed() {
		for _, e := range batch {
			sum += e.Tokens()
		}
	}
	return sum
}

// StepTokens returns the mean number of tokens of a measured batch.
func (w Work) StepTokens() float64 { return float64(w.Tokens()) / float64(len(w.timed())) }

// Full returns so many measured batches of texts, each of a number of random tokens, at most the encoder's Longest.
func (n *Network) Full(batches, texts, tokens int) Work {
	r := rand.New(rand.NewPCG(seed, 0))
	w := Work{Name: "full"}
	for range batches + 1 {
		var batch []*corpus.Example
		for range texts {
			batch = append(batch, n.random(r, min(tokens, n.longest)))
		}
		w.add(batch)
	}
	return w
}

// Data returns so many measured batches of 32 of the texts, fewer if there are not enough, truncated to 128 tokens. The
// texts are in their order, or shuffled.
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

// add adds a batch, with all labels in turn.
func (w *Work) add(batch []*corpus.Example) {
	for i, e := range batch {
		e.Targets = []corpus.Target{&outputs.LabelTarget{ID: i % labels}}
	}
	w.Batches = append(w.Batches, batch)
}

// random returns a text of random tokens.
func (n *Network) random(r *rand.Rand, tokens int) *corpus.Example {
	text := corpus.Encoding{
		IDs: make([]int32, tokens), Segments: make([]int8, tokens), Offsets: make([]corpus.Span, tokens),
		Words: make([]int32, tokens),
	}
	for i := range tokens {
		text.IDs[i] = r.Int32N(int32(n.vocabulary))
		text.Words[i] = -1
	}
	return &corpus.Example{Windows: []corpus.Encoding{text}}
}
