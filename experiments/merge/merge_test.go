package merge

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/trained"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

func TestAMergedRunHasTheTasksOfAll(t *testing.T) {
	b := trained.NewBase(t)
	runs := []string{b.Run(t, "a", both), b.Run(t, "b", things, "model.lora={r: 2}", "model.dropout=0.2")}
	origin := encoderOf(t, b.Encoder)
	first := encoderOf(t, filepath.Join(runs[0], "best", "encoder"))
	second := encoderOf(t, filepath.Join(runs[1], "best", "encoder"))
	for _, method := range Methods() {
		folder := filepath.Join(b.Dir, "merged-"+method)
		figures := mergeInto(t, folder, Options{Method: method}, runs)
		if len(figures) != 3 {
			t.Fatalf("%s: figures %+v", method, figures)
		}
		for _, f := range figures {
			if f.Before == nil || f.Merged == nil || f.Metric == "" {
				t.Errorf("%s: %+v", method, f)
			}
		}

		// weights
		merged, changed := encoderOf(t, filepath.Join(folder, runfolder.EncoderDir)), false
		for name, values := range merged {
			for i, v := range values {
				da, db := float64(first[name][i]-origin[name][i]), float64(second[name][i]-origin[name][i])
				want := float64(origin[name][i])
				switch method {
				case Mean:
					want += (da + db) / 2
				case TaskArithmetic:
					want += 0.4 * (da + db)
				default:
					changed = changed || v != origin[name][i]
					continue
				}
				if !(math.Abs(float64(v)-want) <= 1e-6) {
					t.Fatalf("%s: %s is %v at %d, want %v", method, name, v, i, want)
				}
			}
		}
		if (method == TIES || method == DARE) && !changed {
			t.Errorf("%s: the encoder is the base model's", method)
		}
	}

	// in a copy elsewhere
	moved := filepath.Join(t.TempDir(), "moved")
	if err := os.CopyFS(moved, os.DirFS(filepath.Join(b.Dir, "merged-mean"))); err != nil {
		t.Fatal(err)
	}
	opened, err := predict.OpenRun(t.Context(), moved)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	if len(opened.Warnings) > 0 || opened.Unfinished != nil || opened.CheckEncoder(t.Context()) != nil {
		t.Errorf("warnings %q, state %v", opened.Warnings, opened.Unfinished)
	}
}

// With the whole task vector of one run and none of another, the merged run is the first with heads of both.
func TestTheWholeTaskVectorIsTheRun(t *testing.T) {
	b := trained.NewBase(t)
	runs := []string{b.Run(t, "a", teams), b.Run(t, "b", things)}
	figures := mergeInto(t, filepath.Join(b.Dir, "merged"),
		Options{Method: TaskArithmetic, Scale: 1, Weights: []float64{1, 0}}, runs)
	if f := figures[0]; *f.Before != *f.Merged {
		t.Errorf("%s is %v, and %v merged", f.Task, *f.Before, *f.Merged)
	}
	a := encoderOf(t, filepath.Join(runs[0], "best", "encoder"))
	for name, values := range encoderOf(t, filepath.Join(b.Dir, "merged", "encoder")) {
		for i, v := range values {
			if !(math.Abs(float64(v-a[name][i])) <= 1e-6) {
				t.Fatalf("%s is %v at %d, want %v", name, v, i, a[name][i])
			}
		}
	}
}

