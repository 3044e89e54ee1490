package updates

import (
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// RateFactors returns the factors of the learning rates of parameters whose factor is not 1: those of the encoder's
// layers, each of which is that of the layer above times decay (Clark et al. 2020, "ELECTRA", appendix A), and those of
// fusion and heads, which are outside it.
func RateFactors(m *multitask.Model, outside, decay float64) (map[*nn.Param]float64, error) {
	factors := map[*nn.Param]float64{}
	if outside != 1 {
		encoder := multitask.EncoderParams(m.Params)
		for _, w := range m.Params.All() {
			if !multitask.IsIn(encoder, w) {
				factors[w] = outside
			}
		}
	}
	if decay == 1 {
		return factors, nil
	}
	levels, err := m.Levels()
	if err != nil {
		return nil, err
	}
	factor := 1.0
	for _, level := range slices.Backward(levels) {
		for _, w := range level {
			factors[w] = factor
		}
		factor *= decay
	}
	return factors, nil
}

// Unfreezing lets the layers of an encoder learn one after the other, from the last one down (Howard & Ruder 2018,
// "Universal Language Model Fine-tuning for Text Classification", section 3.3).
type Unfreezing struct {
	every  float64       // epochs
	levels [][]*nn.Param // those that learn, from the lowest up
}

// NewUnfreezing returns the unfreezing by a layer in so many epochs, nil if all layers learn from the start.
func NewUnfreezing(m *multitask.Model, every float64) (*Unfreezing, error) {
	for _, w := range m.Params.All() {
		w.Later = false // that of an earlier training
	}
	if every == 0 {
		return nil, nil
	}
	levels, err := m.Levels()
	if err != nil {
		return nil, err
	}
	u := &Unfreezing{every: every}
	for _, level := range levels {
		var learn []*nn.Param
		for _, w := range level {
			if w.Learns() {
				learn = append(learn, w)
			}
		}
		if learn != nil {
			u.levels = append(u.levels, learn)
		}
	}
	return u, nil
}

// open returns how many levels learn after a number of epochs.
func (u *Unfreezing) open(epochs float64) int {
	return int(min(float64(len(u.levels)), epochs/u.every+1e-9)) // 0.3 epochs are 3 times 0.1
}

// Apply lets the levels learn that do so after a number of epochs.
func (u *Unfreezing) Apply(epochs float64) {
	for i, level := range u.levels {
		for _, w := range level {
			w.Later = i < len(u.levels)-u.open(epochs)
		}
	}
}

// Warnings returns a warning if some levels do not learn in a training of so many epochs.
func (u *Unfreezing) Warnings(epochs float64) []string {
	open := u.open(epochs)
	if open == len(u.levels) {
		return nil
	}
	return []string{fmt.Sprintf("model: freeze: unfreeze: the training ends too early for %s of the encoder, "+
		"the lowest, to learn; want a smaller every than %v", plugin.Count(len(u.levels)-open, "layer"), u.every)}
}
