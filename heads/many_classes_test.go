package heads

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

func TestManyClasses(t *testing.T) {
	p := nn.NewPass(1)
	rows := nn.Rows{Starts: []int{0, 2, 3, 5}, Example: []int{0, 1, 2}}
	scores := scoresOf(p, rows, []float32{0, 0}, []float32{1, -1}, []float32{1e4, -1e4})

	t.Run("the loss is the mean of the labels' cross entropies", func(t *testing.T) {
		gold := []corpus.Target{labelSet(1), nil, labelSet(0, corpus.Unknown)}
		if got := (ManyClasses{}).Units(gold); got != 2 {
			t.Errorf("Units = %v, want 2", got)
		}
		if got := lossOf(t, p, ManyClasses{}.Loss(p, scores, gold)); !(math.Abs(got-math.Ln2) <= 1e-6) {
			t.Errorf("loss = %v, want log 2 of the first text, 0 of the third", got)
		}
		if (ManyClasses{}).Loss(p, scores, make([]corpus.Target, 3)) != nil {
			t.Error("texts without a label have a loss, want none")
		}
	})
	t.Run("labels with probabilities of at least the threshold are predicted", func(t *testing.T) {
		got := outputs.Predictions[outputs.LabelsPrediction](ManyClasses{}.Predict(scores))
		for i, want := range [][]int{{0, 1}, {0}, {0}} {
			if !reflect.DeepEqual(got[i].IDs, want) {
				t.Errorf("prediction %d: labels %v, want %v", i, got[i].IDs, want)
			}
		}
		if !(math.Abs(float64(got[1].Probabilities[0])-1/(1+math.Exp(-1))) <= 1e-6) {
			t.Errorf("probability %v", got[1].Probabilities[0])
		}
	})
	t.Run("windows of one example are averaged", func(t *testing.T) {
		windows := nn.Rows{Starts: rows.Starts, Example: []int{0, 1, 1}}
		got := outputs.Predictions[outputs.LabelsPrediction](ManyClasses{}.Predict(Logits{scores.Nodes, windows}))
		if want := (1/(1+math.Exp(-1)) + 1) / 2; len(got) != 2 ||
			!(math.Abs(float64(got[1].Probabilities[0])-want) <= 1e-6) {
			t.Errorf("predictions %+v, want the second's probability of 0 to be %v", got, want)
		}
		gold := []corpus.Target{labelSet(), labelSet(0)}
		want := math.Ln2 + math.Log1p(math.Exp(-1))/2 // both labels of the window
		if got := lossOf(t, p, ManyClasses{}.Loss(p, Logits{scores.Nodes, windows},
			gold)); !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("loss %v, want %v: the mean over windows", got, want)
		}
	})
}

