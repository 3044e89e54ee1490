package run

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// prepared prepares an experiment for training on a machine with free KiB of memory.
func prepared(t *testing.T, path string, free int, sets ...string) *Run {
	t.Helper()
	run, err := ready(mustRead(t, path, sets...), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	run.machine = memory.Machine{Files: fstest.MapFS{
		"proc/meminfo": &fstest.MapFile{Data: fmt.Appendf(nil, "MemAvailable: %d kB\n", free)},
	}}
	return run
}

func TestABatchThatDoesNotFitIsAnErrorWithTheEstimate(t *testing.T) {
	const mib = 1 << 20
	run := prepared(t, sample.Small(t, ""), 320<<10) // of which a sixteenth is reserved
	n := memory.Estimate{
		Batch:   multitask.Size{Texts: 8, Tokens: 76},
		Weights: 100 * mib, Gradients: 80 * mib, Optimizer: 160 * mib, Activations: 50 * mib, Recomputed: 50 * mib,
		Evaluation: 10 * mib,
	}
	if err := run.machine.Fits(n, run.experiment().Place("training.batch_size")); err != nil {
		t.Errorf("fits = %v; the weights are already allocated, and the rest takes 300 MiB", err)
	}
	for _, test := range []struct {
		name   string
		change func(n *memory.Estimate)
		want   string
	}{
		{"activations", func(n *memory.Estimate) { n.Activations += mib; n.Recomputed += mib },
			"needs 401 MiB (weights 100 MiB, gradients 80.0 MiB, optimizer 160 MiB, activations 51.0 MiB, evaluation " +
				"10.0 MiB), " +
				"the machine has 400 MiB; lower training.batch_size, for which " +
				"training.gradient_accumulation_steps can " +
				"make up, or tokenizer.max_length"},
		{"activations that need not be kept", func(n *memory.Estimate) { n.Activations += 10 * mib },
			"needs 410 MiB (weights 100 MiB, gradients 80.0 MiB, optimizer 160 MiB, activations 60.0 MiB, " +
				"evaluation 10.0 MiB), the machine has 400 MiB; lower training.batch_size, for which " +
				"training.gradient_accumulation_steps can make up, or tokenizer.max_length, " +
				"or set training.recompute: true, which takes 400 MiB"},
		{"cached states", func(n *memory.Estimate) { n.States = 2048 * mib },
			"needs 2.39 GiB (weights 100 MiB, gradients 80.0 MiB, optimizer 160 MiB, activations 50.0 MiB, " +
				"evaluation 10.0 MiB, " +
				"cached states 2.00 GiB), the machine has 400 MiB; lower training.cache_memory"},
		{"evaluation alone", func(n *memory.Estimate) {
			*n = memory.Estimate{Batch: n.Batch, Weights: 100 * mib,
				Activations: 301 * mib}
		}, "needs 401 MiB (weights 100 MiB, activations 301 MiB), " +
			"the machine has 400 MiB; lower training.batch_size or tokenizer.max_length"},
		{"the model", func(n *memory.Estimate) { n.Optimizer = 221 * mib },
			"needs 461 MiB (weights 100 MiB, gradients 80.0 MiB, optimizer 221 MiB, activations 50.0 MiB, evaluation " +
				"10.0 MiB), " +
				"the machine has 400 MiB; model.freeze leaves layers as they are, without gradients; or take a smaller " +
				"model"},
	} {
		changed := n
		test.change(&changed)
		want := run.Data.Experiment.Path + ":13:47: a batch of 8 texts with 76 tokens " + test.want
		if err := run.machine.Fits(changed, run.experiment().Place("training.batch_size")); err == nil ||
			err.Error() != want {
			t.Errorf("%s: fits =\n%v\nwant\n%s", test.name, err, want)
		}
	}
}

func TestAModelThatDoesNotFitIsAnErrorWithoutTheActivations(t *testing.T) {
	run := prepared(t, sample.Small(t, ""), 320<<10)
	const mib = 1 << 20
	err := run.machine.Fits(memory.Estimate{Weights: 100 * mib, Gradients: 100 * mib, Optimizer: 201 * mib},
		run.experiment().Place("training.batch_size"))
	want := run.Data.Experiment.Path + ":13:47: the model needs 401 MiB (weights 100 MiB, gradients 100 MiB, " +
		"optimizer 201 MiB), the machine has 400 MiB; " +
		"model.freeze leaves layers as they are, without gradients; or take a smaller model"
	if err == nil || err.Error() != want {
		t.Errorf("fits =\n%v\nwant\n%s", err, want)
	}
}

func TestTrainDoesNotStartIfABatchDoesNotFit(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	_, err := prepared(t, sample.Small(t, ""), 1).Train(context.Background(), folder, ignore)
	if err == nil || !strings.Contains(err.Error(), ":13:47: a batch of 8 texts with ") {
		t.Errorf("Train with a KiB = %v, want an error at the batch size's place", err)
	}
	if runfolder.Exists(folder) {
		t.Error("the run folder was made")
	}
}

func TestTrainingNeed(t *testing.T) {
	for _, test := range []struct {
		sets   []string
		states bool // of a frozen encoder are cached in memory
	}{
		{nil, false},
		{[]string{"model.freeze=all"}, true},
		{[]string{"model.freeze=all", "training.cache_memory=0"}, false},
	} {
		run := prepared(t, sample.Small(t, ""), 1<<20, test.sets...)
		data := []multitask.Data{{Train: run.Data.Groups[0].Examples[config.Train],
			Dev: run.Data.Groups[0].Examples[config.Dev]}}
		n, err := run.trainingNeed(data)
		if err != nil {
			t.Fatal(err)
		}
		var weights, learn, tokens int64
		for _, w := range run.Model.Params.All() {
			weights += int64(len(w.Data))
			if !w.Frozen {
				learn += int64(len(w.Data))
			}
		}
		for _, e := range append(slices.Clone(data[0].Train), data[0].Dev...) {
			tokens += int64(e.Tokens())
		}
		if n.Weights != 4*weights || n.Gradients != 4*learn || n.Optimizer != 8*learn {
			t.Errorf("%q: %+v, want those of %d parameters, of which %d are trained", test.sets, n, weights, learn)
		}
		if want := 4 * 16 * tokens; test.states != (n.States > 0) || test.states && n.States != want {
			t.Errorf("%q: cached states take %d bytes; those of %d tokens are %d", test.sets, n.States, tokens, want)
		}
		dev := multitask.EvaluationSizes(data[0].Dev, run.plan.BatchSize, run.plan.BatchTokens)
		_, evaluation := run.Model.Largest(dev, encoders.Workload{})
		if want := multitask.Reserve(evaluation); n.Evaluation != want {
			t.Errorf("%q: the memory.Estimate of evaluation is %d bytes, want %d", test.sets, n.Evaluation, want)
		}
		if n.Batch.Texts != 8 || n.Activations <= 0 || n.Evaluation <= 0 || n.Recomputed > n.Activations {
			t.Errorf("%q: %+v, want a batch of 8 texts and its memory", test.sets, n)
		}
	}
}

func TestCopiesForACheckpointAreCounted(t *testing.T) {
	for _, test := range []struct {
		set    string
		copies int64 // of the weights, all of which learn: the model, and values and moments of the snapshot
		own    int64 // of the weighting's parameters
	}{
		{"training.save_strategy=epoch", 1 + 3, 0},
		{"training.ema=0.9", 1 + 4, 0},
		{"training.save_strategy=no", 1, 0},
		{"training.weighting=uncertainty", 1 + 3, 3},
		{"training.weighting=gradnorm", 1 + 3, 3},
	} {
		r := prepared(t, sample.Small(t, ""), 1<<20, test.set)
		need, err := r.trainingNeed(r.data())
		want := test.copies * need.Weights
		if l := r.plan.Weighting.Learned; l != nil {
			for _, w := range l.Params {
				want += test.own * 4 * int64(len(w.Data))
			}
		}
		if err != nil || need.Checkpoint != want || test.own > 0 == (want == test.copies*need.Weights) {
			t.Errorf("with %s a checkpoint needs %d bytes, %v; want %d", test.set, need.Checkpoint, err, want)
		}
	}
}

func TestTrainingKeepsWithinTheMachinesMemory(t *testing.T) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		t.Skip("GOMEMLIMIT is set")
	}
	run := prepared(t, sample.Small(t, ""), 1<<20, "training.num_epochs=1")
	_, err := run.Train(context.Background(), filepath.Join(t.TempDir(), "run"), func(train.Event) error {
		// the memory of the test itself counts too
		if limit := debug.SetMemoryLimit(-1); limit < 900<<20 || limit > 5<<30 {
			t.Errorf("the limit is %d bytes on a machine with a GiB free", limit)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		t.Errorf("the limit is %d bytes after training", limit)
	}
}

func TestGradientsOfShardsAreCounted(t *testing.T) {
	gradients := func(sets ...string) int64 {
		r := prepared(t, sample.Small(t, ""), 1<<20, sets...)
		need, err := r.trainingNeed(r.data())
		if err != nil {
			t.Fatal(err)
		}
		return need.Gradients
	}
	one := gradients()
	for shards, want := range map[int]int64{1: 1, 2: 2, 8: 4} { // the shard's own, and a level each
		if got := gradients(fmt.Sprintf("training.shards=%d", shards)); got != want*one {
			t.Errorf("%d shards need %d bytes of gradients, want %d times %d", shards, got, want, one)
		}
	}
}
