package multitask

import (
	"testing"

	"github.com/jenga-nlp/jenga/nn"
)

// A head of weight 0 learns nothing: experiments whose heads all have weight 0 are refused.
func TestWeightZeroHasFactorZero(t *testing.T) {
	for _, name := range Weightings().Names() {
		choice, err := Weightings().FromString(name, "")
		if err != nil {
			t.Fatal(err)
		}
		head := HeadName{"mood", "mood"}
		w, err := choice.Build(WeightingEnv{Heads: []HeadName{head}, Params: nn.NewParams(1)})
		if err != nil {
			t.Fatal(err)
		}
		losses := []Loss{{Task: "mood", Head: "mood", Weight: 0, Sum: 3, Units: 2}}
		if got := w.Weigh(State{}, losses)[0]; got != 0 {
			t.Errorf("weighting %s multiplies the loss of a head of weight 0 by %v", name, got)
		}
	}
}
