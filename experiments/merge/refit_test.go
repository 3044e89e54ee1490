package merge

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/trained"
)

// The merged run has no file yet when its experiment is checked.
func TestMistakesOfARefitAreInTheFilesOfTheRuns(t *testing.T) {
	b := trained.NewBase(t)
	runs := []string{b.Run(t, "a", teams), b.Run(t, "b", things)}
	m, err := Open(t.Context(), runs, Options{Method: Mean}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	folder := filepath.Join(b.Dir, "merged")
	if err := m.CheckRefit(t.Context(), folder, nil); err != nil {
		t.Fatal(err)
	}

	if err := os.Rename(filepath.Join(b.Dir, "mails.jsonl"), filepath.Join(b.Dir, "moved.jsonl")); err != nil {
		t.Fatal(err)
	}
	err = m.CheckRefit(t.Context(), folder, []string{"training.num_epochs=no"})
	if err == nil || strings.Contains(err.Error(), folder) {
		t.Fatalf("error %v, want none in %s", err, folder)
	}
	lines := strings.Split(err.Error(), "\n")
	for i, want := range [][2]string{
		{filepath.Join(runs[0], "experiment.yaml") + ":", `: task "team": `},
		{filepath.Join(runs[1], "experiment.yaml") + ":", `: task "things": `},
		{"argument set training.num_epochs=no: ", "training: num_epochs: "},
	} {
		if len(lines) != 3 || !strings.HasPrefix(lines[i], want[0]) || !strings.Contains(lines[i], want[1]) {
			t.Errorf("error\n%v\nwant %q in line %d", err, want, i+1)
		}
	}
}

// Paths in the runs' files are relative to those, and in the merged run's to a folder that does not exist.
func TestPathsInMistakesOfARefitAreFromTheWorkingDirectory(t *testing.T) {
	b := trained.NewBase(t)
	b.Run(t, "a", teams)
	b.Run(t, "deep/er/b", things)
	t.Chdir(b.Dir)
	m, err := Open(t.Context(), []string{"a", filepath.Join("deep", "er", "b")}, Options{Method: Mean}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if err := m.CheckRefit(t.Context(), filepath.Join("out", "ab"), nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename("mails.jsonl", "moved.jsonl"); err != nil {
		t.Fatal(err)
	}
	err = m.CheckRefit(t.Context(), filepath.Join("out", "ab"), nil)
	for _, want := range []string{
		filepath.Join("a", "experiment.yaml") + ":", filepath.Join("deep", "er", "b", "experiment.yaml") + ":",
		`task "team": mails.jsonl: no such file`, `task "things": mails.jsonl: no such file`,
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error\n%v\nwant %q", err, want)
		}
	}
}
