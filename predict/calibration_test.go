package predict

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/calibration"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// teams is a calibration of the small sample.
func teams() []checkpoint.HeadCalibration {
	return []checkpoint.HeadCalibration{{Task: "team", Head: "team", Labels: []string{"billing", "support"}, Examples: 8,
		Temperature: 4, MinProbability: 0.999, Sets: &checkpoint.ConformalSets{Alpha: 0.1, MinProbability: 0.001, Examples: 8}}}
}

// answer returns the team and the JSON of all predictions of a run for a text.
func answer(t *testing.T, o *Opened) (outputs.LabelAnswer, string) {
	t.Helper()
	predictions, err := o.answer(t, Form{}, []*corpus.Example{{Text: "the card came_late"}})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(predictions[0])
	if err != nil {
		t.Fatal(err)
	}
	return predictions[0].Tasks["team"]["team"].(outputs.LabelAnswer), string(text)
}

func open(t *testing.T, folder string, by func(context.Context, string) (*Opened, error)) *Opened {
	t.Helper()
	o, err := by(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close() })
	return o
}

func TestARunPredictsByItsCalibration(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	_, done := trainSmall(t, sample.Small(t, ""), folder)
	plain := open(t, folder, OpenRun)
	before, text := answer(t, plain)
	path, err := plain.WriteCalibration(t.Context(), teams())
	if err != nil || path != filepath.Join(folder, "best", "calibration.json") {
		t.Fatal(path, err)
	}

	calibrated := open(t, folder, OpenRun)
	after, _ := answer(t, calibrated)
	if after.Label != before.Label || after.Probability >= before.Probability || !after.Abstained ||
		len(after.Set) != 2 || after.Set[0] != after.Label || before.Abstained || before.Set != nil {
		t.Errorf("%+v, before %+v; want the same label, less probable, no answer, with a set", after, before)
	}
	if _, got := answer(t, open(t, folder, OpenUncalibrated)); got != text {
		t.Errorf("without the calibration: %s, want %s", got, text)
	}
	if _, got := answer(t, plain); got != text {
		t.Errorf("the run that was open: %s, want %s", got, text)
	}

	// the metrics of one label are those of all texts, with an answer or not
	if err := calibrated.Read(t.Context(), config.Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	metrics, err := calibrated.Evaluate(context.Background(), config.Dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, want := report.Metrics(metrics), report.Metrics(done.Best.Groups)
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s = %v by the calibration, %v without", name, got[name], want[name])
		}
	}

	if _, there, err := plain.RemoveCalibration(t.Context()); !there || err != nil {
		t.Fatal(there, err)
	}
	if _, there, err := plain.RemoveCalibration(t.Context()); there || err != nil {
		t.Fatal(there, err)
	}
	if _, got := answer(t, open(t, folder, OpenRun)); got != text {
		t.Errorf("after its removal: %s, want %s", got, text)
	}
}

// misfits are changes of a calibration that does not fit then, by their errors.
var misfits = map[string]func(*checkpoint.HeadCalibration){
	"temperature is 0.01; want a number from 0.1 to 10": func(c *checkpoint.HeadCalibration) { c.Temperature = 0.01 },
	"temperature is -1":             func(c *checkpoint.HeadCalibration) { c.Temperature = -1 },
	"a threshold is no probability": func(c *checkpoint.HeadCalibration) { c.MinProbability = 2 },
	"a threshold is no probability; want numbers from 0 to 1;": func(c *checkpoint.HeadCalibration) {
		c.Sets.MinProbability = -1
	},
	"0 sigmoids and 1 thresholds of 2 labels": func(c *checkpoint.HeadCalibration) { c.Thresholds = []float32{1} },
	"temperature and sigmoids": func(c *checkpoint.HeadCalibration) {
		c.Sigmoids = []calibration.Sigmoid{{A: 1, B: 0}, {A: 1, B: 0}}
	},
	"a of a sigmoid is 0": func(c *checkpoint.HeadCalibration) {
		c.Temperature, c.Sigmoids = 0, []calibration.Sigmoid{{A: 1, B: 0}, {A: 0, B: 0}}
	},
	`no task "teams"; did you mean "team"?`: func(c *checkpoint.HeadCalibration) { c.Task = "teams" },
	`no head "teams"`:                       func(c *checkpoint.HeadCalibration) { c.Head = "teams" },
	"it has other labels":                   func(c *checkpoint.HeadCalibration) { c.Labels = []string{"support", "billing"} },
	"or no probabilities":                   func(c *checkpoint.HeadCalibration) { c.Task, c.Head = "things", "things" },
}

func TestCalibrationsThatDoNotFit(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	o := open(t, folder, OpenRun)
	write := func(change func(c *checkpoint.HeadCalibration)) string {
		all := teams()
		change(&all[0])
		path, err := o.WriteCalibration(t.Context(), all)
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	for want, change := range misfits {
		path := write(change)
		if _, err := OpenRun(t.Context(), folder); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.HasPrefix(err.Error(), path) {
			t.Errorf("error %v, want %s: … %s", err, path, want)
		}
	}

	path := write(func(*checkpoint.HeadCalibration) {})
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"its CRC-32C is ":               strings.Replace(string(good), "0.999", "0.998", 1),
		"format 2; this jenga reads 1;": strings.Replace(string(good), `"format": 1`, `"format": 2`, 1),
		"not JSON":                      string(good[:len(good)/2]),
		"want an object":                "[]",
	} {
		sample.Write(t, path, text)
		remedy := "; jenga calibrate " + folder + " makes it again, and with argument remove removes it"
		if _, err := OpenRun(t.Context(), folder); err == nil || !strings.Contains(err.Error(), name) ||
			!strings.HasSuffix(err.Error(), remedy) {
			t.Errorf("error %v, want %s … %s", err, name, remedy)
		}
		open(t, folder, OpenUncalibrated) // as jenga calibrate opens it
	}

	// that of other weights is not used
	other := filepath.Join(t.TempDir(), "other")
	trainSmall(t, sample.Small(t, ""), other, "training.num_epochs=2")
	sample.Write(t, filepath.Join(other, "best", runfolder.CalibrationFile), string(good))
	stale := open(t, other, OpenRun)
	if label, _ := answer(t, stale); label.Set != nil ||
		!strings.Contains(strings.Join(plugin.Lines(stale.Warnings), "\n"),
			"it was fitted to other weights, and is not used") {
		t.Errorf("%+v, %q; want a warning and no set", label, stale.Warnings)
	}
}

func TestATrainingKeepsOthersFromCalibrating(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	o := open(t, folder, OpenRun)
	lock, err := runfolder.Acquire(folder)
	if err != nil {
		t.Fatal(err)
	}
	_, err = o.WriteCalibration(t.Context(), teams())
	if err == nil || !strings.Contains(err.Error(), "a training writes to it") {
		t.Errorf("error %v while a training has locked the folder", err)
	}
	lock.Release()
	sums := filepath.Join(folder, "best", runfolder.ChecksumsFile)
	text, err := os.ReadFile(sums)
	if err != nil {
		t.Fatal(err)
	}
	sample.Write(t, sums, string(text)+"00000000  other\n")
	if _, err := o.WriteCalibration(t.Context(), teams()); err == nil || !strings.Contains(err.Error(), "meanwhile") {
		t.Errorf("error %v of a checkpoint that was replaced", err)
	}
}
