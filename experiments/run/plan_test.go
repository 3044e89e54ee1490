package run

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/weightings"
)

func TestMaxStepsEndsTrainingAndIsWrittenBack(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	_, done := trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1", "training.max_steps=2")
	if done.Best.Step != 2 {
		t.Errorf("the last evaluation is after step %d, want 2", done.Best.Step)
	}
	e, err := config.ReadTrained(filepath.Join(folder, runfolder.ExperimentFile))
	if err != nil || e.Training.MaxSteps != 2 {
		t.Errorf("the run's experiment has max_steps %d, %v; want 2", e.Training.MaxSteps, err)
	}
}

func TestMistakesOfSamplersAndWeightingsAreFoundWithoutTraining(t *testing.T) {
	for set, want := range map[string]string{
		"training.max_steps=-1": "training: max_steps: want a whole number of at least 0, " +
			"have -1",
		"training.sampling={type: uniform, groups: 99}": `sampling "uniform": groups: the experiment has 1 group of tasks`,
		"training.sampling={type: uniform, groups: 0}":  `groups: want a whole number of at least 1, or all, have "0"`,
		"training.sampling={type: weights, weights: {teem: 2}}": `sampling "weights": weights: no task "teem"; ` +
			`did you mean "team"? available: `,
	} {
		e, err := config.Read(t.Context(), sample.Small(t, ""), []string{set})
		if err == nil {
			_, err = ready(e, config.Train, config.Dev)
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", set, err, want)
		}
	}
	e := mustRead(t, sample.Small(t, ""), "training.sampling=dynamic", "training.eval_strategy=no")
	if _, err := ready(e, config.Train); err == nil ||
		!strings.Contains(err.Error(), `sampling "dynamic" follows the metrics on dev, and there is no evaluation`) {
		t.Errorf("dynamic without evaluations: %v", err)
	}
	e = mustRead(t, sample.Small(t, ""), "training.weighting=pcgrad", "model.freeze=all", "model.fusion=none")
	want := `weighting "pcgrad": it combines the tasks' gradients of the parameters that they share, and none of those learns`
	if _, err := ready(e, config.Train, config.Dev); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("pcgrad on a frozen encoder: %v, want %s", err, want)
	}
}

// built counts how often the weighting counted_test is built.
var built int

func init() {
	weightings.Register("counted_test", struct{}{},
		func(struct{}, weightings.Env) (weightings.Weighting, error) {
			built++
			return weightings.Weighting{}, nil
		})
}

// Two plans would be two samplers and weightings, each with a state of its own.
func TestAPlanIsBuiltOnce(t *testing.T) {
	built = 0
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.max_steps=1", "training.weighting=counted_test")
	if built != 1 {
		t.Errorf("the weighting is built %d times, want once", built)
	}
}

func TestGradientsByTaskAreCountedInMemory(t *testing.T) {
	var gradients []int64
	for _, weighting := range []string{"fixed", "pcgrad", "gradnorm", "cagrad", "famo"} {
		run := prepared(t, sample.Small(t, ""), 1<<20, "training.weighting="+weighting)
		data := []multitask.Data{{Train: run.Data.Groups[0].Examples[config.Train],
			Dev: run.Data.Groups[0].Examples[config.Dev]}}
		n, err := run.trainingNeed(data)
		if err != nil {
			t.Fatal(err)
		}
		without := run.plan
		without.Weighting = weightings.Weighting{}
		more := n.Gradients - without.Memory(run.Model, 0).Gradients
		gradients = append(gradients, n.Gradients-more)
		if (more > 0) != (weighting != "fixed" && weighting != "famo") {
			t.Errorf("%s: gradients by task take %d bytes", weighting, more)
		}
	}
	if slices.Min(gradients) != slices.Max(gradients) {
		t.Errorf("gradients but those by task take %d bytes, and %d", slices.Min(gradients), slices.Max(gradients))
	}
}
