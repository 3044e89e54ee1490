package run

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// TestAChangeThatAStateDoesNotFitIsRefusedByItsKey changes keys of an experiment that may differ, but that the state of
// a checkpoint does not fit, and others that it does.
func TestAChangeThatAStateDoesNotFitIsRefusedByItsKey(t *testing.T) {
	whole := interruptedRun(t, 6, "training.num_epochs=4")
	base := "undo the change, or train a new run from its weights, with model.base_model: "
	for set, want := range map[string][]string{
		"training.optimizer=sgd": {
			"  training.optimizer.type: was adamw, is sgd\n", "its state does not fit: snapshot: model: parameter ",
			base},
		"training.num_epochs=1": {
			"  training.num_epochs: was 4, is 1\n", "its state does not fit: snapshot: 5 batches are read, ",
			"the training has 3\n", base},
		"training.max_steps=3": {
			"  training.max_steps: was 0, is 3\n", "its state does not fit: ", "step 5 of 3\n", base},
		"model.freeze=all":       {"  model.freeze: was none, is all\n", `unexpected parameter "encoder.`, base},
		"model.encoder.layers=2": {"  model.encoder.layers: was 1, is 2\n", `want "encoder.`, "or train a new run"},
		"tasks.team.heads.team.type=mlp": {
			"  tasks.team.heads.team.type: was linear, is mlp\n", `"heads.team.team.`, base},
		"tasks.team.heads.team.class_weights=balanced": {
			"  tasks.team.heads.team.class_weights: was none, is balanced\n", "its state does not fit: ", base},
		"training.weighting=uncertainty": nil,
		"training.weighting=dwa":         nil,
		"training.sampling=temperature":  nil,
		"training.ema=0.9":               nil,
		"training.batch_size=4":          nil,
		"training.batch_size=24":         nil,
		"training.num_epochs=3":          nil,
		"model.dropout=0.2":              nil,
	} {
		t.Run(set, func(t *testing.T) {
			folder := filepath.Join(filepath.Dir(whole), strings.NewReplacer("=", "", ".", "").Replace(set))
			if err := os.CopyFS(folder, os.DirFS(whole)); err != nil {
				t.Fatal(err)
			}
			before := sample.Files(t, folder)
			found, err := resume.Find(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Resume(t.Context(), mustRead(t, found.File, set), found.Point, nil, []string{"experiment"})
			if err != nil {
				t.Fatal(err)
			}
			restored := false
			r.Restored = func(report.State, string) { restored = true }
			_, err = r.Train(context.Background(), folder, ignore)
			if (want == nil) != restored || (want == nil) != (err == nil) {
				t.Fatalf("Train = %v, restored %v", err, restored)
			}
			for _, part := range want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("Train = %v, want %q", err, part)
				}
			}
			if want != nil && !maps.Equal(sample.Files(t, folder), before) {
				t.Error("the run folder has changed")
			}
		})
	}
}

// TestChangedDataThatChangesTheStepsIsData removes half of the training data.
func TestChangedDataThatChangesTheStepsIsData(t *testing.T) {
	path, folder := sample.Small(t, ""), filepath.Join(t.TempDir(), "run")
	interruptIn(t, folder, path, 2, "training.num_epochs=4")
	data := filepath.Join(filepath.Dir(path), "mails.jsonl")
	text, err := os.ReadFile(data)
	if err != nil {
		t.Fatal(err)
	}
	sample.Write(t, data, string(text[:strings.LastIndexByte(string(text[:len(text)/2]), '\n')+1]))
	_, err = resumedRun(t, folder).Train(context.Background(), folder, ignore)
	if err == nil || !strings.Contains(err.Error(), "  data: steps: was 12, is ") ||
		!strings.HasSuffix(err.Error(), " argument allow-changes data") {
		t.Errorf("Train = %v", err)
	}
	if _, err := resumedRun(t, folder, "data").Train(context.Background(), folder, ignore); err != nil {
		t.Error(err)
	}
}

