package train

import (
	"slices"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// Sizes returns the sizes of the shards of the batches of the first epoch of all groups, each of which runs through the
// model by itself; without shards a batch is one. Later epochs are shuffled again; their largest batches differ little.
func (plan Plan) Sizes(m *multitask.Model, data []multitask.Data) ([]multitask.Size, error) {
	iterators, err := newBatchIterators(m, data, plan)
	if err != nil {
		return nil, err
	}
	return plan.firstSizes(m, iterators), nil
}

func (plan Plan) firstSizes(m *multitask.Model, iterators []*batchIterator) []multitask.Size {
	var sizes []multitask.Size
	n, numbered := plan.shards().all, m.Frozen() // see Training.cut
	for _, it := range iterators {
		for _, batch := range it.batches {
			var tokens []int32
			for _, example := range batch {
				tokens = append(tokens, it.lengths[example])
			}
			parts := make([]multitask.Size, n)
			for i, at := range shardsOf(tokens, n) {
				if numbered {
					at = batch[i] % n
				}
				parts[at].Texts++
				parts[at].Tokens += int(tokens[i])
			}
			sizes = append(sizes, slices.DeleteFunc(parts, func(s multitask.Size) bool { return s.Texts == 0 })...)
		}
	}
	return sizes
}

// RankMemory is what several ranks change in the memory of a training, in bytes.
type RankMemory struct {
	Optimizer int64 // what the optimizer keeps in a rank, of the parameters that it updates
	Messages  int64 // buffers, outside of Go's heap
	Moved     int64 // parameters and gradients that are moved out of Go's heap, which then frees as many
}

// RankMemory estimates the memory of a rank, where a pass has at most so many tokens; there must be several ranks.
func (plan Plan) RankMemory(m *multitask.Model, tokens int) RankMemory {
	var n RankMemory
	_, ranks := plan.Ranks.Rank()
	divided := plan.divides()
	dense, longest, rows := 0, 0, 0 // values: outside of tables, of the longest parameter there, of touched rows
	for _, w := range m.Params.All() {
		if w.Frozen {
			continue
		}
		state := 4 * int64(plan.optimizer().New(0).StateSize(w))
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

func (plan Plan) divides() bool {
	return !plan.NativeSums && plan.Average == 0 && plan.Weighting.Combine == nil &&
		plan.optimizer().New(plan.WeightDecay).UpdatesEach()
}

// Averages returns the bytes that running means of the parameters of m take.
func (plan Plan) Averages(m *multitask.Model) int64 {
	if plan.Average == 0 {
		return 0
	}
	return bytesOf(m.Params.All(), valuesOf)
}

// OptimizerState returns the bytes that the optimizer keeps of the parameters of m that learn.
func (plan Plan) OptimizerState(m *multitask.Model) int64 {
	return bytesOf(m.Params.All(), plan.optimizer().New(0).StateSize)
}

// TaskGradients returns the bytes that gradients by task take, 0 where the plan's weighting does not use them.
func (plan Plan) TaskGradients(m *multitask.Model) int64 {
	if plan.Weighting.Combine == nil {
		return 0
	}
	return int64(len(m.TaskNames())) * bytesOf(m.SharedParams(), valuesOf)
}

// bytesOf returns the bytes of so many float32 values of each parameter that learns.
func bytesOf(params []*nn.Param, values func(*nn.Param) int) (bytes int64) {
	for _, w := range params {
		if w.Learns() {
			bytes += 4 * int64(values(w))
		}
	}
	return bytes
}

func valuesOf(w *nn.Param) int { return len(w.Data) }
