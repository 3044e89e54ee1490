package corpus

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"github.com/jenga-nlp/jenga/nn"
)

// Pack concatenates the tokens of examples, which must be encoded.
func Pack(examples []*Example) *Batch {
	tokens := 0
	for _, e := range examples {
		tokens += e.Tokens()
	}
	b := &Batch{Examples: examples, texts: make([]int, 1, len(examples)+1)}
	b.Tokens.IDs = make([]int32, 0, tokens)
	r := &b.Tokens.Rows
	r.Starts = make([]int, 1, len(examples)+1)
	r.Segment = make([]int8, 0, tokens)
	r.Special = make([]bool, 0, tokens)
	for i, e := range examples {
		if len(e.Windows) == 0 {
			panic("corpus: packing an example that is not encoded")
		}
		for _, w := range e.Windows {
			b.add(e, w, i)
		}
		b.texts = append(b.texts, r.Texts())
	}
	return b
}

func (b *Batch) add(e *Example, w Encoding, i int) {
	if n := len(w.IDs); n == 0 || len(w.Segments) != n || len(w.Offsets) != n || w.TokenTypes != nil &&
		len(w.TokenTypes) != n {
		panic("corpus: packing an example that is not encoded")
	}
	r, first := &b.Tokens.Rows, len(b.Tokens.IDs)
	b.Tokens.IDs = append(b.Tokens.IDs, w.IDs...)
	r.Starts = append(r.Starts, len(b.Tokens.IDs))
	r.Segment = append(r.Segment, w.Segments...)
	for _, o := range w.Offsets {
		r.Special = append(r.Special, o == Span{})
	}
	r.Types = append(r.Types, w.TokenTypes...)
	r.Example = append(r.Example, i)
	r.Second = append(r.Second, w.Second)
	r.WordCount = append(r.WordCount, len(e.Words))
	addWords(r, w, first)
}

// addWords appends the row of each word's first piece in a window whose tokens begin at row first.
func addWords(r *nn.Rows, w Encoding, first int) {
	last := int32(-1) // words are in order, so a word begins where the number grows
	for i, word := range w.Words {
		if word > last {
			r.Words = append(r.Words, first+i)
			r.WordIndex = append(r.WordIndex, int(word))
			last = word
		}
	}
}

// Batches divides examples of the given lengths in tokens into batches of at most size examples and, if budget is over
// 0, at most budget tokens; a longer example is a batch of its own. With r the examples are shuffled, for training:
// packed batches have no padding that grouping by length would save, and on small data such batches train worse.
// Without r they are sorted by length, shortest first.
func Batches[N int | int32](lengths []N, size, budget int, r *rand.Rand) [][]int {
	if size < 1 || budget < 0 {
		panic("corpus: batches of no examples")
	}
	order := make([]int, len(lengths))
	for i := range order {
		order[i] = i
	}
	if r != nil {
		r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	} else {
		slices.SortStableFunc(order, func(i, j int) int { return cmp.Compare(lengths[i], lengths[j]) })
	}

	var batches [][]int
	tokens, from := 0, 0
	for i, example := range order {
		tokens += int(lengths[example])
		if i > from && (i-from == size || budget > 0 && tokens > budget) {
			batches = append(batches, order[from:i:i])
			tokens, from = int(lengths[example]), i
		}
	}
	if len(order) > 0 {
		batches = append(batches, order[from:])
	}
	return batches
}
