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

// ObjectiveOptions are the keys for the objective of a head of several kinds of outputs; each kind rejects those of
// others.
type ObjectiveOptions struct {
	LossOptions      `yaml:",inline"`
	ThresholdOptions `yaml:",inline"`
	ScaleOptions     `yaml:",inline"`
}

// PlainObjective are the defaults of ObjectiveOptions.
var PlainObjective = ObjectiveOptions{PlainLoss, TunedThreshold, StandardScale}

// scorable are the kinds of outputs of heads with these options.
var scorable = []*outputs.Kind{outputs.Label, outputs.Labels, outputs.Tags, outputs.Number}

// scored is the objective of a head for its env's kind of outputs, and the input rows of its output layer.
type scored struct {
	Objective
	pooling
	outputs int // logits per row: one for each label, or one for a number
}

// newScored makes the objective of the env's kind of outputs. A row is a text pooled by the option pool, cls, mean, max
// or attention, or a word.
func newScored(pool string, o ObjectiveOptions, env Env) (s scored, err error) {
	s.pooling = newPool(pool, env)
	if env.Output.PerWord {
		if pool != "cls" {
			return scored{}, poolsNothing(pool)
		}
		s.pooling = words
	}
	s.Objective, s.outputs, err = newObjective(o, env)
	return s, err
}

func newObjective(o ObjectiveOptions, env Env) (Objective, int, error) {
	number, many := env.Output == outputs.Number, env.Output == outputs.Labels
	switch {
	case number && !o.plain():
		return nil, 0, errors.New("the output is a number; " +
			"label_smoothing, focal_gamma, class_weights and pos_weight are for labels")
	case !many && o.ThresholdOptions != TunedThreshold:
		return nil, 0, fmt.Errorf("the output is %s; threshold and tune are for any number of labels", env.Output)
	case !number && o.ScaleOptions != StandardScale:
		return nil, 0, fmt.Errorf("the output is %s; scale is for numbers", env.Output)
	case number:
		n, err := newNumber("mse", o.ScaleOptions == StandardScale, env)
		return n, 1, err
	}

	least := 2
	if many {
		least = 1
	}
	if len(env.Labels) < least {
		return nil, 0, &LabelsError{least, env.Labels}
	}
	loss, err := newLabelLoss(o.LossOptions, env, many)
	if err != nil {
		return nil, 0, err
	}
	switch env.Output {
	case outputs.Label:
		return &OneClass{loss: loss}, len(env.Labels), nil
	case outputs.Tags:
		return TagPerWord{loss}, len(env.Labels), nil
	case outputs.Labels:
		objective, err := newManyClasses(o.ThresholdOptions, loss, env)
		return &objective, len(env.Labels), err
	}
	panic(fmt.Sprintf("heads: unexpected outputs of task %q, %s", env.Task, env.Output))
}

func poolsNothing(pool string) error {
	return fmt.Errorf("pool %q: a head that tags words does not pool", pool)
}

// Describe returns the description of a head with this objective that reads no other states than those pooled.
func (s scored) Describe() Description {
	d := s.Objective.Describe()
	d.Reads = s.reads
	return d
}

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
	weights          *nn.Param // [L], does not learn; without it each is 1
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

func isNone(f plugin.Factors) bool { return f.Word == "none" }
func isOne(f plugin.Factors) bool  { return f.Word == "" && f.Each == nil && f.One == 1 }

func (o LossOptions) plain() bool {
	return o.LabelSmoothing == 0 && o.FocalGamma == 0 && isNone(o.ClassWeights) && isOne(o.PosWeight)
}

// over returns the loss with a factor for each row, or nil for factors of 1.
func (l labelLoss) over(rows []float32) nn.LabelLoss {
	loss := nn.LabelLoss{Smoothing: l.smoothing, Gamma: l.gamma, Rows: rows}
	if l.weights != nil {
		loss.Weights = l.weights.Data
	}
	return loss
}

// crossEntropy returns that of the numbers of labels, with a factor for each row; nil if nothing is labelled.
func (l labelLoss) crossEntropy(logits Logits, rows []float32, labels []int) *nn.Node {
	if len(labels) == 0 || slices.Max(labels) < 0 {
		return nil
	}
	return l.over(rows).CrossEntropy(logits.Nodes[0], labels)
}

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

// pooling makes the rows that a head computes with from hidden states.
type pooling struct {
	pool  func(seen nn.Hidden) *nn.Node // [B D] of texts or [W D] of words
	reads func(rows nn.Rows) []int      // the rows of the states that pool reads; all without it
}

// words takes the state of each word's first piece, [W D].
var words = pooling{
	pool:  func(seen nn.Hidden) *nn.Node { return nn.GatherRows(seen.States, seen.Rows.Words) },
	reads: func(rows nn.Rows) []int { return rows.Words },
}

// newPool makes the pooling of a text's tokens into one vector: cls, mean, max or attention.
func newPool(pool string, env Env) pooling {
	switch pool {
	case "cls":
		return pooling{pool: nn.ClsPool, reads: func(rows nn.Rows) []int { return rows.Starts[:rows.Texts()] }}
	case "mean":
		return pooling{pool: nn.MeanPool}
	case "max":
		return pooling{pool: nn.MaxPool}
	case "attention":
		return pooling{pool: nn.NewAttentionPool(env.Params.In("pool"), env.Width).Apply}
	}
	panic(fmt.Sprintf("heads: unexpected pool %q", pool))
}

// ModelDropout as a head's dropout option selects model.dropout.
const ModelDropout = -1

// dropoutRate returns that of a head whose dropout option is own.
func dropoutRate(own float64, env Env) (float64, error) {
	if own == ModelDropout {
		return env.Dropout, nil
	}
	if own < 0 {
		return 0, fmt.Errorf("dropout is %v; want one in [0, 1), or %d for the model's", own, ModelDropout)
	}
	return own, nil
}
