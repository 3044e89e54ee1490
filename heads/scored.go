package heads

import (
	"errors"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
)

// scorable are the answers of heads that are scored.
var scorable = []corpus.Answer{corpus.OneLabel, corpus.ManyLabels, corpus.TagPerWord, corpus.Number}

// scored is what a head of one scorer scores for its site's answer: each text pooled into one row, or each word.
type scored struct {
	Objective
	rows    func(seen nn.Hidden) *nn.Node // [B D] or [W D]
	outputs int                           // scores a row: the labels', or one for a number
}

// newScored makes the objective of the site's answer. Its rows are pooled by the option pool: cls, mean, max or attention.
func newScored(pool string, loss LossOptions, threshold ThresholdOptions, site Site) (scored, error) {
	rows, err := newPool(pool, site)
	if err != nil {
		return scored{}, err
	}
	s := scored{rows: rows}
	if site.Answer == corpus.TagPerWord {
		if pool != "cls" {
			return scored{}, poolsNothing(pool)
		}
		s.rows = words
	}
	s.Objective, s.outputs, err = newObjective(loss, threshold, site)
	return s, err
}

// newPool makes what a text's tokens become one vector by: cls, mean, max or attention.
func newPool(pool string, site Site) (func(seen nn.Hidden) *nn.Node, error) {
	switch pool {
	case "cls":
		return nn.ClsPool, nil
	case "mean":
		return nn.MeanPool, nil
	case "max":
		return nn.MaxPool, nil
	case "attention":
		return nn.NewAttentionPool(site.Params.In("pool"), site.Width).Apply, nil
	}
	return nil, fmt.Errorf("no pool %q; there is attention, cls, max, mean", pool)
}

// newObjective makes the objective of the site's answer, and tells how many scores a text or word has.
func newObjective(o LossOptions, threshold ThresholdOptions, site Site) (objective Objective, outputs int, err error) {
	outputs = len(site.Labels)
	if err := checkIdle(o, threshold, site.Answer); err != nil {
		return nil, 0, err
	}
	switch {
	case !slices.Contains(scorable, site.Answer):
		return nil, 0, fmt.Errorf("it answers one label, any number of labels, a tag for each word or a number, but task %q asks for %s", site.Task, site.Answer)
	case site.Answer == corpus.Number:
		n, err := newNumber("mse", false, site)
		return n, 1, err
	case site.Answer == corpus.ManyLabels && outputs < 1:
		return nil, 0, fmt.Errorf("want at least 1 label, have none")
	case site.Answer != corpus.ManyLabels && outputs < 2:
		return nil, 0, fmt.Errorf("want at least 2 labels, have %q", site.Labels)
	}
	loss, err := newLabelLoss(o, site)
	if err != nil {
		return nil, 0, err
	}
	switch site.Answer {
	case corpus.OneLabel:
		return OneClass{loss}, outputs, nil
	case corpus.TagPerWord:
		return TagPerWord{loss}, outputs, nil
	}
	objective, err = newManyClasses(threshold, loss, site)
	return objective, outputs, err
}

// checkIdle refuses options that have no effect on answers of a kind.
func checkIdle(o LossOptions, threshold ThresholdOptions, answer corpus.Answer) error {
	switch {
	case answer == corpus.Number && !o.plain():
		return errors.New("it answers a number: label_smoothing, focal_gamma, class_weights and pos_weight are for labels")
	case answer != corpus.ManyLabels && threshold != TunedThreshold && threshold != (ThresholdOptions{}):
		return fmt.Errorf("it answers %s: threshold and tune are for any number of labels", answer)
	}
	return nil
}

func poolsNothing(pool string) error {
	return fmt.Errorf("pool %q: a head that tags words pools nothing", pool)
}

// Tune passes on what dev tells, if the objective decides by it.
func (s scored) Tune(gold []corpus.Target, predicted []corpus.Prediction) {
	if t, tunes := s.Objective.(Tuner); tunes {
		t.Tune(gold, predicted)
	}
}

// Thresholds lists the probability from which on each label holds; nil where the likeliest is the answer.
func (s scored) Thresholds() []float32 {
	if t, has := s.Objective.(Thresholded); has {
		return t.Thresholds()
	}
	return nil
}

// words returns the state of each word's first piece, [W D].
func words(seen nn.Hidden) *nn.Node { return nn.GatherRows(seen.States, seen.Rows.Words) }
