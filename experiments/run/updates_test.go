package run

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/internal/sample"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
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
