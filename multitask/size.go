package multitask

import (
	"cmp"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
)

// Size is how large a batch is.
type Size struct{ Texts, Tokens int }

// Sizes lists the batches of a first pass over the training data of all groups. Later passes shuffle anew; their
// largest batches differ little.
func (plan Plan) Sizes(m *Model, data []Data) ([]Size, error) {
	iterators, err := newBatchIterators(m, data, plan)
	if err != nil {
		return nil, err
	}
	return firstSizes(iterators), nil
}

// firstSizes lists the batches that batch iterators give first.
func firstSizes(iterators []*batchIterator) []Size {
	var sizes []Size
	for _, it := range iterators {
		sizes = append(sizes, sizesOf(it.lengths, it.batches)...)
	}
	return sizes
}

// EvaluationSizes lists the batches in which Evaluate takes examples, whose Windows are set.
func EvaluationSizes(examples []*corpus.Example, batchSize, batchTokens int) []Size {
	n := lengths(examples)
	return sizesOf(n, evaluationBatches(n, batchSize, batchTokens))
}

func sizesOf(lengths []int, batches [][]int) []Size {
	sizes := make([]Size, len(batches))
	for i, batch := range batches {
		sizes[i].Texts = len(batch)
		for _, example := range batch {
			sizes[i].Tokens += lengths[example]
		}
	}
	return sizes
}

// Reserve returns how much is had for batches of which the largest known takes so many bytes: later epochs shuffle
// anew, and heads have values too.
func Reserve(bytes int64) int64 { return bytes + bytes/8 }

// Largest returns the one of sizes that takes the encoder the most memory, and how many bytes a pass of it takes; no
// bytes where the encoder does not tell. how says what is done besides the size.
func (m *Model) Largest(sizes []Size, how encoders.Load) (largest Size, bytes int64) {
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
