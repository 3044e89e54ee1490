package events

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/train"
)

func TestALineOfAStepHasTheGroupsProbabilities(t *testing.T) {
	step := train.Step{Number: 2, Of: 9, Sampling: []samplers.Probability{
		{Group: "nli", Value: 0.75, Terms: map[string]float64{"examples": 900, "exponent": 0.5}},
		{Group: "sts", Value: 0.25, Terms: map[string]float64{"examples": 100, "exponent": 0.5}},
	}}
	want := `{"event":"step","step":2,"of":9,"epoch":0,"loss":0,"tasks":{},"rate":0,"gradient_norm":0,` +
		`"tokens_per_second":0,"sampling":{"nli":{"examples":900,"exponent":0.5,"probability":0.75},` +
		`"sts":{"examples":100,"exponent":0.5,"probability":0.25}}}`
	if got, err := json.Marshal(Line(step)); err != nil || string(got) != want {
		t.Errorf("Line = %s, %v, want %s", got, err, want)
	}
	if _, has := step.Sampling[0].Terms["probability"]; has {
		t.Error("Line changes the step")
	}

	// no line of probabilities where there are none
	step.Sampling = nil
	want = want[:len(want)-len(`,"sampling":{"nli":{"examples":900,"exponent":0.5,"probability":0.75},`+
		`"sts":{"examples":100,"exponent":0.5,"probability":0.25}}}`)] + "}"
	if got, err := json.Marshal(Line(step)); err != nil || string(got) != want {
		t.Errorf("Line = %s, %v, want %s", got, err, want)
	}
}

func TestALineOfAStepHasTheFactorsOfTasks(t *testing.T) {
	step := train.Step{
		Losses:      []multitask.Loss{{Task: "nli", Head: "nli", Weight: 1, Factor: 1, Sum: 3, Units: 2}},
		TaskFactors: map[string]float64{"nli": 0},
	}
	line, err := json.Marshal(Line(step))
	want := `"tasks":{"nli":{"heads":{"nli":{"loss":1.5}},"factor":0}}`
	if err != nil || !strings.Contains(string(line), want) {
		t.Errorf("Line = %s, %v, want %s in it", line, err, want)
	}
}