func TestTasksAreRenamed(t *testing.T) {
	b := trained.NewBase(t)
	runs := []string{b.Run(t, "a", both, "model.fusion=adapter"), b.Run(t, "b", both, "model.fusion=adapter", "seed=7")}
	_, err := Open(t.Context(), runs, Options{Method: Mean}, []Rename{{1, "word", "Team"}}, "")
	for _, want := range []string{
		fmt.Sprintf(`task "Team" is in %s and in %s; give it another name by argument rename 2:word=NAME`,
			runs[0], runs[1]),
		`task "team" is in`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open = %v, want %s", err, want)
		}
	}
	for rename, want := range map[Rename]string{
		{1, "tone", "x"}: `: no task "tone"; available: team, word`, {1, "team", "a.b"}: `want a name, have "a.b"`,
		{2, "team", "x"}: "run 3 of 2",
	} {
		if _, err := Open(t.Context(), runs, Options{Method: Mean}, []Rename{rename}, ""); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("Open = %v, want %s", err, want)
		}
	}

	// heads and what the fusion has for each task are those of the run
	folder := filepath.Join(b.Dir, "merged")
	figures := mergeInto(t, folder, Options{Method: Mean}, runs,
		Rename{1, "team", "team_b"}, Rename{1, "word", "word_b"})
	merged := encoderOf(t, filepath.Join(folder, "best"))
	for name, values := range encoderOf(t, filepath.Join(runs[1], "best")) {
		for _, task := range []string{"team", "word"} { // heads.TASK.HEAD, fusion.TASK
			name = strings.Replace(name, "."+task+".", "."+task+"_b.", 1)
		}
		if !slices.Equal(merged[name], values) {
			t.Errorf("%s has %d values, others than those of the run", name, len(merged[name]))
		}
	}
	if len(figures) != 4 || figures[3].Task != "word_b" || figures[3].Merged == nil {
		t.Errorf("figures %+v", figures)
	}
}

func init() {
	// a fusion with a part called gate, in which its parameters of the tasks are
	plugin.Register(fusion.Registry(), "gated_test", fusion.MixOptions{},
		func(o fusion.MixOptions, env fusion.Env) (fusion.Fusion, error) {
			env.Params = env.Params.In("gate")
			return fusion.Registry().Build("mix", o, env)
		})
}

// A task may be called like a part of the fusion.
func TestATaskIsRenamedInItsOwnPlaceAlone(t *testing.T) {
	b := trained.NewBase(t)
	tasks := strings.ReplaceAll(both, "team", "gate")
	tasks = strings.ReplaceAll(tasks, "label: gate", "label: team")
	runs := []string{b.Run(t, "a", tasks, "model.fusion=gated_test"), b.Run(t, "b", tasks, "model.fusion=gated_test")}
	folder := filepath.Join(b.Dir, "merged")
	mergeInto(t, folder, Options{Method: Mean}, runs, Rename{1, "gate", "gate_b"}, Rename{1, "word", "word_b"})
	was, merged := encoderOf(t, filepath.Join(runs[1], "best")), encoderOf(t, filepath.Join(folder, "best"))
	renamed := 0
	for from, to := range map[string]string{
		"fusion.gate.gate.": "fusion.gate.gate_b.", "fusion.gate.word.": "fusion.gate.word_b.",
		"heads.gate.": "heads.gate_b.", "heads.word.": "heads.word_b.",
	} {
		for name, values := range was {
			if rest, has := strings.CutPrefix(name, from); has {
				renamed++
				if !slices.Equal(merged[to+rest], values) {
					t.Errorf("%s is %v, want those of %s in the run, %v", to+rest, merged[to+rest], name, values)
				}
			}
		}
	}
	if renamed < 6 || len(merged) != 2*len(was) {
		t.Errorf("%d parameters of the run are renamed, the merged run has %d of two times %d", renamed, len(merged),
			len(was))
	}
}

// Runs whose encoder is frozen have the base model itself, as those that are merged of them.
func TestRunsOfAFrozenEncoderAreMerged(t *testing.T) {
	b := trained.NewBase(t)
	runs := []string{b.Run(t, "a", teams, "model.freeze=all"), b.Run(t, "b", things, "model.freeze=all")}
	folder := filepath.Join(b.Dir, "merged")
	for _, f := range mergeInto(t, folder, Options{Method: TIES}, runs) {
		if *f.Before != *f.Merged {
			t.Errorf("%s is %v, and %v merged", f.Task, *f.Before, *f.Merged)
		}
	}
	if runfolder.Exists(filepath.Join(folder, runfolder.EncoderDir)) {
		t.Error("the encoder is copied")
	}

	// with one that has learned
	third := b.Run(t, "c", strings.ReplaceAll(teams, "name: team", "name: other"))
	mergeInto(t, filepath.Join(b.Dir, "again"), Options{Method: Mean}, append(runs, third))
}

