package experiments

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/tasks"
)

// shipped lists the shipped experiment files.
func shipped(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(Shipped, "*.yaml")
	if err != nil || len(names) < 25 {
		t.Fatalf("shipped %v, %v; want 25 or more", names, err)
	}
	return names
}

// usesShared tells whether a shipped file needs corpora or models that do not come with jenga.
func usesShared(t *testing.T, name string) bool {
	t.Helper()
	e, err := read(name, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	needed := []File{e.Model.BaseModel, e.Tokenizer.Vectors}
	for _, task := range e.Tasks {
		needed = append(needed, task.Data.Path, task.Data.Train, task.Data.Dev, task.Data.Test)
	}
	return slices.ContainsFunc(needed, func(f File) bool { return f.Name != "" && !strings.HasPrefix(f.Name, "claims/") })
}

func TestShippedExperimentsTrain(t *testing.T) {
	for _, name := range shipped(t) {
		t.Run(name, func(t *testing.T) {
			if usesShared(t, name) {
				dir := shared.Dir(t)
				t.Setenv("JENGA_DATA", filepath.Join(dir, "data"))
				t.Setenv("JENGA_MODELS", filepath.Join(dir, "models"))
			}
			// all of the file, its data and its parts, but few steps: 8 texts a task
			folder := filepath.Join(t.TempDir(), "run")
			e, err := Read(name, []string{"training.num_epochs=1", "training.batch_size=8"})
			if err != nil {
				t.Fatal(err)
			}
			run, err := Prepare(e, Train, Dev, Test)
			if err != nil {
				t.Fatal(err)
			}
			for _, texts := range run.Texts {
				for split, examples := range texts.Examples {
					if len(examples) < 200 {
						t.Errorf("%d examples of %s", len(examples), split)
					}
					texts.Examples[split] = examples[:8]
				}
			}
			if testing.Short() && name != "quickstart.yaml" {
				return // a real encoder
			}
			if _, err := run.Train(t.Context(), folder, func(any) error { return nil }); err != nil {
				t.Fatal(err)
			}
			checkOpened(t, folder)
		})
	}
}

func TestEveryPartStandsInAShippedExperiment(t *testing.T) {
	used := map[string]bool{}
	for _, name := range shipped(t) {
		e, err := read(name, nil, false)
		if err != nil {
			t.Fatal(err)
		}
		used["encoder "+e.Model.Encoder.Type], used["fusion "+e.Model.Fusion.Type] = true, true
		used["weighting "+e.Training.Weighting.Type] = true
		used["tokenizer "+e.Tokenizer.Type] = true // of a base model none
		for _, task := range e.Tasks {
			used["task "+task.Part.Type] = true
			for _, head := range task.Heads {
				used["head "+head.Part.Type] = true
			}
		}
	}
	for kind, names := range map[string][]string{
		"encoder":   encoders.Registry().Names(),
		"tokenizer": {wordPieces, wholeWords},
		"fusion":    fusion.Registry().Names(),
		"weighting": multitask.Weightings().Names(),
		"head":      heads.Registry().Names(),
		"task":      tasks.Registry().Names(),
	} {
		for _, name := range names {
			if name != "hugot" && !used[kind+" "+name] { // hugot needs a model that no other encoder reads
				t.Errorf("no shipped experiment has %s %s", kind, name)
			}
		}
	}
}

// checkOpened judges the run in a folder on a few examples of dev, and asks it about one.
func checkOpened(t *testing.T, folder string) {
	t.Helper()
	run, err := OpenRun(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Read(Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	for _, texts := range run.Texts {
		texts.Examples[Dev] = texts.Examples[Dev][:8]
	}
	scores, err := run.Evaluate(t.Context(), Dev, nil)
	if err != nil || len(scores) != len(run.Texts) {
		t.Fatalf("%d scores of %d groups, %v", len(scores), len(run.Texts), err)
	}
	example := &corpus.Example{Text: "Who wrote it?", Pair: "Ada wrote it.", Paired: true}
	answers, err := run.Predictor().Answer([]*corpus.Example{example})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := json.Marshal(answers[0]); err != nil || len(answers[0].Tasks) != len(run.Experiment.Tasks) {
		t.Errorf("answers %+v, %v", answers, err)
	}
}

func TestWhatUnpackWritesIsWholeOrNotThere(t *testing.T) {
	t.Chdir(t.TempDir())
	// a kill while a file was written
	train := filepath.Join("experiments", "claims", "train.jsonl")
	if err := os.MkdirAll(filepath.Dir(train), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, train+newSuffix, `{"text": "cut`)
	if _, err := Unpack(filepath.Join("experiments", "quickstart.yaml")); err != nil {
		t.Fatal(err)
	}
	want, err := fs.ReadFile(Shipped, "claims/train.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	got := files(t, "experiments")
	if got[filepath.Join("claims", "train.jsonl")] != string(want) {
		t.Error("the notes are not those that ship")
	}
	for name := range got {
		if filepath.Ext(name) == newSuffix {
			t.Errorf("%s is left", name)
		}
	}

	// one that cannot be written leaves none in its place
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(train+newSuffix, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := Unpack(filepath.Join("experiments", "quickstart.yaml")); err == nil || isThere(train) {
		t.Errorf("Unpack over a folder = %v, and a file is there: %v", err, isThere(train))
	}
}

func TestUnpackWritesAnExperimentWhereThereIsNone(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, files := range map[string]int{"claims.yaml": 10, "quickstart.yaml": 4} {
		path := filepath.Join("experiments", name)
		wrote, err := Unpack(path)
		if err != nil || len(wrote) != files {
			t.Fatalf("Unpack wrote %v, %v; want the file and %d of notes", wrote, err, files-1)
		}
		if _, err := Read(path, nil); err != nil {
			t.Error(err)
		}
	}

	path := filepath.Join("experiments", "quickstart.yaml")
	if err := os.WriteFile(path, []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	if wrote, err := Unpack(path); err != nil || wrote != nil {
		t.Errorf("Unpack over a file wrote %v, %v", wrote, err)
	}
	if wrote, err := Unpack("experiments/mine.yaml"); err != nil || wrote != nil {
		t.Errorf("Unpack of no shipped file wrote %v, %v", wrote, err)
	}
}
