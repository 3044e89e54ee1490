package transformer

import (
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
)

// Memory implements encoders.MemoryEstimator: it counts the floats that Encode and Backward allocate in a pass (allot,
// newBlockState, newBlockGradients), the attention maps of one text and layer where they are observed, and the weights
// that Encode packs and merges (linear.product).
func (e *encoder) Memory(b encoders.Workload) int64 {
	const float = 4 // bytes
	rows := int64(b.Tokens)
	state := rows * int64(e.config.Width)      // [T D]
	wide := rows * int64(e.config.FeedForward) // [T F]
	stats := 2 * rows                          // [T 2]
	normalizers := rows * int64(e.config.Heads)
	block := 7*state + int64(e.config.wide()+1)*wide + 2*stats + normalizers // blockState
	gradients := 3*state + max(int64(e.config.wide())*wide, 3*state)         // blockGradients

	lowest := len(e.levels)
	if b.Training {
		lowest = encoders.LowestLearning(e.levels, (*nn.Param).Learns)
	}
	if b.Words {
		lowest = 0
	}
	embedding := rows * int64(e.config.embedding()) // [T E]
	floats := embedding + stats + state             // the sum of the embeddings, and the states made of it
	floats += int64(e.config.Heads) * int64(b.Mapped) * int64(b.Mapped)
	if e.relative != nil {
		bias := int64(e.relative.biasSize(e.reach(b.Tokens)))
		floats += bias
		if lowest == 0 {
			floats += bias // its gradient
		}
	}
	if e.finalNorm != nil {
		floats += state + stats
	}
	if e.config.projects() {
		floats += embedding // normalised
		if lowest == 0 {
			floats += 2 * embedding // embeddings.gradients
		}
	}
	for i := range e.blocks {
		learns := i+1 >= lowest
		if i == 0 || learns || b.Layers == nn.AllLayers {
			floats += state
		}
		if i == 0 || learns && !b.Recompute {
			floats += block
		}
	}
	if lowest < len(e.levels) {
		floats += 2*state + gradients
	}
	return float*floats + e.packedMemory(b.Training)
}

// packedMemory returns the size of the packed and merged weights that linear.product keeps, in bytes.
func (e *encoder) packedMemory(training bool) int64 {
	bytes := int64(0)
	if l := e.embeddings.project; l != nil && !l.isPacked() && (!training || !l.learns()) {
		bytes += 4 * int64(len(l.weight.Data))
	}
	for i := range e.blocks {
		for _, name := range e.blocks[i].targets() {
			l := e.blocks[i].target(name)
			if l.isPacked() {
				continue
			}
			if !training || !l.learns() {
				bytes += 4 * int64(len(l.weight.Data))
			}
			if l.lora != nil { // its merged weight
				bytes += 4 * int64(len(l.weight.Data))
			}
			for range l.adapters { // as above
				bytes += 4 * int64(len(l.weight.Data))
				if !training {
					bytes += 4 * int64(len(l.weight.Data))
				}
			}
		}
	}
	return bytes
}