func TestThresholdsAreTunedOnDev(t *testing.T) {
	labels := []string{"a", "b"}
	build := func(tune string) ManyClasses {
		m, err := newManyClasses(ThresholdOptions{0.5, tune}, labelLoss{}, Env{Labels: labels, Params: nn.NewParams(1)})
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	// gold has a from probability 0.3 on and b from 0.7 on; the best shared threshold is between 0.3 and 0.4
	probabilities := [][]float32{{0.4, 0.4}, {0.3, 0.7}, {0.1, 0.6}, {0.2, 0.8}}
	holding := [][]int{{0}, {0, 1}, {}, {1}}
	for _, c := range []struct {
		tune string
		want []float32
	}{{"each", []float32{0.25, 0.65}}, {"none", []float32{0.5, 0.5}}} {
		m := build(c.tune)
		var gold []corpus.Target
		var predicted []corpus.Prediction
		for i := range probabilities {
			gold = append(gold, labelSet(holding[i]...))
			predicted = append(predicted, &outputs.LabelsPrediction{Probabilities: probabilities[i]})
		}
		m.Tune(gold, predicted)
		for l, want := range c.want {
			if !(math.Abs(float64(m.Thresholds()[l]-want)) <= 1e-6) {
				t.Errorf("tune %s: thresholds %v, want %v", c.tune, m.Thresholds(), c.want)
			}
		}
		for i, p := range outputs.Predictions[outputs.LabelsPrediction](predicted) {
			if c.tune == "each" && !reflect.DeepEqual(p.IDs, holding[i]) {
				t.Errorf("prediction %d is %v after tuning, want %v", i, p.IDs, holding[i])
			}
		}
	}
	shared := build("shared")
	shared.Tune([]corpus.Target{labelSet(0), labelSet()}, []corpus.Prediction{
		&outputs.LabelsPrediction{Probabilities: []float32{0.3, 0.2}},
		&outputs.LabelsPrediction{Probabilities: []float32{0.1, 0.1}},
	})
	if got := shared.Thresholds(); got[0] != 0.25 || got[1] != 0.25 {
		t.Errorf("shared thresholds %v, want 0.25", got)
	}
}

func TestLossOptions(t *testing.T) {
	labels := []string{"rare", "common"}
	training := Training{Units: 100, Counts: []int{10, 90}}
	env := func(kind *outputs.Kind) Env {
		return Env{Task: "t", Output: kind, Labels: labels, Width: 4, Training: training, Params: nn.NewParams(1)}
	}
	weights := func(o LossOptions, kind *outputs.Kind) []float32 {
		t.Helper()
		l, err := newLabelLoss(o.filled(), env(kind), kind == outputs.Labels)
		if err != nil {
			t.Fatal(err)
		}
		return l.over(nil).Weights
	}
	for _, c := range []struct {
		o    LossOptions
		kind *outputs.Kind
		want []float32
	}{
		{PlainLoss, outputs.Label, nil},
		{LossOptions{}, outputs.Label, nil},
		{LossOptions{ClassWeights: plugin.Factors{Word: "balanced"}}, outputs.Label, []float32{5, 100.0 / 180}},
		{LossOptions{ClassWeights: plugin.Factors{Each: map[string]float64{"rare": 3}}}, outputs.Tags, []float32{3, 1}},
		{LossOptions{PosWeight: plugin.Factors{Word: "balanced"}}, outputs.Labels, []float32{9, 10.0 / 90}},
		{LossOptions{PosWeight: plugin.Factors{One: 4}}, outputs.Labels, []float32{4, 4}},
	} {
		if got := weights(c.o, c.kind); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%+v for %s: weights %v, want %v", c.o, c.kind, got, c.want)
		}
	}

	for _, c := range []struct {
		o    LossOptions
		t    ThresholdOptions
		kind *outputs.Kind
		want string
	}{
		{LossOptions{ClassWeights: plugin.Factors{Each: map[string]float64{"rar": 3}}}, ThresholdOptions{},
			outputs.Label, `class_weights: no label "rar"; did you mean "rare"`},
		{LossOptions{ClassWeights: plugin.Factors{Each: map[string]float64{"rare": 0, "common": 0}}},
			ThresholdOptions{}, outputs.Label, "class_weights: the factors of all labels are 0"},
		{LossOptions{LabelSmoothing: 0.1}, ThresholdOptions{}, outputs.Labels,
			"each of many labels is a binary decision"},
		{LossOptions{ClassWeights: plugin.Factors{Word: "balanced"}}, ThresholdOptions{}, outputs.Labels,
			"use pos_weight to weigh it"},
		{LossOptions{PosWeight: plugin.Factors{One: 2}}, ThresholdOptions{}, outputs.Label,
			"use class_weights to weigh labels"},
		{LossOptions{FocalGamma: 2}, ThresholdOptions{}, outputs.Number, "the output is a number"},
		{LossOptions{}, ThresholdOptions{0.3, "none"}, outputs.Label,
			"threshold and tune are for any number of labels"},
	} {
		if _, _, err := newObjective(scoreOptions{c.o, c.t, StandardScale}.filled(), env(c.kind)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.o, err, c.want)
		}
	}
}

func TestUnitsOfWeightedLoss(t *testing.T) {
	l, err := newLabelLoss(LossOptions{ClassWeights: plugin.Factors{Each: map[string]float64{"b": 3}}}.filled(),
		Env{Labels: []string{"a", "b"}, Params: nn.NewParams(1)}, false)
	if err != nil {
		t.Fatal(err)
	}
	if got := (OneClass{loss: l}).Units([]corpus.Target{label(0), label(1), nil}); got != 4 {
		t.Errorf("Units = %v, want 1 + 3", got)
	}
	if got := (TagPerWord{l}).Units([]corpus.Target{tagged(1, 1, corpus.Unknown)}); got != 6 {
		t.Errorf("Units of words = %v, want 6", got)
	}
}
