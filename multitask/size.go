package multitask

import (
	"cmp"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/heads"
)

// Size is the size of a batch.
type Size struct {
	Texts, Tokens int
	Longest       int // tokens of the longest text, or window; 0 where the batch is of training
}

// Sizes returns the sizes of the shards of the batches of the first epoch of all groups, each of which runs through the
// model by itself; without shards a batch is one. Later epochs are shuffled again; their largest batches differ little.
func (plan Plan) Sizes(m *Model, data []Data) ([]Size, error) {
	iterators, err := newBatchIterators(m, data, plan)
	if err != nil {
		return nil, err
	}
	return plan.firstSizes(m, iterators), nil
}

// firstSizes returns the sizes of the shards of the batches of the iterators' first shuffle.
func (plan Plan) firstSizes(m *Model, iterators []*batchIterator) []Size {
	var sizes []Size
	n, numbered := plan.shards().all, m.Frozen() // see Training.cut
	for _, it := range iterators {
		for _, batch := range it.batches {
			var tokens []int32
			for _, example := range batch {
				tokens = append(tokens, it.lengths[example])
			}
			parts := make([]Size, n)
			for i, at := range shardsOf(tokens, n) {
				if numbered {
					at = batch[i] % n
				}
				parts[at].Texts++
				parts[at].Tokens += int(tokens[i])
			}
			sizes = append(sizes, slices.DeleteFunc(parts, func(s Size) bool { return s.Texts == 0 })...)
		}
	}
	return sizes
}

// EvaluationSizes returns the sizes of the batches in which Evaluate reads examples, whose Windows are set.
func EvaluationSizes(examples []*corpus.Example, batchSize, batchTokens int) []Size {
	return sizesOf(examples, evaluationBatches(lengths(examples), batchSize, batchTokens))
}

func sizesOf(examples []*corpus.Example, batches [][]int) []Size {
	sizes := make([]Size, len(batches))
	for i, batch := range batches {
		sizes[i] = SizeOf(pick(examples, batch)...)
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
// is not a MemoryEstimator. how has the rest of the Load.
func (m *Model) Largest(sizes []Size, how encoders.Workload) (largest Size, bytes int64) {
	estimator, ok := m.Encoder.(encoders.MemoryEstimator)
	if !ok || len(sizes) == 0 {
		return Size{}, 0
	}
	mapped := !how.Training && m.observesMaps()
	memory := func(s Size) int64 {
		how.Tokens, how.Layers = s.Tokens, m.wanted()
		if mapped {
			how.Mapped = s.Longest
		}
		return estimator.Memory(how)
	}
	largest = slices.MaxFunc(sizes, func(a, b Size) int { return cmp.Compare(memory(a), memory(b)) })
	return largest, memory(largest)
}

// observesMaps reports whether a head may read the attention maps of the encoder.
func (m *Model) observesMaps() bool {
	if (m.Encoder.Describe().Attention == encoders.AttentionMaps{}) {
		return false
	}
	for g := range m.Groups {
		for _, head := range m.Groups[g].Heads() {
			if _, ok := head.Head.(heads.Observer); ok {
				return true
			}
		}
	}
	return false
}
