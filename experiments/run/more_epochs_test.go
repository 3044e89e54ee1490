package run

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// longer trains the run in a folder on with other options, and returns what it reports of that.
func longer(t *testing.T, folder string, allowed []string, sets ...string) (anew string, err error) {
	t.Helper()
	found, err := resume.Find(t.Context(), folder)
	if err != nil {
		return "", err
	}
	e := mustRead(t, found.File, sets...)
	if changed, err := found.Changed(e); err != nil || !changed {
		return "", err
	}
	r, err := Resume(t.Context(), e, found.Point, nil, allowed)
	if err != nil {
		return "", err
	}
	r.Restored = func(_ report.State, text string) { anew = text }
	_, err = r.Train(t.Context(), folder, ignore)
	return anew, err
}

// A training by SGD without momentum has no state of its optimizer: with a constant rate, two parts of it are one.
func TestMoreEpochsOfAFinishedRunAreThoseOfALongerOne(t *testing.T) {
	for name, sets := range map[string][]string{
		"all weights": nil,
		"kept":        {"training.save_total_limit=2", "training.save_strategy=steps", "training.save_steps=2"},
		"frozen":      {"model.freeze=all"},
		"LoRA":        {"model.lora.r=4"},
		"weighting":   {"training.weighting=uncertainty", "training.weighting.learning_rate=0.1"},
		"sampler":     {"training.sampling=dynamic"},
		"no dev":      {"training.eval_strategy=no"},
		"by steps":    {"training.eval_strategy=steps", "training.eval_steps=2"},
		"accumulated": {"training.gradient_accumulation_steps=2"},
	} {
		t.Run(name, func(t *testing.T) {
			path := sample.Small(t, "")
			sets := append([]string{"training.optimizer.type=sgd", "training.optimizer.momentum=0",
				"training.lr_scheduler=constant", "training.learning_rate=0.05"}, sets...)
			whole, folder := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "run")
			trainSmall(t, path, whole, append(slices.Clone(sets), "training.num_epochs=4")...)
			trainSmall(t, path, folder, append(slices.Clone(sets), "training.num_epochs=2")...)
			for _, epochs := range []string{"3", "4"} {
				if name == "accumulated" && epochs == "3" { // whose last step has fewer batches
					continue
				}
				if _, err := longer(t, folder, nil, "training.num_epochs="+epochs); err != nil {
					t.Fatal(err)
				}
			}
			got, want := result(t, folder), result(t, whole)
			if name == "weighting" { // its own optimizer begins anew
				return
			}
			if name == "no dev" || name == "by steps" { // the ends of the parts are evaluated, or logged
				delete(got, runfolder.MetricsFile)
				delete(want, runfolder.MetricsFile)
			}
			for _, files := range []map[string]string{got, want} {
				if text, ok := files[runfolder.MetricsFile]; ok { // a step at the end of a part is logged
					files[runfolder.MetricsFile] = evaluations(text)
				}
			}
			checkSameResult(t, name, got, want)
		})
	}
}

// evaluations returns the lines of evaluations of a metrics file.
func evaluations(metrics string) string {
	var all []string
	for line := range strings.Lines(metrics) {
		if strings.Contains(line, `"event":"eval"`) {
			all = append(all, line)
		}
	}
	return strings.Join(all, "")
}

func TestMoreEpochsSayTheScheduleAsItIs(t *testing.T) {
	stopped := []string{"training.num_epochs=20", "training.early_stopping_patience=1", "training.learning_rate=1e-12"}
	for name, c := range map[string]struct {
		sets, more, allowed []string
		anew, err           string
	}{
		"linear": {nil, []string{"training.num_epochs=4"}, nil, "the learning rate goes on from 0.00417, by " +
			"lr_scheduler: linear over all 12 steps; the optimizer's state begins anew", ""},
		"a computed rate": {[]string{"training.optimizer={type: adafactor, relative_step: true}",
			"training.learning_rate="}, []string{"training.num_epochs=4"}, nil, "the learning rate goes on from " +
			"0.01, as the optimizer computes it, over all 12 steps; the optimizer's state begins anew", ""},
		"means":  {[]string{"training.ema=0.9"}, []string{"training.num_epochs=4"}, nil, "goes on from 0.00417", ""},
		"warmup": {[]string{"training.warmup_ratio=0.5"}, []string{"training.num_epochs=6"}, nil, "from 0.00778", ""},
		"steps":  {[]string{"training.max_steps=5"}, []string{"training.max_steps=9"}, nil, "over all 9 steps", ""},
		"another rate": {nil, []string{"training.num_epochs=4", "training.learning_rate=0.001"}, nil, "",
			"experiment: training.learning_rate: was 0.01, is 0.001"},
		"another rate, allowed": {nil, []string{"training.num_epochs=4", "training.learning_rate=0.001"},
			[]string{"experiment"}, "from 0.000417", ""},
		"nothing new": {nil, []string{"training.num_epochs=2"}, nil, "", ""},
		"no result":   {nil, []string{"training.save_total_limit=3"}, nil, "", ""},
		"fewer":       {nil, []string{"training.num_epochs=1"}, nil, "", "training.num_epochs: was 2, is 1"},
		"not more epochs": {nil, []string{"training.weight_decay=0.5"}, []string{"experiment"}, "",
			"has no more steps"},
		"max_steps ends it": {[]string{"training.max_steps=5"}, []string{"training.num_epochs=9"}, nil, "",
			"training.max_steps=N where that is set"},
		"another rate alone": {nil, []string{"training.learning_rate=0.001"}, nil, "", "undo the change, or go on " +
			"all the same by argument allow-changes experiment, and argument set training.num_epochs=N, or " +
			"training.max_steps=N where that is set, with a larger N: its training is finished, after step 6 of 6"},
		"another rate after early stopping": {stopped, []string{"training.learning_rate=0.001"}, nil, "",
			"argument set training.early_stopping_patience=0 argument allow-changes experiment besides"},
		"no state": {[]string{"training.save_strategy=no"}, []string{"training.num_epochs=4"}, nil, "",
			"nothing goes on with another training.num_epochs"},
		"early stopping": {stopped, []string{"training.num_epochs=30"}, nil, "",
			"argument set training.early_stopping_patience=0 argument allow-changes experiment besides"},
		"without early stopping": {stopped, []string{"training.num_epochs=4", "training.early_stopping_patience=0"},
			[]string{"experiment"}, "over all 12 steps", ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "run")
			trainSmall(t, sample.Small(t, ""), folder, append([]string{"training.num_epochs=2"}, c.sets...)...)
			before := sample.Files(t, folder)
			anew, err := longer(t, folder, c.allowed, c.more...)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if !strings.Contains(anew, c.anew) || !strings.Contains(text, c.err) || (err == nil) != (c.err == "") ||
				(anew == "") != (c.anew == "") {
				t.Fatalf("trained on: %q, %v; want %q, %q", anew, err, c.anew, c.err)
			}
			if c.anew == "" {
				checkSameResult(t, "a run that is not trained on", sample.Files(t, folder), before)
			}
			if found, err := resume.Find(t.Context(), folder); err != nil || !found.Done() {
				t.Errorf("afterwards: %+v, %v", found, err)
			}
		})
	}
}
