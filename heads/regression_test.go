package heads

import (
	"testing"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func TestRegressionStandardizesUnlessItHasARange(t *testing.T) {
	env := Env{Output: outputs.Number, Width: 4, Training: Training{Mean: 10, Deviation: 5}}
	for options, want := range map[string]bool{
		"": true, "scale: standard": true, "scale: none": false, "range: [0, 20]": false,
		"{range: [0, 20], scale: standard}": false, // the file of a run has all defaults
	} {
		env.Params = nn.NewParams(1)
		choice, err := Registry().FromString("regression", options)
		if err != nil {
			t.Fatal(err)
		}
		h, err := choice.Build(env)
		if err != nil {
			t.Fatal(err)
		}
		if mean, deviation := h.(*regression).scale(); (mean == 10 && deviation == 5) != want {
			t.Errorf("%s: mean %v and deviation %v, want those of the training numbers: %v", options, mean, deviation,
				want)
		}
	}
}

// Every head that predicts numbers standardizes them unless scale: none.
func TestHeadsOfNumbersStandardize(t *testing.T) {
	for _, head := range []string{"regression", "linear", "mlp", "focus"} {
		for options, want := range map[string][2]float64{
			"": {10, 5}, "scale: standard": {10, 5}, "scale: none": {0, 1},
		} {
			choice, err := Registry().FromString(head, options)
			if err != nil {
				t.Fatal(err)
			}
			h, err := choice.Build(Env{Output: outputs.Number, Width: 4, Training: Training{Mean: 10, Deviation: 5},
				Params: nn.NewParams(1)})
			if err != nil {
				t.Fatal(err)
			}
			var number Number
			switch h := h.(type) {
			case *regression:
				number = h.Number
			case *linear:
				number = h.Objective.(Number)
			case *mlp:
				number = h.Objective.(Number)
			case *focus:
				number = h.Objective.(Number)
			}
			if mean, deviation := number.scale(); mean != want[0] || deviation != want[1] {
				t.Errorf("%s, %s: mean %v and deviation %v, want %v", head, options, mean, deviation, want)
			}
		}
	}
}

func TestRegressionIsTheHeadOfNumbers(t *testing.T) {
	if got := Default(outputs.Number); got != "regression" {
		t.Errorf("the default is %s, want regression", got)
	}
	if got := Default(outputs.Tags); got != "linear" {
		t.Errorf("the default of tags is %s, want linear", got)
	}
}
