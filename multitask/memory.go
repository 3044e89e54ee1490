package multitask

import (
	"cmp"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
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
	for g := range m.Groups {
		for _, head := range m.Groups[g].Heads() {
			if head.Head.Describe().Observe != nil {
				return true
			}
		}
	}
	return false
}

// RankMemory is what several ranks change in the memory of a training, in bytes.
type RankMemory struct {
	Optimizer int64 // what the optimizer keeps in a rank, of the parameters that it updates
	Messages  int64 // buffers, outside of Go's heap
	Moved     int64 // parameters and gradients that are moved out of Go's heap, which then frees as many
}

// RankMemory estimates the memory of a rank, where a pass has at most so many tokens; there must be several ranks.
func (plan Plan) RankMemory(m *Model, tokens int) RankMemory {
	var n RankMemory
	_, ranks := plan.Ranks.Rank()
	divided := plan.divides()
	dense, longest, rows := 0, 0, 0 // values: outside of tables, of the longest parameter there, of touched rows
	for _, w := range m.Params.All() {
		if w.Frozen {
			continue
		}
		state := 4 * int64(plan.optimizer().StateSize(w))
		if w.Table {
			// one row for each token of a batch, if all differ, beside a number for each row
			rows = max(rows, min(tokens*plan.shards().all, w.Shape[0])*w.Shape[1], w.Shape[0])
			n.Optimizer += state
			continue
		}
		dense, longest = dense+len(w.Data), max(longest, len(w.Data))
		if divided {
			state /= int64(ranks)
		}
		n.Optimizer += state
	}
	bucket := min(dense, bucketValues+longest) // at most

	const lanes = 2 // each receives half of a bucket
	if divided {
		n.Moved = 4 * int64(dense) * int64(2+plan.ShardGradients())
		n.Messages = 4 * int64(lanes*bucket/2)
	} else {
		rows = max(rows, bucket)
	}
	n.Messages += 4 * int64(rows+rows/2) // a copy, and half of it from another rank
	return n
}

// divides reports whether each of several ranks updates a part of the parameters.
func (plan Plan) divides() bool {
	return !plan.NativeSums && plan.Average == 0 && !plan.combinesGradients() &&
		nn.UpdatesEach(plan.optimizer().New(plan.WeightDecay))
}
