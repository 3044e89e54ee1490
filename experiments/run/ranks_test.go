package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/collective/collectivetest"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/plugin"
)

// rankTraining is a training in several ranks of this process.
type rankTraining struct {
	groups []*collective.Group
	runs   []*Run
	folder string
	done   events.Done // of the first rank
}

// trainingRanks prepares a training of an experiment in ranks, the first of which writes the folder.
func trainingRanks(t *testing.T, path, folder string, ranks int, sets ...string) *rankTraining {
	t.Helper()
	return differentRanks(t, path, folder, slices.Repeat([][]string{sets}, ranks))
}

// differentRanks is trainingRanks of as many ranks as there are lists of what is set.
func differentRanks(t *testing.T, path, folder string, sets [][]string) *rankTraining {
	t.Helper()
	all := &rankTraining{folder: folder}
	for rank, transport := range collectivetest.Local(len(sets)) {
		group, err := collective.New(transport)
		if err != nil {
			t.Fatal(err)
		}
		r, err := ready(mustRead(t, path, sets[rank]...), config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		all.groups, all.runs = append(all.groups, group), append(all.runs, r)
	}
	return all
}

// train trains in all ranks, and returns their errors. observe is that of the first.
func (all *rankTraining) train(contexts []context.Context, observe func(event train.Event) error) []error {
	errs := make([]error, len(all.runs))
	var wait sync.WaitGroup
	for rank, r := range all.runs {
		wait.Go(func() {
			if errs[rank] = r.UseRanks(all.groups[rank], len(all.runs)); errs[rank] == nil {
				var done events.Done
				if done, errs[rank] = r.Train(contexts[rank], all.folder, observe); rank == 0 {
					all.done = done
				}
			}
		})
	}
	wait.Wait()
	return errs
}

// inRanks trains an experiment in as many ranks of this process as there are lists of what is set, the first of which
// writes the folder.
func inRanks(t *testing.T, path, folder string, sets [][]string) []error {
	t.Helper()
	contexts := slices.Repeat([]context.Context{t.Context()}, len(sets))
	return differentRanks(t, path, folder, sets).train(contexts, ignore)
}

func TestRanksWriteTheRunOfOneProcess(t *testing.T) {
	path := sample.Small(t, "")
	sets := []string{"training.num_epochs=2", "training.shards=4", "training.save_strategy=steps",
		"training.save_steps=3"}
	home := t.TempDir()
	for _, ranks := range []int{1, 2, 4} {
		folder := filepath.Join(home, fmt.Sprint(ranks))
		for rank, err := range inRanks(t, path, folder, slices.Repeat([][]string{sets}, ranks)) {
			if err != nil {
				t.Errorf("rank %d of %d: %v", rank, ranks, err)
			}
		}
	}
	want := sample.Files(t, filepath.Join(home, "1"))
	for _, ranks := range []string{"2", "4"} {
		got := sample.Files(t, filepath.Join(home, ranks))
		for name, text := range want {
			if strings.HasSuffix(name, ".safetensors") && got[name] != text {
				t.Errorf("%s of %s ranks is not that of one process", name, ranks)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%s ranks write %d files, one process %d", ranks, len(got), len(want))
		}
	}
}

// Teachers are trained in the same ranks, and what the first of them answers is sent to the others.
func TestRanksWithTeachersWriteTheRunOfOneProcess(t *testing.T) {
	path := taughtTasks(t, "  teachers: alone\n  anneal: true\n  shards: 4\n  num_epochs: 1\n")
	for _, ranks := range []int{1, 4} {
		for rank, err := range inRanks(t, path, fmt.Sprint(ranks), make([][]string, ranks)) {
			if err != nil {
				t.Errorf("rank %d of %d: %v", rank, ranks, err)
			}
		}
	}
	want, got := sample.Files(t, "1"), sample.Files(t, "4")
	for name, text := range want {
		model := strings.HasSuffix(name, ".safetensors") || strings.HasSuffix(name, ".answers")
		if model && got[name] != text {
			t.Errorf("%s of 4 ranks is not that of one process", name)
		}
	}
	if len(got) != len(want) {
		t.Errorf("4 ranks write %d files, one process %d", len(got), len(want))
	}
}

func TestRanksThatDifferAreFound(t *testing.T) {
	path := sample.Small(t, "")
	const want = "has another experiment than rank 0"
	sets := [][]string{nil, {"training.learning_rate=0.5"}}
	for rank, err := range inRanks(t, path, filepath.Join(t.TempDir(), "run"), sets) {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: %v, want %s", rank, err, want)
		}
	}
}

// Ranks whose files or models differ are found before the first step, though their experiments are the same.
func TestRanksOfOtherDataOrWeightsAreFound(t *testing.T) {
	dev := func(r *Run) []*corpus.Example { return r.Data.Groups[1].Examples[config.Dev] }
	for name, c := range map[string]struct {
		change func(*Run)
		want   string
	}{
		"a token": {func(r *Run) { dev(r)[0].Windows[0].IDs[0]++ }, `: dev examples of task "things"`},
		"fewer examples": {func(r *Run) {
			r.Data.Groups[1].Examples[config.Train] = r.Data.Groups[1].Examples[config.Train][8:]
		}, `: training examples of task "things"`},
		"a weight": {func(r *Run) { r.Model.Params.All()[0].Data[0]++ }, ": a checksum of all parameters: "},
	} {
		t.Run(name, func(t *testing.T) {
			path := sample.Small(t, "")
			t.Chdir(filepath.Dir(path))
			set := "tasks.things.data={path: mails.jsonl, split: {dev: 0.2}}" // a group of its own
			two := trainingRanks(t, path, filepath.Join(t.TempDir(), "run"), 2, set)
			c.change(two.runs[1])
			for rank, err := range two.train(slices.Repeat([]context.Context{t.Context()}, 2), ignore) {
				if text := fmt.Sprint(err); !strings.Contains(text, "rank 1 on ") || !strings.Contains(text, c.want) {
					t.Errorf("rank %d: %v, want %s of rank 1", rank, err, c.want)
				}
			}
			if two.done.Folder != two.folder {
				t.Errorf("training ended in folder %q, want %q", two.done.Folder, two.folder)
			}
		})
	}
}

// A signal that comes while the tasks of a base run are evaluated, or before, ends all ranks.
func TestASignalBeforeTheFirstStepEndsAllRanks(t *testing.T) {
	baseRun(t)
	path := growing(t, "{base_model: base, keep_tasks: all}", "training: {rehearse: 0}\n")
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	two := trainingRanks(t, path, "grown", 2)
	contexts := []context.Context{cancelled, t.Context()} // that of the rank that writes, and another
	for rank, err := range two.train(contexts, ignore) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("rank %d: %v, want %v", rank, err, context.Canceled)
		}
	}
}

