package multitask

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/nn"
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
	layered, err := m.layered()
	if err != nil {
		return nil, err
	}
	factor := 1.0
	for _, level := range slices.Backward(layered.Levels()) {
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

// layered returns the encoder, or an error if it does not learn or does not list its layers.
func (m *Model) layered() (encoders.Layered, error) {
	layered, ok := m.Encoder.(encoders.Layered)
	switch {
	case m.Frozen():
		return nil, errors.New("the encoder learns nothing; want a model.freeze that leaves layers to learn")
	case !ok:
		return nil, errors.New("the encoder does not list its layers")
	}
	return layered, nil
}

// CheckLayerDecay returns an error if the plan's LayerDecay cannot be used with the model.
func (plan Plan) CheckLayerDecay(m *Model) error {
	_, err := plan.rates(m)
	return err
}