// TestATrainingGoesOnWithoutMeansOrAWeighting drops what the state has and the training has not.
func TestATrainingGoesOnWithoutMeansOrAWeighting(t *testing.T) {
	for was, now := range map[string]string{
		"training.ema=0.9": "training.ema=0", "training.weighting=uncertainty": "training.weighting=fixed",
		"training.weighting=famo": "training.weighting=dwa",
	} {
		folder := interruptedRun(t, 6, "training.num_epochs=4", was)
		found, err := resume.Find(t.Context(), folder)
		if err != nil {
			t.Fatal(err)
		}
		r, err := Resume(t.Context(), mustRead(t, found.File, now), found.Point, nil, []string{"experiment"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Train(context.Background(), folder, ignore); err != nil {
			t.Errorf("%s after %s: %v", now, was, err)
		}
	}
}

// TestAnotherNumberOfBatchesGoesOnToTheSameEpoch changes what makes the batches of an epoch or a step, of two groups of
// tasks, more or fewer.
func TestAnotherNumberOfBatchesGoesOnToTheSameEpoch(t *testing.T) {
	baseRun(t)
	sample.Write(t, "two.yaml", `model: {encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}}
tokenizer: {max_length: 32, train: {vocab_size: 200}}
tasks:
  - {name: tone, type: classification, data: {path: tones.jsonl}}
  - {name: topic, type: classification, data: {path: teams.jsonl, label: team}}
training: {num_epochs: 4, batch_size: 8}
`)
	for _, c := range []struct{ was, now string }{
		{"training.weighting=famo", "training.weighting=fixed"},
		{"training.weighting=fixed", "training.weighting=famo"},
		{"training.gradient_accumulation_steps=2", "training.gradient_accumulation_steps=1"},
		{"training.sampling={type: proportional, groups: 1}", "training.sampling={type: proportional, groups: all}"},
		{"training.batch_size=8", "training.batch_size=3"},
		{"training.batch_size=4", "training.batch_size=16"},
	} {
		t.Run(c.was+", then "+c.now, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "run")
			interruptIn(t, folder, "two.yaml", 3, c.was)
			found, err := resume.Find(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Resume(t.Context(), mustRead(t, found.File, c.now), found.Point, nil, []string{"experiment"})
			if err != nil {
				t.Fatal(err)
			}
			epoch := 0.0
			_, err = r.Train(context.Background(), folder, func(event train.Event) error {
				if step, ok := event.(train.Step); ok && step.Epoch >= epoch && step.Number <= step.Of {
					epoch = step.Epoch
				} else if ok {
					t.Errorf("step %d of %d in epoch %v after %v", step.Number, step.Of, step.Epoch, epoch)
				}
				return nil
			})
			if err != nil || epoch != 4 {
				t.Errorf("it ends after %v epochs, %v; want 4", epoch, err)
			}
		})
	}
}

// TestOtherTasksAreRefusedByTheirKeys removes, swaps and no longer rehearses tasks.
func TestOtherTasksAreRefusedByTheirKeys(t *testing.T) {
	baseRun(t)
	const tone, topic = "  - {name: tone, type: classification, data: {path: tones.jsonl}}\n",
		"  - {name: topic, type: classification, data: {path: teams.jsonl, label: team}}\n"
	scratch := func(tasks string) string {
		return "model: {encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}}\n" +
			"tokenizer: {max_length: 32, train: {vocab_size: 200}}\ntasks:\n" + tasks +
			"training: {num_epochs: 4, batch_size: 8}\n"
	}
	grown := func(rehearse string) string {
		return "model: {base_model: base, keep_tasks: all}\ntasks:\n" + tone +
			"training: {num_epochs: 4, batch_size: 8, rehearse: " + rehearse + "}\n"
	}
	for name, c := range map[string]struct{ was, now, want string }{
		"removed": {scratch(tone + topic), scratch(tone),
			"  tasks: was tone, topic, is tone\nits state does not fit: "},
		"in another order": {scratch(tone + topic), scratch(topic + tone),
			"  tasks: was tone, topic, is topic, tone\nits state does not fit: "},
		"not rehearsed": {grown("0.5"), grown("0"), "  training.rehearse: was 0.5, is 0.0\nits state does not fit: "},
	} {
		t.Run(name, func(t *testing.T) {
			folder := filepath.Join(t.TempDir(), "run")
			sample.Write(t, "was.yaml", c.was)
			interruptIn(t, folder, "was.yaml", 6)
			before := sample.Files(t, folder)
			sample.Write(t, "was.yaml", c.now)
			found, err := resume.Find(t.Context(), folder)
			if err != nil {
				t.Fatal(err)
			}
			r, err := Resume(t.Context(), mustRead(t, "was.yaml"), found.Point, nil, []string{"experiment"})
			if err != nil {
				t.Fatal(err)
			}
			_, err = r.Train(context.Background(), folder, ignore)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("Train = %v, want %s", err, c.want)
			}
			if lines := strings.Count(err.Error(), "\n"); lines != 3 {
				t.Errorf("Train = %v, want one line of what differs", err)
			}
			if !maps.Equal(sample.Files(t, folder), before) {
				t.Error("the run folder has changed")
			}
		})
	}
}
