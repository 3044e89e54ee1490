package heads

import (
	"math"
	"reflect"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
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
		got := outputs.Predictions[outputs.LabelPrediction](OneClass{}.Predict(scores))
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
		got := outputs.Predictions[outputs.LabelPrediction](OneClass{}.Predict(Logits{scores.Nodes, windows}))
		if len(got) != 2 || got[1].ID != 1 || !(math.Abs(float64(got[1].Probabilities[0])-0.36552928) <= 1e-6) {
			t.Errorf("predictions %+v, want the second's probability of 0 to be 0.3655", got)
		}
	})
	t.Run("NaN logits predict label 0", func(t *testing.T) {
		p, nan := nn.NewPass(1), float32(math.NaN())
		one := nn.Rows{Starts: []int{0, 1}, Example: []int{0}}
		got := outputs.Predictions[outputs.LabelPrediction](OneClass{}.Predict(scoresOf(p, one, []float32{nan, nan})))
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
		got := outputs.Predictions[outputs.TagsPrediction](TagPerWord{}.Predict(scores))
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
		got := outputs.Predictions[outputs.TagsPrediction](TagPerWord{}.Predict(Logits{scores.Nodes, windows}))
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
