package multitask

import (
	"github.com/jenga-nlp/jenga/nn"
)

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