// Runs that continue another run have tasks of it, which are ordinary ones in the merged run.
func TestRunsThatContinueARunAreMerged(t *testing.T) {
	b := trained.NewBase(t)
	first := b.Run(t, "first", teams)
	var runs []string
	for _, name := range []string{"a", "b"} {
		file := filepath.Join(b.Dir, name+".yaml")
		sample.Write(t, file, "model: {base_model: "+first+", keep_tasks: all}\ntasks:\n"+
			strings.ReplaceAll(things, "name: things", "name: things_"+name)+
			"training: {learning_rate: 1.0e-2, batch_size: 8, num_epochs: 2, rehearse: 0.5}\n")
		runs = append(runs, trained.Run(t, file, filepath.Join(b.Dir, name)))
	}
	folder := filepath.Join(b.Dir, "merged")
	figures := mergeInto(t, folder, Options{Method: TIES}, runs, Rename{1, "team", "team_b"})
	if len(figures) != 4 {
		t.Fatalf("figures %+v", figures)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := run.Refit(ctx, folder, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Refit after the end of its context = %v", err)
	}
	r, err := run.Refit(t.Context(), folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Data.Experiment.Tasks) != 4 || r.Data.Experiment.Training.Rehearse != 0 {
		t.Errorf("tasks %v", r.Data.Experiment.Tasks)
	}
}

// A task is added to a merged run, and that run is merged again.
func TestAMergedRunIsGrown(t *testing.T) {
	b := trained.NewBase(t)
	merged := filepath.Join(b.Dir, "merged")
	mergeInto(t, merged, Options{Method: Mean}, []string{b.Run(t, "a", teams), b.Run(t, "b", things)})
	file := filepath.Join(b.Dir, "grown.yaml")
	sample.Write(t, file, "model: {base_model: merged, freeze: all, keep_tasks: all}\ntasks:\n"+
		strings.ReplaceAll(teams, "name: team", "name: other"))
	grown := trained.Run(t, file, filepath.Join(b.Dir, "grown"), "training.num_epochs=1")
	again := filepath.Join(b.Dir, "again")
	mergeInto(t, again, Options{Method: Mean}, []string{grown, merged},
		Rename{1, "team", "team_2"}, Rename{1, "things", "things_2"})
	e, err := config.Read(t.Context(), filepath.Join(again, runfolder.ExperimentFile), nil)
	if err != nil || len(e.Tasks) != 5 {
		t.Fatalf("%v: %+v, want 5 tasks", err, e)
	}
}

func TestHeadsAreTrainedAgain(t *testing.T) {
	b := trained.NewBase(t)
	runs := []string{b.Run(t, "a", teams), b.Run(t, "b", things)}
	folder := filepath.Join(b.Dir, "merged")
	figures := mergeInto(t, folder, Options{Method: TaskArithmetic, Scale: 3}, runs)
	encoder := encoderOf(t, filepath.Join(folder, runfolder.EncoderDir))
	heads := encoderOf(t, filepath.Join(folder, "best"))

	r, err := run.Refit(t.Context(), folder, []string{"training.num_epochs=10", "training.learning_rate=0.01"})
	if err != nil {
		t.Fatal(err)
	}
	done, err := r.Train(context.Background(), folder, func(train.Event) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	Refitted(figures, done.Best)
	for _, f := range figures {
		if f.Refitted == nil || *f.Refitted < *f.Merged {
			t.Errorf("%+v", f)
		}
	}
	for name, values := range encoderOf(t, filepath.Join(folder, runfolder.EncoderDir)) {
		if !slices.Equal(values, encoder[name]) {
			t.Errorf("%s of the encoder changed", name)
		}
	}
	for name, values := range encoderOf(t, filepath.Join(folder, "last")) {
		if slices.Equal(values, heads[name]) && strings.HasSuffix(name, "weight") {
			t.Errorf("%s did not learn", name)
		}
	}
	if err := After(context.Background(), figures, folder); err != nil {
		t.Fatal(err)
	}
	for _, f := range figures {
		if *f.Merged != *f.Refitted {
			t.Errorf("the run has %v of %s, want %v", *f.Merged, f.Task, *f.Refitted)
		}
	}
}
