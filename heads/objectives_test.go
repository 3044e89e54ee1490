package heads

import (
	"cmp"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// scoresOf returns logits with a row of values per row.
func scoresOf(p *nn.Pass, rows nn.Rows, scores ...[]float32) Logits {
	var all []float32
	for _, s := range scores {
		all = append(all, s...)
	}
	return Logits{[]*nn.Node{p.Input(all, len(scores), len(scores[0]))}, rows}
}

// lossOf computes the value of a loss.
func lossOf(t *testing.T, p *nn.Pass, loss *nn.Node) float64 {
	t.Helper()
	if err := p.Forward(); err != nil {
		t.Fatal(err)
	}
	return float64(nn.Values(loss)[0])
}

func TestOneClass(t *testing.T) {
	p := nn.NewPass(1)
	rows := nn.Rows{Starts: []int{0, 2, 3, 5}, Example: []int{0, 1, 2}}
	scores := scoresOf(p, rows, []float32{0, 0}, []float32{1, 0}, []float32{-1e4, 1e4})

	t.Run("the loss counts texts with a label that occurs in training", func(t *testing.T) {
		gold := []corpus.Target{label(1), nil, label(corpus.Unknown)}
		if got := (OneClass{}).Units(gold); got != 1 {
			t.Errorf("Units = %v, want 1", got)
		}
		if got := lossOf(t, p, OneClass{}.Loss(p, scores, gold)); !(math.Abs(got-math.Ln2) <= 1e-6) {
			t.Errorf("loss = %v, want log 2", got)
		}
		if OneClass.Loss(OneClass{}, p, scores, []corpus.Target{gold[1], gold[1], gold[2]}) != nil {
			t.Error("examples without a known label have a loss, want none")
		}
	})
	t.Run("predictions are softmax probabilities", func(t *testing.T) {
		got := outputs.AllAs[outputs.LabelPrediction](OneClass{}.Predict(scores))
		for i, want := range []struct {
			label       int
			probability float64 // of label 0
		}{{0, 0.5}, {0, 1 / (1 + math.Exp(-1))}, {1, 0}} {
			if got[i].ID != want.label || !(math.Abs(float64(got[i].Probabilities[0])-want.probability) <= 1e-6) {
				t.Errorf("prediction %d = %+v, want %+v", i, got[i], want)
			}
		}
	})
	t.Run("windows of one example are averaged", func(t *testing.T) {
		windows := nn.Rows{Starts: rows.Starts, Example: []int{0, 1, 1}}
		got := outputs.AllAs[outputs.LabelPrediction](OneClass{}.Predict(Logits{scores.Nodes, windows}))
		if len(got) != 2 || got[1].ID != 1 || !(math.Abs(float64(got[1].Probabilities[0])-0.36552928) <= 1e-6) {
			t.Errorf("predictions %+v, want the second's probability of 0 to be 0.3655", got)
		}
	})
	t.Run("NaN logits predict label 0", func(t *testing.T) {
		p, nan := nn.NewPass(1), float32(math.NaN())
		one := nn.Rows{Starts: []int{0, 1}, Example: []int{0}}
		got := outputs.AllAs[outputs.LabelPrediction](OneClass{}.Predict(scoresOf(p, one, []float32{nan, nan})))
		if got[0].ID != 0 {
			t.Errorf("label %d, want 0", got[0].ID)
		}
	})
}

func TestTagPerWord(t *testing.T) {
	p := nn.NewPass(1)
	// two texts: [CLS] a b b' [SEP], whose third word is truncated, and [CLS] [SEP] without words
	rows := nn.Rows{Starts: []int{0, 5, 7}, Words: []int{1, 2}, WordIndex: []int{0, 1}, WordCount: []int{3, 0},
		Example: []int{0, 1}}
	scores := scoresOf(p, rows, []float32{0, 2, 0}, []float32{0, 0, 3})

	t.Run("the loss counts tagged words that have a row", func(t *testing.T) {
		gold := []corpus.Target{tagged(1, corpus.Unknown, corpus.Unlabelled), nil} // the truncated word has no tag
		if got := (TagPerWord{}).Units(gold); got != 1 {
			t.Errorf("Units = %v, want 1", got)
		}
		want := math.Log(1 + 2*math.Exp(-2))
		if got := lossOf(t, p, TagPerWord{}.Loss(p, scores, gold)); !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("loss = %v, want %v", got, want)
		}
		if (TagPerWord{}).Loss(p, scores, make([]corpus.Target, 2)) != nil {
			t.Error("examples without a known label have a loss, want none")
		}
	})
	t.Run("every word of an example has a tag, -1 without a row", func(t *testing.T) {
		got := outputs.AllAs[outputs.TagsPrediction](TagPerWord{}.Predict(scores))
		if want := []int{1, 2, -1}; !reflect.DeepEqual(got[0].IDs, want) || got[0].Probabilities[2] != 0 {
			t.Errorf("tags %v with probabilities %v, want %v", got[0].IDs, got[0].Probabilities, want)
		}
		if want := 1 / (1 + 2*math.Exp(-2)); !(math.Abs(float64(got[0].Probabilities[0])-want) <= 1e-6) {
			t.Errorf("probability %v, want %v", got[0].Probabilities[0], want)
		}
		if got[1].IDs == nil || len(got[1].IDs) != 0 {
			t.Errorf("tags %v of an example without words, want none", got[1].IDs)
		}
	})
	t.Run("the tag of a word in two windows is from the window with more context", func(t *testing.T) {
		windows := nn.Rows{Starts: []int{0, 4, 9}, Words: []int{2, 6}, WordIndex: []int{0, 0}, WordCount: []int{1, 1},
			Example: []int{0, 0}}
		got := outputs.AllAs[outputs.TagsPrediction](TagPerWord{}.Predict(Logits{scores.Nodes, windows}))
		if len(got) != 1 || !reflect.DeepEqual(got[0].IDs, []int{2}) {
			t.Errorf("predictions %+v, want the second window's tag 2", got)
		}
		gold := []corpus.Target{tagged(2)}
		want := math.Log(1 + 2*math.Exp(-3))
		if got := lossOf(t, p, TagPerWord{}.Loss(p, Logits{scores.Nodes, windows},
			gold)); !(math.Abs(got-want) <= 1e-6) {
			t.Errorf("loss = %v, want that of one window, %v", got, want)
		}
	})
}

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
		got := outputs.AllAs[outputs.LabelsPrediction](ManyClasses{}.Predict(scores))
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
		got := outputs.AllAs[outputs.LabelsPrediction](ManyClasses{}.Predict(Logits{scores.Nodes, windows}))
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
		for i, p := range outputs.AllAs[outputs.LabelsPrediction](predicted) {
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

// filled returns the options with the defaults of those left out.
func (o ObjectiveOptions) filled() ObjectiveOptions {
	missing := func(f plugin.Factors) bool { return f.Word == "" && f.Each == nil && f.One == 0 }
	if missing(o.ClassWeights) {
		o.ClassWeights = PlainLoss.ClassWeights
	}
	if missing(o.PosWeight) {
		o.PosWeight = PlainLoss.PosWeight
	}
	if o.ThresholdOptions == (ThresholdOptions{}) {
		o.ThresholdOptions = TunedThreshold
	}
	o.Scale = cmp.Or(o.Scale, StandardScale.Scale)
	return o
}

func TestLossOptions(t *testing.T) {
	labels := []string{"rare", "common"}
	training := Training{Units: 100, Counts: []int{10, 90}}
	env := func(kind *outputs.Kind) Env {
		return Env{Task: "t", Output: kind, Labels: labels, Width: 4, Training: training, Params: nn.NewParams(1)}
	}
	weights := func(o LossOptions, kind *outputs.Kind) []float32 {
		t.Helper()
		l, err := newLabelLoss(ObjectiveOptions{LossOptions: o}.filled().LossOptions, env(kind), kind == outputs.Labels)
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
		if _, _, err := newObjective(ObjectiveOptions{c.o, c.t, StandardScale}.filled(), env(c.kind)); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: error %v, want %q", c.o, err, c.want)
		}
	}
}

