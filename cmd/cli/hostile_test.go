//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cli

import (
	"bytes"
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/shared"
)

// secret is the content of the files that links of a hostile run name.
const secret = "private words of the user"

// hostileKinds put something else at the name of a file or a folder of a run.
var hostileKinds = map[string]func(path, outside string) error{
	"a link to a file":   func(path, outside string) error { return os.Symlink(filepath.Join(outside, "file"), path) },
	"a link to a folder": func(path, outside string) error { return os.Symlink(outside, path) },
	"a link to nothing":  func(path, outside string) error { return os.Symlink(filepath.Join(outside, "none"), path) },
	"a link to a device": func(path, _ string) error { return os.Symlink("/dev/zero", path) },
	"a named pipe":       func(path, _ string) error { return syscall.Mkfifo(path, 0o644) },
	"a folder": func(path, _ string) error {
		return os.MkdirAll(filepath.Join(path, "full"), 0o755)
	},
}

// hostileNames returns the names of all files and folders of runs, those that are there for an instant included, by
// what their folders hold.
func hostileNames(t *testing.T, folders ...string) []string {
	t.Helper()
	names := []string{runfolder.LockFile, runfolder.ReplacedDir, runfolder.SplitsFile, runfolder.CheckpointsDir,
		"best/calibration.json", "last", "tasks", "last/training.snapshot"}
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if relative, _ := filepath.Rel(folder, path); relative != "." {
				names = append(names, relative)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range slices.Clone(names) {
		names = append(names, name+runfolder.NewSuffix, name+runfolder.OldSuffix)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hostileCommands are those that open a run or write to it, in the folder that holds the run in run.
var hostileCommands = [][]string{
	{"predict", "run", "text.txt"}, {"eval", "run"}, {"explain", "run", "the card"}, {"embed", "run", "text.txt"},
	{"tokenize", "run", "text.txt"}, {"calibrate", "run"}, {"calibrate", "run", "--remove"},
	{"train", "--resume", "run"}, {"train", "experiment.yaml", "--out", "run", "--force", "--set",
		"training.num_epochs=1"},
	{"train", "experiment.yaml", "--out", "run", "--set", "training.num_epochs=1"},
	{"quantize", "run", "--out", "made"}, {"merge", "run", "other", "--out", "made"},
	{"quantize", "other", "--out", "run", "--force"}, {"check", "run/experiment.yaml"}, {"serve", "run"},
	{"bench", "run", "--measure", "infer", "--seconds", "0.01"},
}

// A run that someone else made may have anything at the name of any of its files. No command waits for it, writes what
// it leads to, or writes what is in that to its output. JENGA_HOSTILE is set for all cases, not one in some.
func TestHostileRunFolders(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	work := hostileWork(t)
	names := hostileNames(t, filepath.Join(work, "done"), filepath.Join(work, "interrupted"))
	commands, i, every := hostileCommands, 0, 97
	switch {
	case os.Getenv("JENGA_HOSTILE") != "": // all, in some six minutes
		every = 1
	case shared.Long():
		every = 13
	}
	for _, name := range names {
		for kind, put := range hostileKinds {
			for c, args := range commands {
				// each name, each kind and each command, but not together
				if i++; (i*7+c)%every != 0 {
					continue
				}
				source := "done"
				if slices.Contains(args, "--resume") {
					source = "interrupted"
				}
				hostileCase(t, work, source, outside, name, kind, put, args)
				if t.Failed() && every > 1 {
					return
				}
			}
		}
	}
}

// hostileWork is a folder with a run that is done, one that was interrupted, another one and data.
func hostileWork(t *testing.T) string {
	t.Helper()
	work := t.TempDir()
	t.Chdir(work)
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	writeFile(t, ".", "text.txt", "the card came late\n")
	interruptedAt(t, "step", 5, trainFlags{set: []string{"training.num_epochs=2"}})
	if err := os.Rename("runs/mails", "interrupted"); err != nil {
		t.Fatal(err)
	}
	for _, out := range []string{"done", "other"} {
		if status, _, log := call("", "train", "--set", "training.num_epochs=1", "--out", out); status != 0 {
			t.Fatal(log)
		}
	}
	if status, _, log := call("", "calibrate", "done"); status != 0 {
		t.Fatal(log)
	}
	return work
}

func hostileCase(t *testing.T, work, source, outside, name, kind string, put func(path, outside string) error,
	args []string) {
	t.Helper()
	for _, folder := range []string{"run", "made", outside} {
		if err := os.RemoveAll(folder); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS("run", os.DirFS(filepath.Join(work, source))); err != nil {
		t.Fatal(err)
	}
	writeFile(t, outside, "file", secret)
	path := filepath.Join("run", name)
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil || put(path, outside) != nil {
		return // its folder is a file
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var out bytes.Buffer
	log := &lockedLog{}
	c := &commands{in: strings.NewReader(""), out: &out, log: log}
	if args[0] == "serve" {
		args = append(slices.Clone(args), "--listen", "127.0.0.1:0")
		time.AfterFunc(100*time.Millisecond, cancel)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		root := c.root()
		root.SetArgs(args)
		root.SetOut(&out)
		root.SetErr(log)
		root.ExecuteContext(ctx)
	}()
	select {
	case <-ended:
	case <-time.After(30 * time.Second):
		t.Fatalf("%v waits for %s, which is %s", args, name, kind)
	}
	var found []string
	err := filepath.WalkDir(outside, func(path string, d fs.DirEntry, err error) error {
		found = append(found, path)
		return err
	})
	text, readErr := os.ReadFile(filepath.Join(outside, "file"))
	if err != nil || readErr != nil || string(text) != secret || len(found) != 2 {
		t.Errorf("%v with %s, which is %s: outside there is %q, %v, %v", args, name, kind, found, err, readErr)
	}
	if strings.Contains(out.String(), secret) {
		t.Errorf("%v with %s, which is %s, writes what it leads to: %s", args, name, kind, out.String())
	}
}
