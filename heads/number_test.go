package heads

import (
	"math"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

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
		got := outputs.Predictions[outputs.NumberPrediction](Number{}.Predict(logits))
		if len(got) != 2 || got[0].Value != 1 || got[1].Value != 3 {
			t.Errorf("predictions %+v, want 1 and 3", got)
		}
	})
	t.Run("standardized numbers", func(t *testing.T) {
		n, err := newNumber("mae", true, Env{Training: Training{Mean: 100, Deviation: 50}, Params: nn.NewParams(1)})
		if err != nil {
			t.Fatal(err)
		}
		got := outputs.Predictions[outputs.NumberPrediction](n.Predict(logits))
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
