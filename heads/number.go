package heads

import (
	"fmt"
	"math"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// Number is the objective of a head that predicts a number for each text: the distance of outputs [B 1] to the gold
// number, squared by default. Its zero value is ready to be embedded.
type Number struct {
	distance *nn.Distance // nil: squared
	unit     *nn.Param    // [2] mean and deviation by which outputs are standardized, does not learn; nil: 0 and 1
}

// ScaleOptions are the keys for the numbers of a head.
type ScaleOptions struct {
	Scale string `yaml:"scale" choice:"none|standard" doc:"of numbers; standard: by mean and population deviation"`
}

// StandardScale is the default of ScaleOptions.
var StandardScale = ScaleOptions{Scale: "standard"}

// filled returns the options with the default if they are left out, as Go code may do.
func (o ScaleOptions) filled() ScaleOptions {
	if o.Scale == "" {
		return StandardScale
	}
	return o
}

// newNumber makes the objective of a loss. With standard, outputs are standardized by the mean and deviation of the
// training numbers.
func newNumber(loss string, standard bool, env Env) (Number, error) {
	distance, known := nn.Distances[loss]
	if !known {
		panic(fmt.Sprintf("heads: unexpected loss %q", loss))
	}
	n := Number{distance: &distance}
	if standard {
		mean, deviation := env.Training.Mean, env.Training.Deviation
		if off := math.Abs(mean - float64(float32(mean))); float32(deviation) == 0 || off > 1e-3*deviation {
			return Number{}, fmt.Errorf("scale: standard: the training numbers have deviation %.3g around their mean, "+
				"%.6g, which float32 does not resolve; subtract a constant from them, use a smaller unit, or set "+
				"scale: none", deviation, mean)
		}
		n.unit = env.Params.Zeros("unit", 2)
		n.unit.Frozen = true
		n.unit.Data[0], n.unit.Data[1] = float32(mean), float32(deviation)
	}
	return n, nil
}

// checkLimits refuses a range that is not [LEAST, MOST], or whose square overflows float32.
func checkLimits(limit []float64) error {
	const largest = outputs.LargestNumber
	if len(limit) == 2 && limit[0] < limit[1] && limit[0] >= -largest && limit[1] <= largest {
		return nil
	}
	return fmt.Errorf("range is %v; want [LEAST, MOST], from -%[2]g to %[2]g", limit, largest)
}

// checkRange refuses a number outside [LEAST, MOST].
func checkRange(number float64, limit []float64) error {
	if number >= limit[0] && number <= limit[1] {
		return nil
	}
	return fmt.Errorf("the number is %v; the head's range is %v to %v; its option range: [LEAST, MOST] sets another",
		number, limit[0], limit[1])
}

// Output returns outputs.Number.
func (Number) Output() *outputs.Kind { return outputs.Number }

// Units counts the texts that have a number.
func (Number) Units(gold []corpus.Target) float64 {
	return labelled(gold)
}

// Loss is the distance summed over texts that have a number, nil if there are none.
func (n Number) Loss(_ *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node {
	mean, deviation := n.scale()
	windows := textsOf(logits.Rows)
	values, weights, has := make([]float32, logits.Rows.Texts()), make([]float32, logits.Rows.Texts()), false
	for b, e := range logits.Rows.Example {
		if t := outputs.As[outputs.NumberTarget](gold[e]); t != nil {
			values[b], weights[b], has = float32((t.Value-mean)/deviation), 1/windows[e], true
		}
	}
	if !has {
		return nil
	}
	distance := nn.Distances["mse"]
	if n.distance != nil {
		distance = *n.distance
	}
	return nn.NumberLoss(logits.Nodes[0], values, weights, distance)
}

// Predict returns for each example the mean over its windows.
func (n Number) Predict(logits Logits) []corpus.Prediction {
	mean, deviation := n.scale()
	return numbers(meanOfTexts(logits, mean, deviation))
}

// numbers returns one prediction per number.
func numbers(values []float64) []corpus.Prediction {
	predictions := make([]outputs.NumberPrediction, len(values))
	for e, v := range values {
		predictions[e].Value = v
	}
	return outputs.Erase(predictions)
}

// meanOfTexts returns for each example the mean of mean + deviation·output over its texts, of outputs [B 1].
func meanOfTexts(logits Logits, mean, deviation float64) []float64 {
	numbers := make([]float64, outputs.Examples(logits.Rows))
	texts, values := textsOf(logits.Rows), nn.Values(logits.Nodes[0])
	for b, e := range logits.Rows.Example {
		numbers[e] += (mean + deviation*float64(values[b])) / float64(texts[e])
	}
	return numbers
}

// labelled counts the targets that are not nil.
func labelled(gold []corpus.Target) float64 {
	n := 0.0
	for _, t := range gold {
		if t != nil {
			n++
		}
	}
	return n
}

func (n Number) scale() (mean, deviation float64) {
	if n.unit == nil {
		return 0, 1
	}
	return float64(n.unit.Data[0]), float64(n.unit.Data[1])
}
