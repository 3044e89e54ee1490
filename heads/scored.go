package heads

import (
	"errors"
	"fmt"

	"github.com/jenga-nlp/jenga/outputs"
)

// scorer makes an objective over the logits of texts or words, and returns the number of logits per text or word.
type scorer func(o scoreOptions, env Env) (objective Objective, logits int, err error)

// scoreOptions are the options of these heads for their objective; each kind of outputs rejects those of others.
type scoreOptions struct {
	LossOptions
	ThresholdOptions
	ScaleOptions
}

// filled returns the options with the defaults of those left out, as Go code may do.
func (o scoreOptions) filled() scoreOptions {
	return scoreOptions{o.LossOptions.filled(), o.ThresholdOptions.filled(), o.ScaleOptions.filled()}
}

// scorers are the objectives of these heads, by kind of outputs.
var scorers = []struct {
	kind      *outputs.Kind
	objective scorer
}{{outputs.Label, scoreLabel}, {outputs.Labels, scoreLabels}, {outputs.Tags, scoreTags}, {outputs.Number, scoreNumber}}

// scorable lists the kinds of outputs that scorers have.
func scorable() []*outputs.Kind {
	var kinds []*outputs.Kind
	for _, s := range scorers {
		kinds = append(kinds, s.kind)
	}
	return kinds
}

// scored is the objective of a head for its env's kind of outputs.
type scored struct {
	Objective
	outputs int // logits per row: one for each label, or one for a number
}

// newScored makes the objective of the env's kind of outputs, and the input rows of the head's output layer: each text
// pooled into one row by the option pool, cls, mean, max or attention, or each word.
func newScored(pool string, o scoreOptions, env Env) (s scored, rows pooling, err error) {
	rows = newPool(pool, env)
	if env.Output.PerWord {
		if pool != "cls" {
			return scored{}, pooling{}, poolsNothing(pool)
		}
		rows = words
	}
	s.Objective, s.outputs, err = newObjective(o, env)
	return s, rows, err
}

// newObjective makes the objective of the env's kind of outputs, and returns the number of logits per text or word.
func newObjective(o scoreOptions, env Env) (Objective, int, error) {
	for _, s := range scorers {
		if s.kind == env.Output {
			return s.objective(o, env)
		}
	}
	panic(fmt.Sprintf("heads: unexpected outputs of task %q, %s", env.Task, env.Output))
}

// checkScale rejects scale: none for a head without numbers.
func checkScale(o ScaleOptions, env Env) error {
	if o != StandardScale {
		return fmt.Errorf("the output is %s; scale is for numbers", env.Output)
	}
	return nil
}

// checkThreshold refuses threshold options for a head without several labels at once.
func checkThreshold(o ThresholdOptions, env Env) error {
	if o != TunedThreshold {
		return fmt.Errorf("the output is %s; threshold and tune are for any number of labels", env.Output)
	}
	return nil
}

// newLoss makes the loss of a head that predicts one of several labels.
func newLoss(o scoreOptions, env Env) (labelLoss, error) {
	if err := checkThreshold(o.ThresholdOptions, env); err != nil {
		return labelLoss{}, err
	}
	if err := checkScale(o.ScaleOptions, env); err != nil {
		return labelLoss{}, err
	}
	if len(env.Labels) < 2 {
		return labelLoss{}, &LabelsError{2, env.Labels}
	}
	return newLabelLoss(o.LossOptions, env, false)
}

func scoreLabel(o scoreOptions, env Env) (Objective, int, error) {
	loss, err := newLoss(o, env)
	return &OneClass{loss: loss}, len(env.Labels), err
}

func scoreTags(o scoreOptions, env Env) (Objective, int, error) {
	loss, err := newLoss(o, env)
	return TagPerWord{loss}, len(env.Labels), err
}

func scoreLabels(o scoreOptions, env Env) (Objective, int, error) {
	if len(env.Labels) < 1 {
		return nil, 0, &LabelsError{1, env.Labels}
	}
	if err := checkScale(o.ScaleOptions, env); err != nil {
		return nil, 0, err
	}
	loss, err := newLabelLoss(o.LossOptions, env, true)
	if err != nil {
		return nil, 0, err
	}
	objective, err := newManyClasses(o.ThresholdOptions, loss, env)
	return &objective, len(env.Labels), err
}

func scoreNumber(o scoreOptions, env Env) (Objective, int, error) {
	if !o.plain() {
		return nil, 0, errors.New("the output is a number; " +
			"label_smoothing, focal_gamma, class_weights and pos_weight are for labels")
	}
	if err := checkThreshold(o.ThresholdOptions, env); err != nil {
		return nil, 0, err
	}
	n, err := newNumber("mse", o.ScaleOptions == StandardScale, env)
	return n, 1, err
}

func poolsNothing(pool string) error {
	return fmt.Errorf("pool %q: a head that tags words does not pool", pool)
}

// tuner returns the objective as a Tuner; nil for one label, a tag or a number, which have no thresholds.
func (s scored) tuner() Tuner {
	t, _ := s.Objective.(Tuner)
	return t
}