// Tasks of a base run are evaluated by all ranks, where the first one has a new best model.
func TestRanksEvaluateTheTasksOfABaseRun(t *testing.T) {
	baseRun(t)
	for name, training := range map[string]string{"kept": "rehearse: 0", "rehearsed": "rehearse: 0.5"} {
		path := growing(t, "{base_model: base, keep_tasks: all}", "training: {"+training+", num_epochs: 4}\n")
		one, two := name+"-1", name+"-2"
		trainSmall(t, path, one, "training.shards=2")
		ranks := trainingRanks(t, path, two, 2, "training.shards=2")
		if err := errors.Join(ranks.train(slices.Repeat([]context.Context{t.Context()}, 2), ignore)...); err != nil {
			t.Fatal(err)
		}
		checkSameResult(t, name, result(t, two), result(t, one))
	}
}

// A signal that comes while the first rank records an evaluation, at which it saves no state, lets it save one of all
// ranks.
func TestASignalDuringAnEvaluationSavesTheStateOfAllRanks(t *testing.T) {
	path, home := sample.Small(t, ""), t.TempDir()
	sets := []string{"training.num_epochs=3", "training.shards=2", "training.save_strategy=no"}
	whole, folder := filepath.Join(home, "whole"), filepath.Join(home, "run")
	trainSmall(t, path, whole, sets...)

	// interrupted in two ranks
	signalled, signal := context.WithCancel(t.Context())
	two := trainingRanks(t, path, folder, 2, sets...)
	contexts := []context.Context{signalled, t.Context()}
	errs := two.train(contexts, func(event train.Event) error {
		if e, ok := event.(train.Evaluation); ok && e.Epoch == 2 {
			signal()
		}
		return nil
	})
	for rank, err := range errs {
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("rank %d: %v, want %v", rank, err, context.Canceled)
		}
	}

	// resumed in one
	if _, err := resumedRun(t, folder).Train(t.Context(), folder, ignore); err != nil {
		t.Fatal(err)
	}
	checkSameResult(t, "resumed", result(t, folder), result(t, whole))
}

