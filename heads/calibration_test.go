package heads

import (
	"math"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// inWindows are the rows of two examples, the first in two windows.
var inWindows = nn.Rows{Starts: []int{0, 1, 2, 3}, Example: []int{0, 0, 1}}

func TestTemperatureAppliesToEachWindow(t *testing.T) {
	logits := scoresOf(nn.NewPass(1), inWindows, []float32{4, 0}, []float32{-2, 2}, []float32{1, 0})
	var head OneClass
	before := outputs.AllAs[outputs.LabelPrediction](head.Predict(logits))
	head.Calibrate(Calibration{Scale: []float32{0.5}})
	got := outputs.AllAs[outputs.LabelPrediction](head.Predict(logits))
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	for e, want := range []float64{(sigmoid(2) + sigmoid(-2)) / 2, sigmoid(0.5)} {
		if p := float64(got[e].Probabilities[0]); !(math.Abs(p-want) <= 1e-6) {
			t.Errorf("example %d: probability %v at temperature 2, want %v", e, p, want)
		}
	}
	head.Calibrate(Calibration{})
	after := outputs.AllAs[outputs.LabelPrediction](head.Predict(logits))
	if !slices.Equal(before[0].Probabilities, after[0].Probabilities) || after[0].Abstained || after[0].Set != nil {
		t.Errorf("the zero value predicts %+v, want %+v", after[0], before[0])
	}
}

func TestImprobableLabelsAreMarked(t *testing.T) {
	logits := scoresOf(nn.NewPass(1), nn.Rows{Starts: []int{0, 1, 2, 3}, Example: []int{0, 1, 2}},
		[]float32{3, 0}, []float32{0.1, 0}, []float32{float32(math.NaN()), 0})
	var head OneClass
	head.Calibrate(Calibration{MinProbability: 0.6, Sets: true, SetMinProbability: 0.4})
	got := outputs.AllAs[outputs.LabelPrediction](head.Predict(logits))
	for e, want := range []struct {
		abstained bool
		set       []int
	}{{false, []int{0}}, {true, []int{0, 1}}, {true, []int{}}} {
		if got[e].Abstained != want.abstained || got[e].Set == nil || !slices.Equal(got[e].Set, want.set) {
			t.Errorf("example %d: %+v, want %+v", e, got[e], want)
		}
	}
}

func TestThresholdsAndSigmoidsOfManyLabels(t *testing.T) {
	rows := nn.Rows{Starts: []int{0, 1, 2}, Example: []int{0, 1}}
	logits := scoresOf(nn.NewPass(1), rows, []float32{1, -1, 4}, []float32{-3, 2, 0})
	var head ManyClasses
	head.Calibrate(Calibration{
		Scale: []float32{0.5, 1, 2}, Offset: []float32{-1, 0, 2}, Thresholds: []float32{0.3, 0.8, 1},
	})
	got := outputs.AllAs[outputs.LabelsPrediction](head.Predict(logits))
	for e, z := range [][]float64{{-0.5, -1, 10}, {-2.5, 2, 2}} {
		for l := range z {
			if p, want := float64(got[e].Probabilities[l]), 1/(1+math.Exp(-z[l])); !(math.Abs(p-want) <= 1e-6) {
				t.Errorf("example %d, label %d: probability %v, want %v", e, l, p, want)
			}
		}
	}
	if !slices.Equal(got[0].IDs, []int{0}) || !slices.Equal(got[1].IDs, []int{1}) { // 0.378 and 0.881
		t.Errorf("labels %v and %v, want the first, then the second", got[0].IDs, got[1].IDs)
	}
}

func TestHeadsOfLabelsAreCalibrators(t *testing.T) {
	for kind, want := range map[*outputs.Kind]bool{
		outputs.Label: true, outputs.Labels: true, outputs.Tags: false, outputs.Number: false,
	} {
		env := Env{Output: kind, Labels: []string{"a", "b"}, Width: 2, Params: nn.NewParams(1),
			Training: Training{Deviation: 1}}
		head, err := newLinear(LinearOptions{Pool: "cls", ObjectiveOptions: PlainObjective}, env)
		if err != nil {
			t.Fatal(err)
		}
		c := head.Describe().Calibrator
		if (c != nil) != want || want && c.Exclusive() != (kind == outputs.Label) {
			t.Errorf("a linear head for %s is a Calibrator: %v, want %v", kind, c != nil, want)
		}
	}
	if (&embedding{}).Describe().Calibrator == nil {
		t.Error("a head that embeds OneClass is no Calibrator")
	}
}

// embedding is a head of another module.
type embedding struct{ OneClass }

func (*embedding) Logits(*nn.Pass, nn.Hidden) Logits { return Logits{} }
