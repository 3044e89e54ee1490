package multitask

import (
	"errors"
	"fmt"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// unfreezing lets the layers of an encoder learn one after the other, from the last one down (Howard & Ruder 2018,
// "Universal Language Model Fine-tuning for Text Classification", section 3.3).
type unfreezing struct {
	every  float64       // epochs
	levels [][]*nn.Param // those that learn, from the lowest up
}

// newUnfreezing returns the unfreezing of the plan, nil if all layers learn from the start.
func (plan Plan) newUnfreezing(m *Model) (*unfreezing, error) {
	for _, w := range m.Params.All() {
		w.Later = false // that of an earlier training
	}
	if plan.UnfreezeEvery == 0 {
		return nil, nil
	}
	layered, err := m.layered()
	if err != nil {
		return nil, err
	}
	u := &unfreezing{every: plan.UnfreezeEvery}
	for _, level := range layered.Levels() {
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

// CheckUnfreezing returns an error if the plan's UnfreezeEvery cannot be used with the model.
func (plan Plan) CheckUnfreezing(m *Model) error {
	_, err := plan.newUnfreezing(m)
	return err
}

// open returns how many levels learn after a number of epochs.
func (u *unfreezing) open(epochs float64) int {
	return int(min(float64(len(u.levels)), epochs/u.every+1e-9)) // 0.3 epochs are 3 times 0.1
}

// apply lets the levels learn that do so after a number of epochs.
func (u *unfreezing) apply(epochs float64) {
	if u == nil {
		return
	}
	for i, level := range u.levels {
		for _, w := range level {
			w.Later = i < len(u.levels)-u.open(epochs)
		}
	}
}

// warnings returns a warning if some levels do not learn in a training.
func (u *unfreezing) warnings(n length) []Warning {
	if u == nil {
		return nil
	}
	open := u.open(float64(n.Batches-1) / float64(n.PerEpoch))
	if open == len(u.levels) {
		return nil
	}
	return []Warning{{fmt.Sprintf("model: freeze: unfreeze: the training ends too early for %s of the encoder, "+
		"the lowest, to learn; want a smaller every than %v", plugin.Count(len(u.levels)-open, "layer"), u.every)}}
}

// UnfreezingWarnings returns warnings of the plan's UnfreezeEvery, where the examples of all groups make perEpoch
// batches: those of the training that New returns.
func (plan Plan) UnfreezingWarnings(m *Model, perEpoch int) ([]Warning, error) {
	n, err := plan.length(perEpoch)
	if err != nil {
		return nil, err
	}
	u, err := plan.newUnfreezing(m)
	return u.warnings(n), err
}

// startUnfreezing makes the training's unfreezing.
func (t *Training) startUnfreezing() (err error) {
	if t.unfreezing, err = t.plan.newUnfreezing(t.model.Model); err != nil {
		return err
	}
	if t.unfreezing != nil && t.data == nil {
		return errors.New("layers are unfrozen by epochs of data, of which there is none")
	}
	t.pending = append(t.pending, t.unfreezing.warnings(t.length)...)
	return nil
}
