package multitask

import (
	"cmp"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
)

// Size is the size of a batch.
type Size struct {
	Texts, Tokens int
	Longest       int // tokens of the longest text, or window; 0 where the batch is of training
}

// EvaluationSizes returns the sizes of the batches in which Evaluate reads examples, whose Windows are set.
func EvaluationSizes(examples []*corpus.Example, batchSize, batchTokens int) []Size {
	return sizesOf(examples, evaluationBatches(Lengths(examples), batchSize, batchTokens))
}

func sizesOf(examples []*corpus.Example, batches [][]int) []Size {
	sizes := make([]Size, len(batches))
	for i, batch := range batches {
		sizes[i] = SizeOf(Pick(examples, batch)...)
	}
	return sizes
}

// SizeOf returns the size of a batch of examples, whose Windows are set.
func SizeOf(examples ...*corpus.Example) Size {
	s := Size{Texts: len(examples)}
	for _, e := range examples {
		s.Tokens += e.Tokens()
		for _, w := range e.Windows {
			s.Longest = max(s.Longest, len(w.IDs))
		}
	}
	return s
}

// Reserve returns the memory to allocate where the largest known batch takes so many bytes in the encoder: later epochs
// have other batches, and heads have values too.
func Reserve(bytes int64) int64 { return bytes + bytes/8 }

// Largest returns the one of sizes that takes the most memory in the encoder, and its bytes; 0 bytes where the encoder
// does not estimate its memory. how has the rest of the Load.
func (m *Model) Largest(sizes []Size, how encoders.Workload) (largest Size, bytes int64) {
	estimate := m.Encoder.Describe().Memory
	if estimate == nil || len(sizes) == 0 {
		return Size{}, 0
	}
	mapped := !how.Training && m.observesMaps()
	memory := func(s Size) int64 {
		how.Tokens, how.Layers = s.Tokens, m.wanted()
		if mapped {
			how.Mapped = s.Longest
		}
		return estimate(how)
	}
	largest = slices.MaxFunc(sizes, func(a, b Size) int { return cmp.Compare(memory(a), memory(b)) })
	return largest, memory(largest)
}

// observesMaps reports whether a head may read the attention maps of the encoder.
func (m *Model) observesMaps() bool {
	if (m.Encoder.Describe().Attention == encoders.AttentionMaps{}) {
		return false
	}
	observes := func(h Head) bool { return h.Head.Describe().Observe != nil }
	return slices.ContainsFunc(m.Groups, func(g Group) bool { return slices.ContainsFunc(g.Heads(), observes) })
}
