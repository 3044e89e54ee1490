package experiments

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// prepared makes an experiment ready on a machine with so many KiB free.
func prepared(t *testing.T, path string, free int, sets ...string) *Run {
	t.Helper()
	e, err := Read(path, sets)
	if err != nil {
		t.Fatal(err)
	}
	run, err := Prepare(e, Train, Dev)
	if err != nil {
		t.Fatal(err)
	}
	run.machine = machine(map[string]string{"proc/meminfo": fmt.Sprintf("MemAvailable: %d kB\n", free)})
	return run
}

func nothing(any) error { return nil }

func TestABatchThatDoesNotFitIsAnErrorBeforeAnythingIsDone(t *testing.T) {
	path := smallExperiment(t, "")
	for _, test := range []struct {
		name string
		free int // KiB
		sets []string
		want string // "": it fits
	}{
		// The encoder has 1 layer of width 16 and 32 within. A batch takes 2·16+2 floats a token for the embeddings, 16 + 7·16+2·32+4
		// for the layer and, in training, 2·16 + 7·16+2·32 for gradients: 438 of 76 tokens, 230 of evaluation's 72.
		{"plenty", 1 << 20, nil, ""},
		{"activations", 150, nil, "with 76 tokens needs 292 KiB (weights 24.3 KiB, gradients 24.3 KiB, optimizer 48.5 KiB, activations 130 KiB, evaluation 64.7 KiB), " +
			"the machine has 174 KiB; lower training.batch_size, for which training.gradient_accumulation_steps can make up, or tokenizer.max_length"},
		{"the model", 10, nil, "the machine has 34.3 KiB; model.freeze leaves layers as they are, without gradients; or take a smaller model"},
		{"cached states", 150, []string{"model.freeze=all"}, ", cached states 16.5 KiB), the machine has 174 KiB; lower training.cache_memory"},
		{"cached states in a file", 150, []string{"model.freeze=all", "training.cache_memory=0"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "run")
			_, err := prepared(t, path, test.free, append(test.sets, "training.num_epochs=1")...).Train(context.Background(), folder, nothing)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("Train = %v, want none: it fits", err)
			case test.want != "" && (err == nil || !strings.HasPrefix(err.Error(), path+":13:47: a batch of 8 texts ") || !strings.HasSuffix(err.Error(), test.want)):
				t.Errorf("Train = %v, want an error at the batch size's place that ends with %s", err, test.want)
			case test.want != "" && isThere(folder):
				t.Error("the run folder was made")
			}
		})
	}
}

func TestABatchOfEvaluationThatDoesNotFitIsAnError(t *testing.T) {
	run := openSmall(t)
	if err := run.Read(Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	run.machine = machine(map[string]string{"proc/meminfo": "MemAvailable: 1 kB\n"})
	_, err := run.Evaluate(context.Background(), Dev, nil)
	if err == nil || !strings.HasPrefix(err.Error(), run.Experiment.Path+":") || !strings.Contains(err.Error(), ": a batch of 8 texts with ") || strings.Contains(err.Error(), "optimizer") {
		t.Errorf("Evaluate = %v, want an error at the batch size's place, without what training takes", err)
	}
	run.machine = machine(nil) // of another system
	if _, err := run.Evaluate(context.Background(), Dev, nil); err != nil {
		t.Errorf("Evaluate on a machine that tells nothing = %v", err)
	}
}

func TestTrainingKeepsWithinTheMachinesMemory(t *testing.T) {
	if debug.SetMemoryLimit(-1) != math.MaxInt64 {
		t.Skip("GOMEMLIMIT is set")
	}
	run := prepared(t, smallExperiment(t, ""), 1<<20, "training.num_epochs=1")
	_, err := run.Train(context.Background(), filepath.Join(t.TempDir(), "run"), func(any) error {
		if limit := debug.SetMemoryLimit(-1); limit < 900<<20 || limit > 5<<30 { // what the test itself takes counts too
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

func TestSizesAreWrittenWithThreeDigits(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 999: "999 B", 1000: "0.98 KiB", 1 << 10: "1.00 KiB", 1<<20 - 1: "1.00 MiB", 14 << 30: "14.0 GiB", 700 << 30: "700 GiB", 1<<63 - 1: "8.00 EiB",
	} {
		if got := sizeOf(bytes); got != want {
			t.Errorf("sizeOf(%d) = %s, want %s", bytes, got, want)
		}
	}
}
