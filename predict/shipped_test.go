package predict

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/multitask"
)

// usesShared reports whether a shipped file requires corpora or models that do not ship with jenga.
func usesShared(t *testing.T, name string) bool {
	t.Helper()
	e, err := config.ReadTrained(name)
	if err != nil {
		t.Fatal(err)
	}
	needed := []config.File{e.Model.BaseModel, e.Tokenizer.Vectors}
	for _, task := range e.Tasks {
		needed = append(needed, task.Data.Path, task.Data.Train, task.Data.Dev, task.Data.Test)
	}
	return slices.ContainsFunc(needed, func(f config.File) bool {
		return f.Name != "" &&
			!strings.HasPrefix(f.Name, "claims/")
	})
}

func TestShippedExperimentsTrain(t *testing.T) {
	t.Chdir("../experiments")
	names, err := filepath.Glob("*.yaml")
	if err != nil || len(names) < 25 {
		t.Fatalf("shipped %v, %v; want 25 or more", names, err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			sets := []string{"training.num_epochs=1", "training.batch_size=8"}
			if usesShared(t, name) {
				dir := shared.Dir(t)
				t.Setenv("JENGA_DATA", filepath.Join(dir, "data"))
				t.Setenv("JENGA_MODELS", filepath.Join(dir, "models"))
				sets = append(sets, "training.save_strategy=no") // the state of a published encoder is a large file
			}
			// all of the file, its data and its parts, but few steps: 8 texts a task
			folder := filepath.Join(t.TempDir(), "run")
			e, err := config.Read(t.Context(), name, sets)
			if err != nil {
				t.Fatal(err)
			}
			if testing.Short() && name != "quickstart.yaml" && name != "snips.yaml" {
				return // reading all of its data is slow
			}
			run, err := ready(e, config.Train, config.Dev, config.Test)
			if err != nil {
				t.Fatal(err)
			}
			for _, texts := range run.Data.Groups {
				for split, examples := range texts.Examples {
					if len(examples) < 200 {
						t.Errorf("%d examples of %s", len(examples), split)
					}
					texts.Examples[split] = examples[:8]
				}
			}
			if testing.Short() && name != "quickstart.yaml" {
				return // training with published encoders is slow
			}
			if _, err := run.Train(t.Context(), folder, ignore); err != nil {
				t.Fatal(err)
			}
			checkOpened(t, folder)
		})
	}
}

// checkOpened evaluates the run in a folder on a few examples of dev, and predicts for one text, or for a pair.
func checkOpened(t *testing.T, folder string) {
	t.Helper()
	run, err := OpenRun(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Read(t.Context(), config.Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	for _, texts := range run.Data.Groups {
		texts.Examples[config.Dev] = texts.Examples[config.Dev][:8]
	}
	metrics, err := run.Evaluate(t.Context(), config.Dev, nil)
	if err != nil || len(metrics) != len(run.Data.Groups) {
		t.Fatalf("metrics of %d groups, want %d: %v", len(metrics), len(run.Data.Groups), err)
	}
	example := &corpus.Example{Text: "Who wrote it?", Pair: "Ada wrote it.", Paired: true}
	single := func(g multitask.Group) bool {
		return !slices.ContainsFunc(g.Tasks, func(task multitask.Task) bool { return !task.Single })
	}
	if !slices.ContainsFunc(run.Model.Groups, func(g multitask.Group) bool { return !single(g) }) {
		example = &corpus.Example{Text: "Who wrote it?"}
	}
	predictions, err := run.answer(t, Form{}, []*corpus.Example{example})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(predictions[0]); err != nil ||
		len(predictions[0].Tasks) != len(run.Data.Experiment.Tasks) {
		t.Errorf("predictions %+v, %v", predictions, err)
	}
}
