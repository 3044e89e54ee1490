package report

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
)

func TestAWarningIsALine(t *testing.T) {
	got, err := json.Marshal(Line(multitask.Warning{Text: "the disk is full"}))
	if want := `{"event":"warning","warning":"the disk is full"}`; err != nil || string(got) != want {
		t.Errorf("Line = %s, %v, want %s", got, err, want)
	}
}

func TestALineOfAStepHasTheGroupsProbabilities(t *testing.T) {
	step := multitask.Step{Number: 2, Of: 9, Sampling: []multitask.Probability{
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

	// samplers without probabilities of their own have lines as before
	step.Sampling = nil
	want = want[:len(want)-len(`,"sampling":{"nli":{"examples":900,"exponent":0.5,"probability":0.75},`+
		`"sts":{"examples":100,"exponent":0.5,"probability":0.25}}}`)] + "}"
	if got, err := json.Marshal(Line(step)); err != nil || string(got) != want {
		t.Errorf("Line = %s, %v, want %s", got, err, want)
	}
}

func TestALineOfAStepHasTheFactorsOfTasks(t *testing.T) {
	step := multitask.Step{
		Losses:      []multitask.Loss{{Task: "nli", Head: "nli", Weight: 1, Factor: 1, Sum: 3, Units: 2}},
		TaskFactors: map[string]float64{"nli": 0},
	}
	line, err := json.Marshal(Line(step))
	want := `"tasks":{"nli":{"heads":{"nli":{"loss":1.5}},"factor":0}}`
	if err != nil || !strings.Contains(string(line), want) {
		t.Errorf("Line = %s, %v, want %s in it", line, err, want)
	}
}

func TestTheLastLineSaysHowATrainingEnded(t *testing.T) {
	reached := Done{Step: 7, Of: 80, Folder: "run"}
	evaluated := reached
	evaluated.Best.Step = 4
	best, err := json.Marshal(filepath.Join("run", "best"))
	if err != nil {
		t.Fatal(err)
	}
	stopped := fmt.Errorf("stopped: %w", context.Canceled)
	for _, test := range []struct {
		event Ended
		want  string
	}{
		{Ended{evaluated, stopped}, `{"event":"interrupted","step":7,"of":80,"checkpoint":` + string(best) + `}`},
		{Ended{reached, stopped}, `{"event":"interrupted","step":7,"of":80,"checkpoint":null}`},
		{Ended{reached, errors.New("no space")}, `{"event":"error","step":7,"of":80,"error":"no space"}`},
		{Ended{Done{}, errors.New("no such file")}, `{"event":"error","error":"no such file"}`},
	} {
		if got, err := json.Marshal(Line(test.event)); err != nil || string(got) != test.want {
			t.Errorf("Line = %s, %v, want %s", got, err, test.want)
		}
	}
}
