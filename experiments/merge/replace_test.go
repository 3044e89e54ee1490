package merge

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/trained"
)

// A merged run replaces neither what it is made of nor a folder around or in that, under any name.
func TestAMergeKeepsItsInputs(t *testing.T) {
	b := trained.NewBase(t)
	runs := []string{b.Run(t, "a", teams), b.Run(t, "b", things)}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(filepath.Join(b.Dir, "base"), link); err != nil {
		t.Fatal(err)
	}
	before := sample.Files(t, b.Dir)
	m, err := Open(t.Context(), []string{runs[0] + "/best", runs[1]}, Options{Method: Mean}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	for _, folder := range []string{
		runs[0], runs[1], filepath.Join(runs[0], "merged"), filepath.Join(b.Dir, "base"), link, b.Encoder,
		filepath.Join(b.Encoder, "x", "y"), b.Dir,
	} {
		for what, err := range map[string]error{"Check": m.Check(folder, true),
			"Write": m.Write(t.Context(), folder, true, nil)} {
			if err == nil || !strings.Contains(err.Error(), folder+" is, holds or lies in ") {
				t.Errorf("%s %s: %v", what, folder, err)
			}
		}
	}
	if got := sample.Files(t, b.Dir); !maps.Equal(got, before) {
		t.Error("files have changed")
	}
	if err := m.Check(filepath.Join(b.Dir, "ab"), false); err != nil {
		t.Error(err)
	}
}

var errFull = errors.New("the disk is full")

// saveFull is that of an encoder that cannot be saved.
func saveFull(string) error { return errFull }

// unsaved is a tokenizer that writes nothing.
type unsaved struct{ corpus.Tokenizer }

func (unsaved) Save(string) error { return nil }

// A merge that fails leaves the earlier run, an ordinary or a merged one, and a training over a merged run leaves
// nothing of its encoder.
func TestAMergeThatFailsLeavesTheEarlierRun(t *testing.T) {
	b := trained.NewBase(t)
	folder := b.Run(t, "old", teams)
	runs := []string{b.Run(t, "a", teams), b.Run(t, "b", things)}
	fails := func() {
		t.Helper()
		before := sample.Files(t, folder)
		if err := (checkpoint.Made{
			Model: checkpoint.Model{Encoder: saveFull, Tokenizer: unsaved{}}, Origin: []byte("{}"),
			Experiment: &config.Experiment{},
		}).Write(t.Context(), folder, true); !errors.Is(err, errFull) {
			t.Fatalf("Write = %v", err)
		}
		if got := sample.Files(t, folder); !maps.Equal(got, before) {
			t.Errorf("the folder holds %d files, want the %d of the earlier run", len(got), len(before))
		}
	}
	fails()
	m, err := Open(t.Context(), runs, Options{Method: Mean}, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	before := sample.Files(t, folder)
	useless := errors.New("the loss is NaN")
	if err := m.Write(t.Context(), folder, true, func() error {
		if !runfolder.HasBest(folder) {
			t.Error("a run that is not written is checked")
		}
		return useless
	}); !errors.Is(err, useless) {
		t.Fatalf("Write = %v", err)
	}
	if got := sample.Files(t, folder); !maps.Equal(got, before) {
		t.Errorf("after a useless run the folder holds %d files, want the %d of the earlier run", len(got), len(before))
	}
	if err := m.Write(t.Context(), folder, true, nil); err != nil {
		t.Fatal(err)
	}
	fails()
	if runfolder.Exists(filepath.Join(folder, runfolder.ReplacedDir)) {
		t.Error("the earlier run is kept")
	}
	if _, err := Open(t.Context(), []string{folder, runs[0]}, Options{Method: Mean}, nil, ""); err == nil ||
		!strings.Contains(err.Error(), `task "team" is in`) {
		t.Errorf("Open of the merged run = %v", err)
	}

	b.Run(t, "old", things)
	if runfolder.Exists(filepath.Join(folder, runfolder.EncoderDir)) {
		t.Error("a training over the merged run has left its encoder")
	}
}
