package run

import (
	"context"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

func TestSameFileAndSeedGiveTheSameBytesAtAnyThreads(t *testing.T) {
	defer kernel.SetThreads(0)
	path := sample.Small(t, "")
	var want map[string]string
	for n, threads := range []int{1, 1, 2, 3} {
		kernel.SetThreads(threads)
		folder := filepath.Join(t.TempDir(), "run")
		trainSmall(t, path, folder)
		got := sample.Files(t, filepath.Join(folder, runfolder.BestDir))
		if n == 0 {
			want = got
			continue
		}
		if len(got) != len(want) {
			t.Errorf("%d threads wrote %d files, one thread %d", threads, len(got), len(want))
		}
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("%[2]s differs with %[1]d threads", threads, name)
			}
		}
	}
}

func TestTheResolvedFileTrainsTheSameModelAgain(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "again")
	trainSmall(t, sample.Small(t, ""), first, "training.num_epochs=2")
	trainSmall(t, filepath.Join(first, runfolder.ExperimentFile), second)
	got, want := sample.Files(t, filepath.Join(second, runfolder.BestDir)),
		sample.Files(t, filepath.Join(first, runfolder.BestDir))
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s differs", name)
		}
	}
}

func TestEarlyStoppingEndsAfterItsPatience(t *testing.T) {
	path := sample.Small(t, "")
	e, err := config.Read(t.Context(), path, []string{"training.num_epochs=50", "training.early_stopping_patience=2"})
	if err != nil {
		t.Fatal(err)
	}
	run, err := ready(e, config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	var values []float64
	if _, err := run.Train(context.Background(), filepath.Join(t.TempDir(), "run"), func(event train.Event) error {
		if v, ok := event.(train.Evaluation); ok {
			values = append(values, report.Metrics(v.Groups)["eval_overall"])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	if got, want := len(values), best+3; got != want || got == 50 {
		t.Errorf("ended after %d evaluations of %v, want %d: two after the best", got, values, want)
	}
}

func TestCheckFolderRefusesFoldersWithOtherFiles(t *testing.T) {
	dir, e := t.TempDir(), &config.Experiment{}
	if err := CheckFolder(e, filepath.Join(dir, "new"), false); err != nil {
		t.Errorf("a folder that does not exist: %v", err)
	}
	sample.Write(t, filepath.Join(dir, "thesis.txt"), "")
	if err := CheckFolder(e, dir, true); err == nil {
		t.Error("a folder of other files is replaced with force")
	}
	sample.Write(t, filepath.Join(dir, runfolder.ExperimentFile), "")
	if err := os.Mkdir(filepath.Join(dir, runfolder.TasksDir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := CheckFolder(e, dir, true); err == nil || !strings.Contains(err.Error(), "no run") {
		t.Errorf("a folder with an experiment that never ran: %v", err)
	}
	sample.Write(t, filepath.Join(dir, runfolder.MetricsFile), "")
	if err := CheckFolder(e, dir, false); err == nil || !strings.Contains(err.Error(), "argument force") {
		t.Errorf("a folder that has a run: %v", err)
	}
	if err := CheckFolder(e, dir, true); err != nil {
		t.Errorf("a run is not replaced with force: %v", err)
	}

	// after a kill: a model without metrics
	if err := os.Remove(filepath.Join(dir, runfolder.MetricsFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, runfolder.LastDir+runfolder.OldSuffix), 0o755); err != nil {
		t.Fatal(err)
	}
	sample.Write(t, filepath.Join(dir, runfolder.LastDir+runfolder.OldSuffix, runfolder.ModelFile), "")
	if err := CheckFolder(e, dir, true); err != nil {
		t.Errorf("a run without metrics is not replaced with force: %v", err)
	}
}

func TestTwoTrainingsDoNotWriteToOneFolder(t *testing.T) {
	path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
	e := mustRead(t, path, "training.num_epochs=1")
	ready := func() *Run {
		r, err := ready(e, config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first, second, third := ready(), ready(), ready()
	const want = ": another training writes to it, process "
	tried := false
	_, err := first.Train(context.Background(), folder, func(event train.Event) error {
		if _, ok := event.(train.Step); !ok || tried {
			return nil
		}
		tried = true
		before := sample.Files(t, folder)
		_, trained := second.Train(context.Background(), folder, ignore)
		for what, err := range map[string]error{"Train": trained, "CheckFolder": CheckFolder(e, folder, true)} {
			if err == nil || !strings.HasPrefix(err.Error(), folder+want) {
				t.Errorf("%s = %v, want %s", what, err, want)
			}
		}
		if got := sample.Files(t, folder); !maps.Equal(got, before) {
			t.Error("the second training has changed files")
		}
		return nil
	})
	if err != nil || !tried {
		t.Fatal(err)
	}

	// a training that ended while another prepared
	third.Keep = true
	before := sample.Files(t, folder)
	if _, err := third.Train(context.Background(), folder, ignore); err == nil ||
		!strings.Contains(err.Error(), "holds a run") {
		t.Errorf("Train that keeps an earlier run = %v", err)
	}
	if got := sample.Files(t, folder); !maps.Equal(got, before) {
		t.Error("the run was changed")
	}
}

// A killed training leaves its lock's file.
func TestAFolderWithALocksFileAloneIsEmpty(t *testing.T) {
	folder := t.TempDir()
	sample.Write(t, filepath.Join(folder, runfolder.LockFile), "process 1 on host\n")
	if runfolder.IsRun(folder) {
		t.Error("it is a run")
	}
	if err := CheckFolder(&config.Experiment{}, folder, false); err != nil {
		t.Error(err)
	}
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	if runfolder.Exists(filepath.Join(folder, runfolder.LockFile)) {
		t.Error("the file is left after the next training")
	}
}

// What a kill leaves before a folder is a run.
func TestAFolderInWhichATrainingOnlyBeganIsEmpty(t *testing.T) {
	folder := t.TempDir()
	metrics := filepath.Join(folder, runfolder.MetricsFile)
	for _, name := range []string{metrics, filepath.Join(folder, runfolder.SplitsFile),
		filepath.Join(folder, runfolder.ExperimentFile+runfolder.NewSuffix)} {
		sample.Write(t, name, "")
		if err := CheckFolder(&config.Experiment{}, folder, false); err != nil {
			t.Errorf("with %s: %v", name, err)
		}
	}
	sample.Write(t, metrics, "{}\n")
	if err := CheckFolder(&config.Experiment{}, folder, true); err == nil {
		t.Error("a folder with metrics of another program is replaced")
	}
}

func TestARunThatContainsTheBaseModelIsNotReplaced(t *testing.T) {
	path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, folder, "training.num_epochs=1")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(folder, runfolder.BestDir, runfolder.EncoderDir)
	based := strings.Replace(string(text),
		"encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32, max_positions: 64}",
		"base_model: "+base, 1)
	sample.Write(t, path, strings.Replace(based, ", train: {vocab_size: 200}", "", 1))
	before := sample.Files(t, folder)

	want := folder + " holds a run that the base model is part of, " + base + ": name another folder by argument out"
	for _, freeze := range []string{"all", "none"} {
		e := mustRead(t, path, "model.freeze="+freeze)
		if err := CheckFolder(e, folder, true); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("freeze: %s: CheckFolder = %v, want %s", freeze, err, want)
		}
		run, err := ready(e, config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Train(context.Background(), folder, ignore); err == nil ||
			!strings.HasPrefix(err.Error(), want) {
			t.Errorf("freeze: %s: Train = %v, want %s", freeze, err, want)
		}
		if err := CheckFolder(e, filepath.Join(folder, "next"), true); err != nil {
			t.Errorf("freeze: %s: a folder beside it: %v", freeze, err)
		}
	}
	if got := sample.Files(t, folder); !maps.Equal(got, before) {
		t.Error("the run was changed")
	}
}

func TestAForcedRunRemovesTheFilesOfTheOneBefore(t *testing.T) {
	path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, folder, "training.num_epochs=2")
	want := slices.Sorted(maps.Keys(sample.Files(t, folder)))

	// after a kill, with a task that the next run does not have
	for _, name := range []string{"best.new", "last.new", "last.old", "tasks/other"} {
		if err := os.CopyFS(filepath.Join(folder, name),
			os.DirFS(filepath.Join(folder, runfolder.BestDir))); err != nil {
			t.Fatal(err)
		}
	}
	trainSmall(t, path, folder, "training.num_epochs=2")
	if got := slices.Sorted(maps.Keys(sample.Files(t, folder))); !slices.Equal(got, want) {
		t.Errorf("files are %v, want %v", got, want)
	}
}

func TestTheBestStaysWhenTheLastIsWritten(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	run, _ := trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	want := sample.Files(t, filepath.Join(folder, runfolder.BestDir))
	for _, w := range run.Model.Params.All() {
		w.Data[0]++
	}
	if err := run.save(filepath.Join(folder, runfolder.LastDir)); err != nil {
		t.Fatal(err)
	}
	got, last := sample.Files(t, filepath.Join(folder, runfolder.BestDir)),
		sample.Files(t, filepath.Join(folder, runfolder.LastDir))
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("best/%s changed with last/", name)
		}
	}
	for _, name := range []string{runfolder.TensorsFile, filepath.Join(runfolder.EncoderDir, runfolder.TensorsFile)} {
		if last[name] == want[name] {
			t.Errorf("last/%s is the best's", name)
		}
	}
}

func TestAWeightThatIsNotFiniteIsRefused(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	run, _ := trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	for _, w := range checkpoint.OwnParams(run.Model) {
		w.Data[len(w.Data)-1] = float32(math.NaN())
	}
	if err := run.save(filepath.Join(folder, runfolder.BestDir)); err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(folder, runfolder.BestDir, runfolder.TensorsFile) +
		`: tensor "heads.team.team.score.bias" has NaN at index 1; want finite numbers`
	if err := checkpoint.ReadWeights(filepath.Join(folder, runfolder.BestDir), run.Model); err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("ReadWeights = %v, want %s in it", err, want)
	}
}