func TestUnitsOfWeightedLoss(t *testing.T) {
	weights := LossOptions{ClassWeights: plugin.Factors{Each: map[string]float64{"b": 3}}}
	l, err := newLabelLoss(ObjectiveOptions{LossOptions: weights}.filled().LossOptions,
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

func TestNumber(t *testing.T) {
	p := nn.NewPass(1)
	rows := nn.Rows{Starts: []int{0, 2, 3, 5}, Example: []int{0, 1, 1}}
	logits := scoresOf(p, rows, []float32{1}, []float32{2}, []float32{4})
	gold := []corpus.Target{number(3), number(2)}

	t.Run("the loss of an example is the mean squared error of its windows", func(t *testing.T) {
		if got := (Number{}).Units(append(gold, nil)); got != 2 {
			t.Errorf("Units = %v, want 2", got)
		}
		if got := lossOf(t, p, Number{}.Loss(p, logits, gold)); !(math.Abs(got-(4+(0+4)/2.)) <= 1e-6) {
			t.Errorf("loss %v, want 6", got)
		}
		if (Number{}).Loss(p, logits, make([]corpus.Target, 2)) != nil {
			t.Error("examples without a number have a loss, want none")
		}
	})
	t.Run("the prediction is the mean over windows", func(t *testing.T) {
		got := outputs.AllAs[outputs.NumberPrediction](Number{}.Predict(logits))
		if len(got) != 2 || got[0].Value != 1 || got[1].Value != 3 {
			t.Errorf("predictions %+v, want 1 and 3", got)
		}
	})
	t.Run("standardized numbers", func(t *testing.T) {
		n, err := newNumber("mae", true, Env{Training: Training{Mean: 100, Deviation: 50}, Params: nn.NewParams(1)})
		if err != nil {
			t.Fatal(err)
		}
		got := outputs.AllAs[outputs.NumberPrediction](n.Predict(logits))
		if got[0].Value != 150 || got[1].Value != 250 {
			t.Errorf("predictions %+v, want 150 and 250", got)
		}
		if got := lossOf(t, p, n.Loss(p, logits, []corpus.Target{number(150), nil})); !(math.Abs(got) <= 1e-6) {
			t.Errorf("loss %v of the right number, want 0", got)
		}
	})
	t.Run("a deviation that float32 does not resolve is an error", func(t *testing.T) {
		for _, training := range []Training{{Mean: 1.7e9 + 40, Deviation: 1}, {Mean: 1, Deviation: 1e-50}} {
			_, err := newNumber("mse", true, Env{Training: training, Params: nn.NewParams(1)})
			if err == nil || !strings.Contains(err.Error(), "which float32 does not resolve") {
				t.Errorf("%+v: error %v", training, err)
			}
		}
	})
}

// label returns the target of the label with the id.
func label(id int) corpus.Target { return &outputs.LabelTarget{ID: id} }

// labelSet returns the target of the labels with the ids.
func labelSet(ids ...int) corpus.Target { return &outputs.LabelsTarget{IDs: append([]int{}, ids...)} }

// tagged returns the target of words with tags of the ids.
func tagged(ids ...int) corpus.Target { return &outputs.TagsTarget{IDs: ids} }

// number returns the target of a number.
func number(v float64) corpus.Target { return &outputs.NumberTarget{Value: v} }

// normalText and anomaly are the targets of a normal text and of an anomaly.
var normalText, anomaly corpus.Target = &outputs.AnomalyTarget{}, &outputs.AnomalyTarget{Anomalous: true}

// distances returns predictions with these distances from normal texts.
func distances(all ...float64) []corpus.Prediction {
	predicted := make([]outputs.AnomalyPrediction, len(all))
	for i, d := range all {
		predicted[i].Distance = d
	}
	return outputs.Erase(predicted)
}

// alarmed reports whether a prediction has an alarm that is true.
func alarmed(p corpus.Prediction) bool {
	alarm := outputs.As[outputs.AnomalyPrediction](p).Alarm
	return alarm != nil && *alarm
}
