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
	LabelSmoothing float64        `yaml:"label_smoothing" range:"[0,1)" doc:"share of the gold label's target that is divided among all labels (Szegedy 2016); for one label or a tag"`
	FocalGamma     float64        `yaml:"focal_gamma" range:"[0,16]" doc:"γ of the focal loss, which multiplies a loss by (1-p)^γ (Lin 2017)"`
	ClassWeights   plugin.Factors `yaml:"class_weights" choice:"none|balanced" one:"no" range:"[0,)" doc:"factor of each label's loss, for one label or a tag; balanced: as many units as there are, divided by labels times units of the label"`
	PosWeight      plugin.Factors `yaml:"pos_weight" choice:"balanced" range:"(0,)" doc:"factor of the loss where a label holds, for many labels; balanced: how often it does not hold, divided by how often it does"`
}

// PlainLoss are the options of a loss as it is.
var PlainLoss = LossOptions{ClassWeights: plugin.Factors{Word: "none"}, PosWeight: plugin.Factors{One: 1}}

// labelLoss is the loss of an objective over labels; its zero value is plain.
type labelLoss struct {
	smoothing, gamma float64
	weights          *nn.Param // [L], does not learn; nil: 1 each
}

// newLabelLoss reads the options of a head over labels, of which many may hold.
func newLabelLoss(o LossOptions, env Env, many bool) (labelLoss, error) {
	l := labelLoss{smoothing: o.LabelSmoothing, gamma: o.FocalGamma}
	switch {
	case many && l.smoothing > 0:
		return l, errors.New("label_smoothing: each of many labels is a question of its own; it takes pos_weight, " +
			"focal_gamma")
	case many && !isNone(o.ClassWeights):
		return l, errors.New("class_weights: each of many labels is a question of its own; pos_weight weighs its " +
			"answers")
	case !many && !isOne(o.PosWeight):
		return l, fmt.Errorf("pos_weight: it answers %s; class_weights weighs labels", env.Output)
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
		return l, fmt.Errorf("%s: the factors of all labels are 0, so that nothing is learned", name)
	}
	return l, nil
}

// filled returns the options with plain factors where they are left out, as Go code may do.
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

// plain tells whether the options leave the loss as it is.
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

// windowShares returns 1/n for each text of an example that is n texts; nil where each example is one: an example's
// loss is the mean over its windows.
func windowShares(rows nn.Rows) []float32 {
	texts := textsOf(rows)
	if len(texts) == rows.Texts() {
		return nil
	}
	shares := make([]float32, rows.Texts())
	for b, e := range rows.Example {
		shares[b] = 1 / texts[e]
	}
	return shares
}

// textsOf counts the texts of each example.
func textsOf(rows nn.Rows) []float32 {
	texts := make([]float32, outputs.Examples(rows))
	for _, e := range rows.Example {
		texts[e]++
	}
	return texts
}
