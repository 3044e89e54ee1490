package heads

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// LossOptions are the keys that shape the loss of a head over labels.
type LossOptions struct {
	LabelSmoothing float64 `yaml:"label_smoothing" range:"[0,1)" doc:"probability of the gold label that is divided among all labels (Szegedy 2016); for one label or a tag"`
	FocalGamma     float64 `yaml:"focal_gamma" range:"[0,16]" doc:"γ of the focal loss: a factor (1-p)^γ (Lin 2017)"`

	ClassWeights plugin.Factors `yaml:"class_weights" choice:"none|balanced" one:"no" range:"[0,)" doc:"factor of each label's loss, for one label or a tag; balanced: the number of labelled texts, or words, divided by the number of labels times those with the label"`
	PosWeight    plugin.Factors `yaml:"pos_weight" choice:"balanced" range:"(0,)" doc:"factor of the loss where a label holds, for many labels; balanced: how often it does not hold, divided by how often it does"`
}

// PlainLoss are the options of the cross entropy without smoothing, focus and weights.
var PlainLoss = LossOptions{ClassWeights: plugin.Factors{Word: "none"}, PosWeight: plugin.Factors{One: 1}}

// labelLoss is the loss of an objective over labels; its zero value is plain.
type labelLoss struct {
	smoothing, gamma float64
	weights          *nn.Param // [L], does not learn; nil: 1 each
}

// newLabelLoss makes the loss of a head over labels; many says that several labels may hold at once.
func newLabelLoss(o LossOptions, env Env, many bool) (labelLoss, error) {
	l := labelLoss{smoothing: o.LabelSmoothing, gamma: o.FocalGamma}
	switch {
	case many && l.smoothing > 0:
		return l, errors.New("label_smoothing: each of many labels is a binary decision; use pos_weight or " +
			"focal_gamma")
	case many && !isNone(o.ClassWeights):
		return l, errors.New("class_weights: each of many labels is a binary decision; use pos_weight to weigh it")
	case !many && !isOne(o.PosWeight):
		return l, fmt.Errorf("pos_weight: the output is %s; use class_weights to weigh labels", env.Output)
	}
	factors, name := o.ClassWeights, "class_weights"
	if many {
		factors, name = o.PosWeight, "pos_weight"
	}
	if isNone(factors) || isOne(factors) {
		return l, nil
	}

	for _, label := range slices.Sorted(maps.Keys(factors.Each)) {
		if !slices.Contains(env.Labels, label) {
			return l, fmt.Errorf("%s: %s", name, plugin.Unknown("label", label, env.Labels))
		}
	}
	l.weights = env.Params.Ones(name, len(env.Labels))
	l.weights.Frozen = true
	for c, label := range env.Labels {
		weight, given := factors.Each[label]
		switch {
		case factors.Word == "balanced":
			weight = env.Training.balance(c, many)
		case factors.Each == nil:
			weight = factors.One
		case !given:
			weight = 1
		}
		l.weights.Data[c] = float32(weight)
	}
	if !slices.ContainsFunc(l.weights.Data, func(w float32) bool { return w > 0 }) {
		return l, fmt.Errorf("%s: the factors of all labels are 0, so nothing is learned", name)
	}
	return l, nil
}

// filled returns the options with factors of 1 for those left out, as Go code may do.
func (o LossOptions) filled() LossOptions {
	missing := func(f plugin.Factors) bool { return f.Word == "" && f.Each == nil && f.One == 0 }
	if missing(o.ClassWeights) {
		o.ClassWeights = PlainLoss.ClassWeights
	}
	if missing(o.PosWeight) {
		o.PosWeight = PlainLoss.PosWeight
	}
	return o
}

func isNone(f plugin.Factors) bool { return f.Word == "none" }
func isOne(f plugin.Factors) bool  { return f.Word == "" && f.Each == nil && f.One == 1 }

// plain reports whether the options do not change the loss.
func (o LossOptions) plain() bool {
	return o.LabelSmoothing == 0 && o.FocalGamma == 0 && isNone(o.ClassWeights) && isOne(o.PosWeight)
}

// over returns the loss with a factor for each row; nil: 1 each.
func (l labelLoss) over(rows []float32) nn.LabelLoss {
	loss := nn.LabelLoss{Smoothing: l.smoothing, Gamma: l.gamma, Rows: rows}
	if l.weights != nil {
		loss.Weights = l.weights.Data
	}
	return loss
}

// weight returns the factor of label c.
func (l labelLoss) weight(c int) float64 {
	if l.weights == nil {
		return 1
	}
	return float64(l.weights.Data[c])
}

// windowWeights returns 1/n for each text of an example of n windows, as an example's loss is the mean over its
// windows; nil if each example has one window.
func windowWeights(rows nn.Rows) []float32 {
	texts := textsOf(rows)
	if len(texts) == rows.Texts() {
		return nil
	}
	weights := make([]float32, rows.Texts())
	for b, e := range rows.Example {
		weights[b] = 1 / texts[e]
	}
	return weights
}

// textsOf counts the texts, or windows, of each example.
func textsOf(rows nn.Rows) []float32 {
	texts := make([]float32, outputs.Examples(rows))
	for _, e := range rows.Example {
		texts[e]++
	}
	return texts
}
