package run

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// training returns a run's training, once.
func training(t *testing.T, r *Run) *train.Training {
	t.Helper()
	made, err := train.New(r.Model, r.data(), r.planIn(t.TempDir()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

// step runs the next step, after an evaluation if one is due.
func step(t *testing.T, of *train.Training) train.Step {
	t.Helper()
	if of.Due() {
		if _, err := of.Evaluate(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	s, err := of.Step(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// begun trains a run for some steps, saves it into a folder, and returns its training.
func begun(t *testing.T, folder string, steps int, sets ...string) (*Run, *train.Training) {
	t.Helper()
	r, err := ready(mustRead(t, sample.Small(t, ""), sets...), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	metrics, err := r.replaceFolder(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := metrics.Close(); err != nil {
		t.Fatal(err)
	}
	made := training(t, r)
	for range steps {
		step(t, made)
	}
	if err := r.save(filepath.Join(folder, runfolder.LastDir)); err != nil {
		t.Fatal(err)
	}
	return r, made
}

func checkSameParams(t *testing.T, got, want *multitask.Model) {
	t.Helper()
	params := got.Params.All()
	if len(params) != len(want.Params.All()) {
		t.Fatalf("%d parameters, want %d", len(params), len(want.Params.All()))
	}
	for i, w := range want.Params.All() {
		same := slices.EqualFunc(params[i].Data, w.Data, func(a, b float32) bool {
			return math.Float32bits(a) == math.Float32bits(b)
		})
		if params[i].Name != w.Name || params[i].Frozen != w.Frozen || !same {
			t.Fatalf("parameter %s differs from %s of the uninterrupted run", params[i].Name, w.Name)
		}
	}
}

func TestARunResumesFromItsFolderAndASnapshot(t *testing.T) {
	base := filepath.Join(t.TempDir(), "base")
	trainSmall(t, sample.Small(t, ""), base, "training.num_epochs=1")
	of := "model.base_model=" + filepath.Join(base, runfolder.BestDir, runfolder.EncoderDir)
	vectors := filepath.Join(t.TempDir(), "vectors.txt")
	sample.Write(t, vectors, "card"+strings.Repeat(" 0.5", 16)+"\nmenu"+strings.Repeat(" -0.5", 16)+"\n")
	for name, sets := range map[string][]string{
		"from scratch":      nil,
		"frozen embeddings": {"model.freeze=embeddings"},
		"whole words":       {"tokenizer.type=words"},
		"frozen vectors":    {"tokenizer.type=words", "tokenizer.vectors=" + vectors, "model.freeze=embeddings"},
		"LoRA":              {"model.encoder=null", "tokenizer.train=null", of, "model.lora.r=2"},
		"LoRA by task": {"model.encoder=null", "tokenizer.train=null", of,
			"model.lora={per_task: true, r: 2}"},
		"frozen":              {"model.encoder=null", "tokenizer.train=null", of, "model.freeze=all"},
		"a learned weighting": {"training.weighting=uncertainty"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "run")
			r, whole := begun(t, folder, 5, sets...)
			snapshot, err := whole.Snapshot(nil)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "snapshot")
			if err := snapshot.Write(path); err != nil {
				t.Fatal(err)
			}

			// as another process, with only the run folder and the snapshot
			again, err := resumedFrom(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			resumed := training(t, again)
			if snapshot, err = snapshots.Read(path); err != nil {
				t.Fatal(err)
			}
			if differ := snapshots.Differences(snapshot.Settings, resumed.Settings()); differ != nil {
				t.Fatalf("settings differ: %v", differ)
			}
			if err := resumed.Restore(snapshot); err != nil {
				t.Fatal(err)
			}
			checkSameParams(t, again.Model, r.Model)

			for range 4 {
				want, got := step(t, whole), step(t, resumed)
				if got.Number != want.Number || got.Loss != want.Loss || got.GradientNorm != want.GradientNorm {
					t.Fatalf("step %d has loss %v, want that of step %d, %v", got.Number, got.Loss, want.Number,
						want.Loss)
				}
			}
			checkSameParams(t, again.Model, r.Model)
		})
	}
}

// resumedFrom prepares the run of a folder without a snapshot.
func resumedFrom(ctx context.Context, folder string) (*Run, error) {
	file, saved, err := runfolder.Find(folder)
	if err != nil {
		return nil, err
	}
	about, err := checkpoint.Read(ctx, saved, filepath.Dir(file))
	if err != nil {
		return nil, err
	}
	e, err := config.Read(ctx, file, nil)
	if err != nil {
		return nil, err
	}
	return rebuild(ctx, e, about, dataset.Options{})
}

func TestResumeRejectsOtherLabels(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	r, _ := begun(t, folder, 1)
	data := r.experiment().Tasks[0].Data.Path.Name
	text, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	sample.Write(t, data, strings.ReplaceAll(string(text), `"billing"`, `"sales"`))
	const want = `task "team": head "team": the data has changed since the checkpoint: unexpected label "sales" in ` +
		`the training data; the run has billing, support, and a training that goes on cannot add labels`
	if _, err := resumedFrom(t.Context(), folder); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Resume = %v, want %s", err, want)
	}
}

func TestAResumedRunRejectsOtherData(t *testing.T) {
	for name, test := range map[string]struct{ old, edited string }{
		"another text": {`"invoice"`, `"fee"`},
		"another label": {`"team": "billing", "tags": ["O", "B-thing", "O"]`,
			`"team": "support", "tags": ["O", "B-thing", "O"]`},
		"a line less": {`{"words": ["the", "invoice", "came_late"], "team": "billing", "tags": ["O", "B-thing", "O"]}` +
			"\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "run")
			r, whole := begun(t, folder, 1)
			snapshot, err := whole.Snapshot(nil)
			if err != nil {
				t.Fatal(err)
			}
			data := r.experiment().Tasks[0].Data.Path.Name
			text, err := os.ReadFile(data)
			if err != nil {
				t.Fatal(err)
			}
			edited := strings.ReplaceAll(string(text), test.old, test.edited)
			if edited == string(text) {
				t.Fatalf("the data has no %s", test.old)
			}
			sample.Write(t, data, edited)

			resumed, err := resumedFrom(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			differ := snapshots.Differences(snapshot.Settings, training(t, resumed).Settings())
			if len(differ) == 0 || differ[0].Key != `training examples of task "team", as number:checksum` ||
				!strings.HasPrefix(differ[0].Was, "24:") {
				t.Errorf("differences %v, want the training examples first", differ)
			}
		})
	}
}
