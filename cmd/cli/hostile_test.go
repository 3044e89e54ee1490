//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/shared"
	"golang.org/x/sys/unix"
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

// hostileExperiment has checkpoints of all kinds, and an encoder of a base model, without which runs are not merged.
const hostileExperiment = `
model: {base_model: base/best/encoder}
tasks:
  - name: team
    type: classification
    data: {path: mails.csv, text: body, split: {dev: 0.2}, label: team}
  - {name: sort, type: classification, data: {same_as: team, label: team}}
training: {learning_rate: 1.0e-2, batch_size: 8, num_epochs: 2, save_strategy: steps, save_steps: 2,
  save_total_limit: 2}
`

// hostileNames returns the names of all files and folders of runs: what their folders hold, what is there for an
// instant, and what is looked for, as what would make the folder itself a checkpoint. By strace -f -y -e trace=%file
// all names that the commands open, make, link, rename or remove are among them, but those of further steps and of what
// is within a folder that ends in .new or .old.
func hostileNames(t *testing.T, folders ...string) []string {
	t.Helper()
	names := []string{runfolder.LockFile, runfolder.ReplacedDir, runfolder.ModelFile, runfolder.ChecksumsFile,
		runfolder.TasksDir + "/" + runfolder.ExperimentFile, "best/calibration.json", "tasks/team/calibration.json"}
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
		if !strings.Contains(name, "/") {
			names = append(names, runfolder.ReplacedDir+"/"+name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// hostileCommands are those that open a run or write to it, in the folder that holds the run in run.
var hostileCommands = [][]string{
	{"predict", "run", "text.txt"}, {"eval", "run"}, {"explain", "run", "the card"}, {"errors", "run"},
	{"embed", "run", "text.txt"}, {"tokenize", "run", "text.txt"}, {"calibrate", "run"},
	{"calibrate", "run", "--remove"}, {"train", "--resume", "run"},
	{"train", "experiment.yaml", "--out", "run", "--force", "--set", "training.num_epochs=1"},
	{"train", "experiment.yaml", "--out", "run", "--set", "training.num_epochs=1"},
	{"quantize", "run", "--out", "made"}, {"merge", "run", "other", "--out", "made"},
	{"distil", "run", "--out", "made", "--set", "training.num_epochs=1"},
	{"quantize", "other", "--out", "run", "--force"}, {"check", "run/experiment.yaml"}, {"serve", "run"},
	{"bench", "run", "--measure", "infer", "--length", "4", "--batch", "1"}, {"tasks", "run"},
	{"tasks", "run", "--drop", "sort", "--out", "made"}, {"predict", "run/tasks/team", "text.txt"},
	{"train", "--resume", "run", "--set", "training.num_epochs=3"}, {"lr-find", "run/experiment.yaml"},
}

// A run that someone else made may have anything at the name of any of its files. No command waits for it, writes what
// it leads to, or writes what is in that to its output. JENGA_HOSTILE is set for all cases, not one in some.
func TestHostileRunFolders(t *testing.T) {
	outside := filepath.Join(t.TempDir(), "outside")
	work := hostileWork(t)
	names := hostileNames(t, append(hostileMade(t, work), "done", "interrupted")...)
	commands, i, every := hostileCommands, 0, 997
	switch {
	case os.Getenv("JENGA_HOSTILE") != "": // all, in half an hour
		every = 1
	case shared.Long():
		every = 97
	}
	for _, name := range names {
		for kind, put := range hostileKinds {
			for c, args := range commands {
				// each name, each kind and each command, but not together
				if i++; (i*7+c)%every != 0 {
					continue
				}
				source := "done"
				if isResumed(args) {
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

// isResumed reports whether a command goes on with a training that is not finished.
func isResumed(args []string) bool {
	return slices.Contains(args, "--resume") && !slices.Contains(args, "--set")
}

// hostileWork is a folder with a run that is done, one that was interrupted, another one and data.
func hostileWork(t *testing.T) string {
	t.Helper()
	work := t.TempDir()
	t.Chdir(work)
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "text.txt", "the card came late\n")
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	done := func(args ...string) {
		if status, _, log := call("", args...); status != 0 {
			t.Fatal(log)
		}
	}
	done("train", "--set", "training.num_epochs=1", "--out", "base")
	writeFile(t, ".", "experiment.yaml", hostileExperiment)
	interruptedAt(t, "step", 5, trainFlags{out: "interrupted"})
	done("train", "--out", "done")
	writeFile(t, ".", "other.yaml", strings.NewReplacer("name: team", "name: group", "as: team", "as: group", "sort",
		"kind").Replace(hostileExperiment)) // runs that are merged have tasks of different names
	done("train", "other.yaml", "--out", "other")
	done("calibrate", "done")
	return work
}

// hostileMade runs all commands on a run that nobody has changed, and returns the folders of the runs that they make.
func hostileMade(t *testing.T, work string) (made []string) {
	t.Helper()
	for i, args := range hostileCommands {
		for _, folder := range []string{"run", "made"} {
			if err := os.RemoveAll(folder); err != nil {
				t.Fatal(err)
			}
		}
		source := "done"
		if isResumed(args) {
			source = "interrupted"
		}
		if err := os.CopyFS("run", os.DirFS(filepath.Join(work, source))); err != nil {
			t.Fatal(err)
		}
		if args[0] == "serve" {
			continue
		}
		refused := slices.Contains(args, "--out") && slices.Contains(args, "run") && args[0] == "train" &&
			!slices.Contains(args, "--force")
		if status, _, log := call("", args...); (status != 0) != refused {
			t.Fatalf("%v: status %d\n%s", args, status, log)
		}
		for _, folder := range []string{"run", "made"} {
			to := fmt.Sprint("made-", i, "-", folder)
			if err := os.Rename(folder, to); err == nil {
				made = append(made, to)
			}
		}
	}
	return made
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
	var failed error
	go func() {
		defer close(ended)
		root := c.root()
		root.SetArgs(args)
		root.SetOut(&out)
		root.SetErr(log)
		failed = root.ExecuteContext(ctx)
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
	if told := fmt.Sprint(out.String(), log.String(), failed); strings.Contains(told, secret) {
		t.Errorf("%v with %s, which is %s, writes what it leads to: %s", args, name, kind, told)
	}
}

func TestOpeningLinesOfAPipeEndsWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text.txt")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, _, err := openLines(ctx, path)
		ended <- err
	}()
	select {
	case err := <-ended:
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v, want %v", err, context.DeadlineExceeded)
		}
	case <-time.After(10 * time.Second):
		t.Error("it waits for the pipe")
	}
}

func TestTextsWithoutLabelsAreNoPipe(t *testing.T) {
	rateTest(t)
	if err := syscall.Mkfifo("pipe.txt", 0o600); err != nil {
		t.Fatal(err)
	}
	status, _, log := call("", "check", "--set", "training.teachers=alone", "--set", "training.unlabelled=pipe.txt")
	if status == 0 || !strings.Contains(log, "pipe.txt: want a file, which a training that goes on can read again") {
		t.Errorf("%d, %s", status, log)
	}
}

// terminalOf returns a terminal of Linux, and what has been written to it once it is closed by the latter function.
func terminalOf(t *testing.T) (terminal *os.File, shown func() string) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("the ioctls are those of Linux")
	}
	const unlock, number = 0x40045431, 0x80045430 // TIOCSPTLCK, TIOCGPTN
	other, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { other.Close() })
	n, err := unix.IoctlGetInt(int(other.Fd()), number)
	if err = errors.Join(err, unix.IoctlSetPointerInt(int(other.Fd()), unlock, 0)); err != nil {
		t.Skip(err)
	}
	if terminal, err = os.OpenFile(fmt.Sprint("/dev/pts/", n), os.O_RDWR|syscall.O_NOCTTY, 0); err != nil {
		t.Skip(err)
	}
	text := make(chan string, 1)
	go func() {
		all, _ := io.ReadAll(other) // up to an error, as the terminal is closed
		text <- string(all)
	}()
	return terminal, func() string { terminal.Close(); return strings.ReplaceAll(<-text, "\r\n", "\n") }
}

// A terminal is sent rows without what it obeys, and a file or pipe has them as they are.
func TestRowsOnATerminal(t *testing.T) {
	t.Chdir(t.TempDir())
	data := "body,team\n" + strings.Repeat("\u009b31mpay\x1b[2J,\x1b[31mmoney\u009b\nhelp,h\u202eelp\n", 20)
	writeFile(t, ".", "mails.csv", data)
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	if status, _, log := call("", "train"); status != 0 {
		t.Fatal(log)
	}
	for _, args := range []string{"predict runs/mails mails.csv --format csv", "errors runs/mails --format tsv --all"} {
		terminal, shown := terminalOf(t)
		var log bytes.Buffer
		status := Run(strings.Fields(args), strings.NewReader(""), terminal, &log)
		got := shown()
		at := strings.IndexFunc(got, isObeyed)
		if status != 0 || at >= 0 || !strings.Contains(got, `\u001b[31mmoney\u009b`) {
			t.Errorf("%s: %d, on the terminal %.200q: %s", args, status, got[max(0, at):], log.String())
		}
		if _, piped, _ := call("", strings.Fields(args)...); !strings.Contains(piped, "\x1b[31mmoney\u009b") {
			t.Errorf("%s: in a pipe %.200q", args, piped)
		}
	}
}
