package kernel

import "sync"

// biasSums holds the memory of the gradients of Attention.Bias by each text and head, which are added in the order of
// the texts, so that no bit depends on the number of threads.
var biasSums = sync.Pool{New: func() any { return new(memory) }}

// partialOf returns the part of a.partial for a text and head, [2t-1] for the distances from -(t-1) on; nil where no
// gradient is computed.
func (a *Attention) partialOf(text, head int) []float32 {
	t := a.Starts[text+1] - a.Starts[text]
	if a.partial == nil || t == 0 {
		return nil
	}
	return a.partial[2*(a.Starts[text]*a.Heads+head*t):][:2*t-1]
}

// addDistances adds the gradient at the logits of a query, whose keys are those from first on, to partial.
func addDistances(partial, d []float32, query, first int) {
	if partial != nil {
		use.addScaled(partial[first-query+len(partial)/2:][:len(d)], d, 1)
	}
}

// addPartial adds the sums of all texts to DBias.
func (a *Attention) addPartial() {
	for text := range len(a.Starts) - 1 {
		t := a.Starts[text+1] - a.Starts[text]
		for head := range a.Heads {
			if sums := a.partialOf(text, head); sums != nil {
				use.addScaled(a.DBias[head*(2*a.Reach-1)+a.Reach-t:][:len(sums)], sums, 1)
			}
		}
	}
}
