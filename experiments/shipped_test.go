package experiments

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/weightings"
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

func TestEveryPartStandsInAShippedExperiment(t *testing.T) {
	used := map[string]bool{}
	for _, name := range shipped(t) {
		e, err := config.ReadTrained(name)
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
		"tokenizer": {config.WordPieces, config.WholeWords},
		"fusion":    fusion.Registry().Names(),
		"weighting": weightings.Registry().Names(),
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

func TestWhatUnpackWritesIsWholeOrNotThere(t *testing.T) {
	t.Chdir(t.TempDir())
	// a kill while a file was written
	train := filepath.Join("experiments", "claims", "train.jsonl.gz")
	if err := os.MkdirAll(filepath.Dir(train), 0o755); err != nil {
		t.Fatal(err)
	}
	sample.Write(t, train+runfolder.NewSuffix, `{"text": "cut`)
	if _, err := Unpack(filepath.Join("experiments", "quickstart.yaml")); err != nil {
		t.Fatal(err)
	}
	want, err := fs.ReadFile(Shipped, "claims/train.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	got := sample.Files(t, "experiments")
	if got[filepath.Join("claims", "train.jsonl.gz")] != string(want) {
		t.Error("the notes are not those that ship")
	}
	for name := range got {
		if filepath.Ext(name) == runfolder.NewSuffix {
			t.Errorf("%s is left", name)
		}
	}

	// one that cannot be written leaves none in its place, and is not reported as written
	t.Chdir(t.TempDir())
	if err := os.MkdirAll(filepath.Join(train+runfolder.NewSuffix, "full"), 0o755); err != nil {
		t.Fatal(err)
	}
	wrote, err := Unpack(filepath.Join("experiments", "quickstart.yaml"))
	if err == nil || runfolder.Exists(train) || slices.Contains(wrote, train) {
		t.Errorf("Unpack over a folder = %v, %v, and a file is there: %v", wrote, err, runfolder.Exists(train))
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
		if _, err := config.Read(t.Context(), path, nil); err != nil {
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

func TestUnpackWritesOnlyToAFolderNamedExperiments(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, want := range map[string]string{
		"quickstart.yaml": "quickstart.yaml: no such file; jenga train experiments/quickstart.yaml writes and trains " +
			"the shipped experiment of that name",
		"conf/mlp.yaml": "conf/mlp.yaml: no such file; jenga train experiments/mlp.yaml writes and trains the " +
			"shipped experiment of that name",
		"experiments/quikstart.yaml": "experiments/quikstart.yaml: no such file; did you mean " +
			"experiments/quickstart.yaml, which ships with jenga?",
		"experiment.yaml": "experiment.yaml: no such file; name a file, or try jenga train experiments/quickstart.yaml",
	} {
		wrote, err := Unpack(path)
		if err == nil || err.Error() != want || wrote != nil {
			t.Errorf("Unpack(%s) = %v, %v, want the error %s", path, wrote, err, want)
		}
	}
	if got := sample.Files(t, "."); len(got) > 0 {
		t.Errorf("files are written: %v", got)
	}
}

func TestUnpackRestoresMissingDataOfAnUnchangedExperiment(t *testing.T) {
	t.Chdir(t.TempDir())
	path := filepath.Join("experiments", "quickstart.yaml")
	train := filepath.Join("experiments", "claims", "train.jsonl.gz")
	unpack := func() []string {
		t.Helper()
		wrote, err := Unpack(path)
		if err != nil {
			t.Fatal(err)
		}
		return wrote
	}
	unpack()
	if err := os.Remove(train); err != nil {
		t.Fatal(err)
	}
	if wrote := unpack(); !slices.Equal(wrote, []string{train}) {
		t.Errorf("Unpack wrote %v, want the missing %s", wrote, train)
	}
	if wrote := unpack(); wrote != nil {
		t.Errorf("Unpack with all files there wrote %v", wrote)
	}
}