// A rank beside the first keeps states in the folder of temporary files; where that fails the first one says so.
func TestTheFirstRankRecordsTheWarningsOfOthers(t *testing.T) {
	path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
	gone := filepath.Join(t.TempDir(), "gone")
	for _, variable := range []string{"TMPDIR", "TMP"} { // TMP on Windows
		t.Setenv(variable, gone)
	}
	two := trainingRanks(t, path, folder, 2, "model.freeze=all", "training.cache_memory=0", "training.num_epochs=1",
		"training.warmup_steps=100") // of which both warn
	var mutex sync.Mutex
	var warnings []string
	errs := two.train(slices.Repeat([]context.Context{t.Context()}, 2), func(event train.Event) error {
		mutex.Lock()
		defer mutex.Unlock()
		if w, ok := event.(train.Warning); ok {
			warnings = append(warnings, w.Text)
		}
		return nil
	})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	isOwn := func(w string) bool { return !strings.HasPrefix(w, "rank 1: ") }
	others := slices.DeleteFunc(slices.Clone(warnings), isOwn)
	if len(others) != 1 || !strings.Contains(others[0], gone) || len(warnings) < 2 {
		t.Errorf("warnings %q, want one of rank 1 about %s", warnings, gone)
	}
}

func TestARankNeedsTheMemoryOfItsShards(t *testing.T) {
	path := sample.Small(t, "")
	need := func(r *Run) memory.Estimate {
		n, err := r.trainingNeed(r.data())
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	whole := need(mustPrepare(t, path))
	four := trainingRanks(t, path, "run", 4)
	for rank, r := range four.runs {
		if err := r.UseRanks(four.groups[rank], 4); err != nil {
			t.Fatal(err)
		}
		n := need(r)
		if n.Gradients != whole.Gradients || n.Weights != whole.Weights {
			t.Errorf("rank %d: gradients of %d bytes, want %d", rank, n.Gradients, whole.Gradients)
		}
		if 2*n.Activations > whole.Activations || n.Optimizer >= whole.Optimizer || n.Messages == 0 ||
			n.Outside <= n.Messages {
			t.Errorf("rank %d: %+v, of a single process %+v", rank, n, whole)
		}
		if (n.Checkpoint > 0) != (rank == 0) {
			t.Errorf("rank %d: %d bytes for checkpoints", rank, n.Checkpoint)
		}
	}
}

func TestShardsOfASingleExample(t *testing.T) {
	path := sample.Small(t, "")
	t.Chdir(filepath.Dir(path))
	sample.Write(t, "pairs.jsonl", strings.Repeat(`{"text": "a bill", "text2": "a fee", "score": 1}`+"\n"+
		`{"text": "a bill", "text2": "a menu", "score": 0}`+"\n", 8))
	pairs := "tasks=[{name: alike, type: similarity, data: {path: pairs.jsonl, pair: text2, label: score, " +
		"split: {dev: 0.2}}}]"

	two := trainingRanks(t, path, "pairs", 2, pairs, "training.batch_size=2")
	const want = `training: batch_size is 2, in 2 shards: head "alike" of task "alike" learns by comparing the ` +
		"examples of a shard; want at least 4, or fewer training.shards"
	if err := two.runs[0].UseRanks(two.groups[0], 2); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("pairs: UseRanks = %v, want %s", err, want)
	}

	four := trainingRanks(t, path, "texts", 4, "training.batch_size=3")
	if err := four.runs[0].UseRanks(four.groups[0], 4); err != nil {
		t.Fatal(err)
	}
	const warning = "training: batch_size is 3, and each batch is cut into 4 shards, some of which are empty"
	if !strings.Contains(strings.Join(plugin.Lines(four.runs[0].Warnings), "\n"), warning) {
		t.Errorf("warnings %q, want %s", four.runs[0].Warnings, warning)
	}
}

func TestShardsThatRanksCannotDivide(t *testing.T) {
	one := []string{"training.shards=1"}
	for rank, err := range inRanks(t, sample.Small(t, ""), filepath.Join(t.TempDir(), "run"), [][]string{one, one}) {
		const want = "training: 1 shard cannot be divided among 2 processes"
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("rank %d: %v, want %s", rank, err, want)
		}
	}
}
