package run

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
)

// doneOf returns the last line of a run's metrics.
func doneOf(t *testing.T, folder string) (last struct {
	Event  string
	Frozen *struct {
		Values        int
		Before, After string
	}
}) {
	t.Helper()
	lines := bytes.Split(bytes.TrimSpace([]byte(sample.Files(t, folder)[runfolder.MetricsFile])), []byte("\n"))
	text := bytes.ReplaceAll(lines[len(lines)-1], []byte("crc32c_"), nil)
	if err := json.Unmarshal(text, &last); err != nil {
		t.Fatal(err)
	}
	return last
}

func TestTheRecordOfARunProvesWhatIsFrozen(t *testing.T) {
	for _, freeze := range []string{"none", "embeddings", "all"} {
		folder := filepath.Join(t.TempDir(), "run")
		trainSmall(t, sample.Small(t, ""), folder, "training.max_steps=2", "model.freeze="+freeze)
		last := doneOf(t, folder)
		f := last.Frozen
		if last.Event != "done" || (f != nil) != (freeze != "none") ||
			f != nil && (f.Values == 0 || f.Before != f.After || len(f.After) != 8) {
			t.Errorf("freeze %s: the last line is %+v, %+v", freeze, last, f)
		}
	}
}

// Every optimizer and schedule trains a run, whose file trains the same run again.
func TestUpdatesOfARun(t *testing.T) {
	weights := map[string]string{}
	for _, sets := range [][]string{
		{"training.ema=0"},
		{"training.ema=0.5"},
		{"training.optimizer=sgd", "training.lr_scheduler=cosine"},
		{"training.optimizer=adafactor", "training.lr_scheduler.type=polynomial", "training.lr_scheduler.power=2"},
		{"training.optimizer.type=adafactor", "training.optimizer.relative_step=true", "training.learning_rate="},
		{"training.layer_decay=0.5", "training.head_learning_rate=0.01", "training.lr_scheduler=constant"},
		{"model.freeze={unfreeze: {every: 0.3}}"},
	} {
		folder := filepath.Join(t.TempDir(), "run")
		trainSmall(t, sample.Small(t, ""), folder, append(sets, "training.max_steps=4")...)
		tensors := sample.Files(t, filepath.Join(folder, "best"))["model.safetensors"]
		for other, have := range weights {
			if have == tensors {
				t.Errorf("%q has the weights of %s", sets, other)
			}
		}
		weights[sets[0]] = tensors

		again := filepath.Join(t.TempDir(), "again")
		trainSmall(t, filepath.Join(folder, runfolder.ExperimentFile), again)
		if sample.Files(t, filepath.Join(again, "best"))["model.safetensors"] != tensors {
			t.Errorf("%q: the file of the run trains other weights", sets)
		}
	}
}

// The memory of a run counts the state of its optimizer, and the running means of the weights.
func TestMemoryOfUpdates(t *testing.T) {
	needOf := func(sets ...string) memory.Estimate {
		run := prepared(t, sample.Small(t, ""), 1<<20, sets...)
		n, err := run.trainingNeed([]multitask.Data{{
			Train: run.Data.Groups[0].Examples[config.Train], Dev: run.Data.Groups[0].Examples[config.Dev],
		}})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		set     string
		state   func(weights int64) (least, most int64)
		average bool
	}{
		{"training.optimizer=adamw", func(w int64) (int64, int64) { return 2 * w, 2 * w }, false},
		{"training.optimizer=sgd", func(w int64) (int64, int64) { return w, w }, false},
		{"training.optimizer.momentum=0", func(w int64) (int64, int64) { return 0, 0 }, false},
		{"training.optimizer=adafactor", func(w int64) (int64, int64) { return 1, w / 5 }, false},
		{"training.ema=0.99", func(w int64) (int64, int64) { return 2 * w, 2 * w }, true},
	} {
		sets := []string{c.set}
		if c.set == "training.optimizer.momentum=0" {
			sets = []string{"training.optimizer=sgd", c.set}
		}
		n := needOf(sets...)
		least, most := c.state(n.Gradients)
		if n.Optimizer < least || n.Optimizer > most {
			t.Errorf("%s: the optimizer takes %d bytes of %d bytes of weights, want %d to %d", c.set, n.Optimizer,
				n.Gradients, least, most)
		}
		if (n.Average == n.Gradients) != c.average || !c.average && n.Average != 0 {
			t.Errorf("%s: the means take %d bytes of %d bytes of weights", c.set, n.Average, n.Gradients)
		}
		model := memory.Estimate{Weights: n.Weights, Gradients: n.Gradients, Optimizer: n.Optimizer, Average: n.Average}
		if sum := n.Weights + n.Gradients + n.Optimizer + n.Average; model.Total() != sum {
			t.Errorf("%s: the model takes %d bytes, its parts %d", c.set, model.Total(), sum)
		}
	}
}
