package heads

import (
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/calibration"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// OneClass is the objective of a head that predicts one label for each text: cross entropy over logits [B L]. Its zero
// value is ready to be embedded.
type OneClass struct {
	loss       labelLoss
	calibrated Calibration
}

// Describe returns the description of a head with this objective.
func (o *OneClass) Describe() Description {
	soft := softTexts(&o.calibrated, nn.Softmax, nn.SoftCrossEntropy)
	return Description{Output: outputs.Label, Calibrator: o, Soft: soft}
}

// Units is the sum of the label weights of texts whose label occurs in training.
func (o OneClass) Units(gold []corpus.Target) float64 {
	n := 0.0
	for _, t := range outputs.AllAs[outputs.LabelTarget](gold) {
		if t != nil && t.ID >= 0 {
			n += o.loss.weight(t.ID)
		}
	}
	return n
}

// Loss is the cross entropy summed over labelled texts, nil if there are none.
func (o OneClass) Loss(_ *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node {
	targets := outputs.AllAs[outputs.LabelTarget](gold)
	labels := make([]int, logits.Rows.Texts())
	for b, e := range logits.Rows.Example {
		if labels[b] = corpus.Unlabelled; targets[e] != nil {
			labels[b] = targets[e].ID
		}
	}
	return o.loss.crossEntropy(logits, windowWeights(logits.Rows), labels)
}

// Predict returns for each example the probabilities of its labels, the mean over its windows, and the likeliest label.
func (o OneClass) Predict(logits Logits) []corpus.Prediction {
	all := WindowLogits(logits)
	predictions := make([]outputs.LabelPrediction, len(all))
	for e, windows := range all {
		p := o.Probabilities(windows, o.calibrated)
		id := floats.Largest(p)
		predictions[e] = outputs.LabelPrediction{
			ID: id, Probabilities: p, Abstained: o.calibrated.abstains(p[id]), Set: o.calibrated.set(p),
		}
	}
	return outputs.Erase(predictions)
}

// Exclusive implements Calibrator.
func (OneClass) Exclusive() bool { return true }

// Probabilities implements Calibrator.
func (OneClass) Probabilities(windows [][]float32, c Calibration) []float32 {
	return c.meanOver(windows, nn.Softmax)
}

// Calibrate implements Calibrator.
func (o *OneClass) Calibrate(c Calibration) { o.calibrated = c }

// ManyClasses is the objective of a head that predicts any number of labels for each text: binary cross entropy over
// logits [B L], a binary decision for each label. A label holds where its probability reaches its threshold, 1/2 unless
// tuned. Its zero value is ready to be embedded.
type ManyClasses struct {
	loss       labelLoss
	thresholds *nn.Param // [L], do not learn by gradients; without them each is 1/2
	tune       string    // none | shared | each
	calibrated Calibration
}

// ThresholdOptions are the keys for the decision thresholds of a head of many labels.
type ThresholdOptions struct {
	Threshold float64 `yaml:"threshold" range:"[0,1]" doc:"least probability at which a label holds, for many labels"`
	Tune      string  `yaml:"tune" choice:"shared|each|none" doc:"what evaluations on dev choose instead of threshold: one threshold for the best micro F1, each label's own for its best F1, or none, which keeps threshold"`
}

// TunedThreshold are the options of one threshold that is tuned on dev.
var TunedThreshold = ThresholdOptions{Threshold: 0.5, Tune: "shared"}

func newManyClasses(o ThresholdOptions, loss labelLoss, env Env) (ManyClasses, error) {
	if o.Tune != "none" && o.Threshold != TunedThreshold.Threshold {
		return ManyClasses{}, fmt.Errorf("threshold %v has no effect: tune: %s chooses another on dev; tune: none "+
			"keeps it", o.Threshold, o.Tune)
	}
	thresholds := env.fixed("thresholds", slices.Repeat([]float32{float32(o.Threshold)}, len(env.Labels))...)
	return ManyClasses{loss: loss, thresholds: thresholds, tune: o.Tune}, nil
}

// Describe returns the description of a head with this objective.
func (m *ManyClasses) Describe() Description {
	soft := softTexts(&m.calibrated, nn.Sigmoids, nn.SoftBinaryCrossEntropy)
	return Description{Output: outputs.Labels, Tuner: m, Calibrator: m, Soft: soft}
}

// Units counts the labelled texts.
func (ManyClasses) Units(gold []corpus.Target) float64 { return labelled(gold) }

// Loss is the mean over labels of the binary cross entropy, summed over labelled texts; nil if there are none.
func (m ManyClasses) Loss(_ *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node {
	texts, labels := logits.Rows.Texts(), logits.Nodes[0].Shape()[1]
	targets := outputs.AllAs[outputs.LabelsTarget](gold)
	holds, labelled := make([]int8, texts*labels), false
	weights, windows := make([]float32, texts), textsOf(logits.Rows)
	for b, e := range logits.Rows.Example {
		weights[b] = 1 / (windows[e] * float32(labels))
		row := holds[b*labels : (b+1)*labels]
		if targets[e] == nil {
			for c := range row {
				row[c] = corpus.Unlabelled
			}
			continue
		}
		labelled = true
		for _, id := range targets[e].IDs {
			if id >= 0 {
				row[id] = 1
			}
		}
	}
	if !labelled {
		return nil
	}
	return m.loss.over(weights).BinaryCrossEntropy(logits.Nodes[0], holds)
}

// Predict returns for each example the probabilities of its labels, the mean over its windows, and the labels that
// hold.
func (m ManyClasses) Predict(logits Logits) []corpus.Prediction {
	all := WindowLogits(logits)
	predictions := make([]outputs.LabelsPrediction, len(all))
	for e, windows := range all {
		predictions[e].Probabilities = m.Probabilities(windows, m.calibrated)
	}
	erased := outputs.Erase(predictions)
	m.decide(outputs.AllAs[outputs.LabelsPrediction](erased))
	return erased
}

func (m ManyClasses) decide(predictions []*outputs.LabelsPrediction) {
	for _, p := range predictions {
		p.Decide(m.decidedFrom(len(p.Probabilities)))
	}
}

// decidedFrom returns the least probability at which each of n labels holds.
func (m ManyClasses) decidedFrom(n int) []float32 {
	switch {
	case m.calibrated.Thresholds != nil:
		return m.calibrated.Thresholds
	case m.thresholds != nil:
		return m.thresholds.Data
	}
	return slices.Repeat([]float32{0.5}, n)
}

// Exclusive implements Calibrator.
func (ManyClasses) Exclusive() bool { return false }

// Probabilities implements Calibrator.
func (ManyClasses) Probabilities(windows [][]float32, c Calibration) []float32 {
	return c.meanOver(windows, nn.Sigmoids)
}

// Calibrate implements Calibrator.
func (m *ManyClasses) Calibrate(c Calibration) { m.calibrated = c }

// Thresholds lists the least probability at which each label holds; nil for the zero value, where it is 1/2 for all.
func (m ManyClasses) Thresholds() []float32 {
	if m.thresholds == nil {
		return nil
	}
	return m.thresholds.Data
}

// Tune chooses the thresholds from the predictions on dev, and updates those predictions.
func (m ManyClasses) Tune(gold []corpus.Target, predicted []corpus.Prediction) {
	if m.thresholds == nil {
		return
	}
	var all []calibration.Decision
	each := make([][]calibration.Decision, len(m.thresholds.Data))
	predictions := outputs.AllAs[outputs.LabelsPrediction](predicted)
	for i, t := range outputs.AllAs[outputs.LabelsTarget](gold) {
		if t == nil {
			continue
		}
		for c, probability := range predictions[i].Probabilities {
			d := calibration.Decision{Probability: probability, Holds: slices.Contains(t.IDs, c)}
			each[c] = append(each[c], d)
			all = append(all, d)
		}
	}
	switch m.tune {
	case "shared":
		if best, ok := calibration.BestF1(all); ok {
			for c := range m.thresholds.Data {
				m.thresholds.Data[c] = best
			}
		}
	case "each":
		for c, decisions := range each {
			if best, ok := calibration.BestF1(decisions); ok {
				m.thresholds.Data[c] = best
			}
		}
	}
	m.decide(predictions)
}

// Untuned implements Tuner.
func (ManyClasses) Untuned(name string) (what, then string) {
	return fmt.Sprintf("no evaluation tunes head %q", name), "its labels hold from its threshold on"
}

// TagPerWord is the objective of a head that predicts one tag for each word: cross entropy over logits [W L], a row for
// each of seen.Rows.Words. Its zero value is ready to be embedded.
type TagPerWord struct{ loss labelLoss }

// Describe returns the description of a head with this objective.
func (TagPerWord) Describe() Description {
	answers := func(logits *nn.Node, words [][]int, temperature float64, write func(e, w int, p []float32)) {
		tags, values := logits.Shape()[1], nn.Values(logits)
		for e := range words {
			for w, k := range words[e] {
				if k >= 0 {
					write(e, w, nn.Softmax(nn.Tempered(values[k*tags:(k+1)*tags], temperature)))
				}
			}
		}
	}
	loss := func(logits *nn.Node, _ [][]int, q []float32, temperature float64) *nn.Node {
		return nn.SoftCrossEntropy(logits, q, temperature, nil)
	}
	return Description{Output: outputs.Tags, Soft: softWords(answers, loss)}
}

// Units is the sum of the tag weights of words whose tag occurs in training. Words that are in no window have no tag:
// see outputs.Tags.
func (w TagPerWord) Units(gold []corpus.Target) float64 {
	n := 0.0
	for _, t := range outputs.AllAs[outputs.TagsTarget](gold) {
		if t == nil {
			continue
		}
		for _, id := range t.IDs {
			if id >= 0 {
				n += w.loss.weight(id)
			}
		}
	}
	return n
}

// Loss is the cross entropy summed over tagged words that have a row, nil if there are none.
func (w TagPerWord) Loss(_ *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node {
	targets := outputs.AllAs[outputs.TagsTarget](gold)
	tags := slices.Repeat([]int{corpus.Unlabelled}, len(logits.Rows.Words))
	for e, words := range outputs.WordRows(logits.Rows) {
		for i, k := range words {
			if t := targets[e]; k >= 0 && t != nil && i < len(t.IDs) {
				tags[k] = t.IDs[i]
			}
		}
	}
	return w.loss.crossEntropy(logits, nil, tags)
}

// Predict returns for each word its likeliest tag and that tag's probability.
func (TagPerWord) Predict(logits Logits) []corpus.Prediction {
	predictions := make([]outputs.TagsPrediction, outputs.Examples(logits.Rows))
	values := nn.Values(logits.Nodes[0])
	tags := len(values) / max(1, len(logits.Rows.Words))
	for e, words := range outputs.WordRows(logits.Rows) {
		p := &predictions[e]
		p.IDs, p.Probabilities = make([]int, len(words)), make([]float32, len(words))
		for w, k := range words {
			if k < 0 {
				p.IDs[w] = -1
				continue
			}
			probabilities := nn.Softmax(values[k*tags : (k+1)*tags])
			p.IDs[w] = floats.Largest(probabilities)
			p.Probabilities[w] = probabilities[p.IDs[w]]
		}
	}
	return outputs.Erase(predictions)
}

// Number is the objective of a head that predicts a number for each text: the distance of outputs [B 1] to the gold
// number, squared by default. Its zero value is ready to be embedded.
type Number struct {
	distance *nn.Distance // squared by default
	unit     *nn.Param    // [2] mean and deviation by which outputs are standardized, if they are; does not learn
}

// ScaleOptions are the keys for the numbers of a head.
type ScaleOptions struct {
	Scale string `yaml:"scale" choice:"none|standard" doc:"of numbers; standard: by mean and population deviation"`
}

// StandardScale is the default of ScaleOptions.
var StandardScale = ScaleOptions{Scale: "standard"}

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
		n.unit = env.fixed("unit", float32(mean), float32(deviation))
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

// checkRange refuses a gold number outside of limit, [LEAST, MOST].
func checkRange(t corpus.Target, limit []float64) error {
	target := outputs.As[outputs.NumberTarget](t)
	if target == nil || target.Value >= limit[0] && target.Value <= limit[1] {
		return nil
	}
	return fmt.Errorf("the number is %v; the head's range is %v to %v; its option range: [LEAST, MOST] sets another",
		target.Value, limit[0], limit[1])
}

// Describe returns the description of a head with this objective.
func (n Number) Describe() Description {
	return Description{Output: outputs.Number, Soft: softNumbers(n)}
}

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
