package train

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
)

// A head of weight 0 learns nothing: experiments whose heads all have weight 0 are refused.
func TestWeightZeroHasFactorZero(t *testing.T) {
	for _, name := range weightings.Registry().Names() {
		choice, err := weightings.Registry().FromString(name, "")
		if err != nil {
			t.Fatal(err)
		}
		head := multitask.HeadName{Task: "mood", Head: "mood"}
		w, err := choice.Build(weightings.Env{Heads: []multitask.HeadName{head}, Params: nn.NewParams(1)})
		if err != nil {
			t.Fatal(err)
		}
		losses := []multitask.Loss{{Task: "mood", Head: "mood", Weight: 0, Sum: 3, Units: 2}}
		s := multitask.State{Rand: rand.New(rand.NewPCG(1, 1))}
		if got := w.Factors(s, losses)[0]; got != 0 {
			t.Errorf("weighting %s multiplies the loss of a head of weight 0 by %v", name, got)
		}
	}
}

// Σ_h ½·exp(-s_h)·w_h·L_h + ½·s_h is over the heads that have labelled units in the step and a weight above 0.
func TestUncertaintyLearnsFromLabelledHeadsAlone(t *testing.T) {
	names := []multitask.HeadName{{Task: "a", Head: "a"}, {Task: "b", Head: "b"}, {Task: "c", Head: "c"}}
	w, err := weightings.NewUncertainty(weightings.UncertaintyOptions{LearningRate: 1}, weightings.Env{Heads: names,
		Params: nn.NewParams(1)})
	if err != nil {
		t.Fatal(err)
	}
	params := w.Learned.Params
	for _, p := range params {
		p.Data[0] = float32(math.Log(2)) // exp(-s) = 1/2
	}
	gradients := nn.NewGradients(params)
	terms := w.Learned.Differentiate([]multitask.Loss{
		{Task: "a", Head: "a", Weight: 3, Sum: 8, Units: 2},
		{Task: "b", Head: "b", Weight: 1},
		{Task: "c", Head: "c", Weight: 0, Sum: 8, Units: 2},
	}, gradients)
	if want := math.Log(2) / 2; !(math.Abs(terms-want) <= 1e-6) {
		t.Errorf("the terms of the loss sum to %v, want %v of the first head", terms, want)
	}
	for i, want := range []float32{0.5 - 0.5*0.5*3*4, 0, 0} {
		if got := gradients.Of(params[i])[0]; !(math.Abs(float64(got-want)) <= 1e-6) {
			t.Errorf("the gradient of head %s is %v, want %v", names[i].Head, got, want)
		}
	}
}
