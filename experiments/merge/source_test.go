package merge

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/trained"
)

func TestRunsThatCannotBeMerged(t *testing.T) {
	b, other := trained.NewBase(t), trained.NewBase(t)
	a := b.Run(t, "a", teams)
	scratch := filepath.Join(b.Dir, "base")
	sample.Write(t, filepath.Join(other.Encoder, "config.json"), // another base model
		string(mustReadFile(t, filepath.Join(other.Encoder, "config.json")))+"\n")
	if err := runfolder.WriteChecksums(t.Context(), filepath.Dir(other.Encoder)); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		run, want string
	}{
		{other.Run(t, "b", things), "have different base models, " + b.Encoder + " and " + other.Encoder + ": "},
		{b.Run(t, "c", things, "model.fusion=attention"), "has another fusion than"},
		{b.Run(t, "g", things, "model.lora={per_task: true, r: 2}"), "has changes of the encoder of its own"},
	} {
		if _, err := Open(t.Context(), []string{a, c.run}, Options{Method: Mean}, nil, ""); err == nil ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("Open = %v, want %s", err, c.want)
		}
	}
	renames := []Rename{{1, "team", "x"}, {1, "things", "y"}}
	if _, err := Open(t.Context(), []string{a, scratch}, Options{Method: Mean}, renames, ""); err == nil ||
		!strings.Contains(err.Error(), "was trained from scratch") {
		t.Errorf("Open = %v, want an error about a run from scratch", err)
	}

	// fusions whose parameters tasks share
	for i, fusion := range []string{"attention", "{type: attention, scale: gated}", "concat"} {
		set, n := "model.fusion="+fusion, strconv.Itoa(i)
		shared := []string{b.Run(t, "e"+n, teams, set), b.Run(t, "f"+n, things, set)}
		m, err := Open(t.Context(), shared, Options{Method: Mean}, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		folder := filepath.Join(b.Dir, "merged")
		if err := m.Write(t.Context(), folder, false, nil); err == nil ||
			!strings.Contains(err.Error(), "which all tasks of fusion") {
			t.Errorf("%s: Write = %v, want an error about the fusion", fusion, err)
		}
		if runfolder.Exists(folder) {
			t.Error("a merge that fails leaves a folder")
		}
	}
}

func TestABaseModelThatIsNotThatOfTheRuns(t *testing.T) {
	b := trained.NewBase(t)
	a, d := b.Run(t, "a", teams), b.Run(t, "d", things)

	// changed
	config := filepath.Join(b.Encoder, "config.json")
	text := mustReadFile(t, config)
	sample.Write(t, config, string(text)+" ")
	if _, err := Open(t.Context(), []string{a, d}, Options{Method: Mean}, nil, ""); err == nil ||
		!strings.Contains(err.Error(), "a: its base model's file "+config+" is not the one it was trained with: "+
			"its sum is ") {
		t.Errorf("Open = %v, want an error about the base model's file", err)
	}
	sample.Write(t, config, string(text))

	// moved
	moved := filepath.Join(b.Dir, "moved")
	if err := os.Rename(b.Encoder, moved); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), []string{a, d}, Options{Method: Mean}, nil, ""); err == nil ||
		!strings.Contains(err.Error(), "base model of the runs not found") {
		t.Errorf("Open = %v, want an error about the missing base model", err)
	}
	m, err := Open(t.Context(), []string{a, d}, Options{Method: Mean}, nil, moved)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	folder := filepath.Join(b.Dir, "merged")
	if err := m.Write(t.Context(), folder, false, nil); err != nil {
		t.Error(err)
	}
	if err := m.Write(t.Context(), folder, false, nil); err == nil || !strings.Contains(err.Error(), "holds a run") {
		t.Errorf("Write = %v, want an error about the run in the folder", err)
	}
}

func mustReadFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}
