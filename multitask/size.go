package multitask

import (
	"cmp"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
)

// Size is the size of a batch.
type Size struct{ Texts, Tokens int }

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
	n := lengths(examples)
	return sizesOf(n, evaluationBatches(n, batchSize, batchTokens))
}

func sizesOf(lengths []int32, batches [][]int) []Size {
	sizes := make([]Size, len(batches))
	for i, batch := range batches {
		sizes[i].Texts = len(batch)
		for _, example := range batch {
			sizes[i].Tokens += int(lengths[example])
		}
	}
	return sizes
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
	memory := func(s Size) int64 {
		how.Tokens, how.Layers = s.Tokens, m.wanted()
		return estimator.Memory(how)
	}
	largest = slices.MaxFunc(sizes, func(a, b Size) int { return cmp.Compare(memory(a), memory(b)) })
	return largest, memory(largest)
}
