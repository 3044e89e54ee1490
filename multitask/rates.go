package multitask

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// rates returns the factors of the learning rates of parameters whose rate is not the plan's: those of the encoder's
// layers, which fall from the last one down by LayerDecay (Clark et al. 2020, "ELECTRA", appendix A), and those of
// fusion and heads.
func (plan Plan) rates(m *Model) (map[*nn.Param]float64, error) {
	factors := map[*nn.Param]float64{}
	if plan.HeadRate != 0 {
		encoder := EncoderParams(m.Params)
		for _, w := range m.Params.All() {
			if !isIn(encoder, w) {
				factors[w] = plan.HeadRate / plan.Rate
			}
		}
	}
	if plan.LayerDecay == 0 || plan.LayerDecay == 1 {
		return factors, nil
	}
	levels, err := m.levels()
	if err != nil {
		return nil, err
	}
	factor := 1.0
	for _, level := range slices.Backward(levels) {
		for _, w := range level {
			factors[w] = factor
		}
		factor *= plan.LayerDecay
	}
	return factors, nil
}

// warnings returns warnings of rates that fit no training of so many steps.
func (plan Plan) warnings(steps int) []Warning {
	var all []Warning
	warmup := plan.schedule(steps).Warmup
	if warmup > steps && !ComputesRate(plan.optimizer()) {
		all = append(all, Warning{fmt.Sprintf("training: warmup_steps: the learning rate rises over %d steps, the "+
			"training has %d: it reaches %.3g", warmup, steps, plan.Rate*plan.schedule(steps).Rate(steps))})
	}
	if span := math.Round(1 / (1 - plan.Average)); plan.Average > 0 && span > float64(steps) {
		all = append(all, Warning{fmt.Sprintf("training: ema: %v averages over about %.0f steps, the training has %d: "+
			"the model is mostly that of its start; want a smaller number, such as %.2g", plan.Average, span, steps,
			max(0, 1-10/float64(steps)))})
	}
	return all
}

// levels returns the encoder's, or an error if it does not learn or does not list its layers.
func (m *Model) levels() ([][]*nn.Param, error) {
	levels := m.Encoder.Describe().Levels
	switch {
	case m.Frozen():
		return nil, errors.New("the encoder learns nothing; want a model.freeze that leaves layers to learn")
	case levels == nil:
		return nil, errors.New("the encoder does not list its layers")
	}
	return levels, nil
}

// CheckLayerDecay returns an error if the plan's LayerDecay cannot be used with the model.
func (plan Plan) CheckLayerDecay(m *Model) error {
	_, err := plan.rates(m)
	return err
}

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
	levels, err := m.levels()
	if err != nil {
		return nil, err
	}
	u := &unfreezing{every: plan.UnfreezeEvery}
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
