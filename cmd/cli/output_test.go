package cli

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// broken is a writer that fails after some writes, once and for all.
type broken struct {
	bytes.Buffer
	left int
	err  error
}

func (b *broken) Write(p []byte) (int, error) {
	if b.left--; b.left < 0 {
		return 0, b.err
	}
	return b.Buffer.Write(p)
}

// small writes a small experiment and its data to a new folder, which becomes the working directory.
func small(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
}

func TestATrainingOutlivesItsOutputs(t *testing.T) {
	small(t)
	const lost = " cannot be written any more, and training goes on without it: "
	for _, c := range []struct {
		args       string
		out, log   int // writes that succeed
		err        error
		status     int
		said, says string // in stdout, in stderr
	}{
		{"", 99, 0, syscall.EPIPE, 0, "stderr" + lost + "broken pipe\n", ""},
		{"", 99, 1, syscall.ENOSPC, 0, "stderr" + lost + "no space left on device\n", ""},
		{"--json", 99, 0, syscall.EPIPE, 0, `{"event":"warning","warning":"stderr` + lost + `broken pipe"}`, ""},
		{"", 0, 99, syscall.ENOSPC, 0, "", "stdout" + lost + "no space left on device\n"},
		{"--json", 3, 99, syscall.EPIPE, exitMistake, "",
			"stdout lacks events: broken pipe; metrics.jsonl in the run folder has them\n"},
		{"--json", 0, 0, syscall.EIO, exitMistake, "", ""},
		{"", 0, 0, syscall.EPIPE, 0, "", ""},
	} {
		out, log := &broken{left: c.out, err: c.err}, &broken{left: c.log, err: c.err}
		args := append([]string{"train", "--force", "--set", "training.num_epochs=2"}, strings.Fields(c.args)...)
		status := Run(args, strings.NewReader(""), out, log)
		if status != c.status || !strings.Contains(out.String(), c.said) || !strings.Contains(log.String(), c.says) ||
			strings.Count(out.String()+log.String(), lost) > 1 {
			t.Errorf("train %s with %d writes to stdout and %d to stderr: status %d, want %d\n%s%s", c.args, c.out,
				c.log, status, c.status, out, log)
		}
		metrics, err := os.ReadFile(filepath.Join("runs", "mails", runfolder.MetricsFile))
		if err != nil || !bytes.Contains(metrics, []byte(`"event":"done"`)) {
			t.Errorf("train %s: the run is not whole: %v", c.args, err)
		}
	}
}

// TestAFolderThatGoesWhileItsRunIsTrained moves, removes and replaces the folder at several events.
func TestAFolderThatGoesWhileItsRunIsTrained(t *testing.T) {
	run := filepath.Join("runs", "mails")
	move := func() error { return os.Rename(run, "moved") }
	remove := func() error { return errors.Join(move(), os.RemoveAll("moved")) } // while files are written to it
	const gone, step = "runs/mails: the folder was moved or removed", `{"event":"step","step":`
	const end = `{"event":"eval","split":"dev","step":8,`
	for _, c := range []struct {
		name, at string
		do       func() error
		want     string
	}{
		{"moved before an evaluation", step + "2,", move, gone},
		{"removed before an evaluation", step + "2,", remove, gone},
		{"moved at the end", end, move, gone},
		{"removed at the end", end, remove, gone},
		{"replaced by an empty one", step + "6,", func() error {
			return errors.Join(move(), os.MkdirAll(run, 0o755)) // a checkpoint at hand may have made it again
		}, gone},
		{"moved with its parent", step + "7,", func() error { return os.Rename("runs", "moved") },
			gone},
		{"without its best model", step + "7,", func() error {
			for !runfolder.HasBest(run) { // it is written while training goes on
				time.Sleep(time.Millisecond)
			}
			return os.RemoveAll(filepath.Join(run, runfolder.BestDir))
		}, "no model: it was removed while the run was trained"},
	} {
		t.Run(c.name, func(t *testing.T) {
			small(t)
			out := &hook{line: func(text string) error {
				if strings.HasPrefix(text, c.at) {
					return c.do()
				}
				return nil
			}}
			var log strings.Builder
			status := Run([]string{"train", "--json", "--set", "training.num_epochs=2", "--set",
				"training.learning_rate=1e-9", "--set", "training.metric_for_best_model=eval_overall"},
				strings.NewReader(""), out, &log)
			if status != exitMistake || !strings.Contains(log.String(), c.want) ||
				!strings.HasPrefix(out.last, `{"event":"error",`) {
				t.Errorf("status %d, %s\n%s", status, &log, out.last)
			}
			for _, path := range []string{"best", "last"} {
				if path = filepath.Join(run, path); strings.Contains(out.last, path+`"`) && !runfolder.Exists(path) ||
					strings.Contains(log.String(), "in "+path) && !runfolder.Exists(path) {
					t.Errorf("%s is gone, and is named:\n%s\n%s", path, &log, out.last)
				}
			}
			if strings.Contains(log.String(), "--resume") {
				if status, _, log := call("", "train", "--resume", run); status != 0 || !runfolder.HasBest(run) {
					t.Errorf("the remedy: status %d, %s", status, log)
				}
			}
			if strings.Contains(c.at, `"step":2,`) && runfolder.HasModel(run) {
				t.Error("a checkpoint was written to the path where the folder was")
			}
		})
	}
}

// The lines of a metrics file that is removed during training are all there at the end.
func TestMetricsThatAreRemovedDuringTrainingAreWrittenAgain(t *testing.T) {
	small(t)
	metrics := filepath.Join("runs", "mails", runfolder.MetricsFile)
	out := &hook{line: func(text string) error {
		if strings.HasPrefix(text, `{"event":"step","step":3,`) {
			return os.Remove(metrics)
		}
		return nil
	}}
	var log strings.Builder
	if status := Run([]string{"train", "--json", "--set", "training.num_epochs=1"}, strings.NewReader(""), out,
		&log); status != 0 {
		t.Fatal(log.String())
	}
	text, err := os.ReadFile(metrics)
	if err != nil || !strings.Contains(string(text), `{"event":"step","step":1,`) ||
		!strings.Contains(string(text), `{"event":"done",`) {
		t.Errorf("%s, %v", text, err)
	}
}

func TestAFinishedRunWithoutCheckpointsIsNotResumed(t *testing.T) {
	small(t)
	if status, _, log := call("", "train", "--set", "training.num_epochs=1"); status != 0 {
		t.Fatal(log)
	}
	run := filepath.Join("runs", "mails")
	for _, gone := range []string{runfolder.LastDir, runfolder.BestDir} { // the best alone is still a finished run
		status, _, log := call("", "train", "--resume", run)
		if status != 0 || !strings.Contains(log, "its training is finished") {
			t.Errorf("before %s is gone: status %d, %s", gone, status, log)
		}
		if err := os.RemoveAll(filepath.Join(run, gone)); err != nil {
			t.Fatal(err)
		}
	}
	status, out, log := call("", "train", "--resume", run)
	if status != exitMistake || out != "" || !strings.Contains(log, "its checkpoints are gone: no best/ or last/") {
		t.Errorf("without checkpoints: status %d, %s%s", status, out, log)
	}
}

func TestAnOutputThatIsNotWholeHasAnotherName(t *testing.T) {
	const before = "of an earlier command"
	full := errors.New("disk full")
	for _, c := range []struct {
		name, format, text string
		err                error
		whole, partial     string
	}{
		{"whole", "jsonl", "a\n", nil, "a\n", ""},
		{"empty", "jsonl", "", nil, "", ""},
		{"with errors of some lines", "jsonl", "a\n", errReported, "a\n", ""},
		{"by an error", "csv", "a\n", full, before, "a\n"},
		{"by an error before the first line", "csv", "", full, before, ""},
		{"parquet by an error", "parquet", "PAR1", full, before, ""},
	} {
		for _, exists := range []bool{true, false} {
			folder := t.TempDir()
			path := filepath.Join(folder, "out")
			if exists {
				writeFile(t, folder, "target", before)
				if err := os.Symlink("target", path); err != nil {
					t.Fatal(err)
				}
			} else if c.whole == before {
				c.whole = ""
			}
			var log strings.Builder
			o := &outputFile{name: path, format: c.format, log: &log}
			if c.text != "" {
				if _, err := o.Write([]byte(c.text)); err != nil {
					t.Fatal(err)
				}
			}
			err := o.end(c.err)
			whole, _ := os.ReadFile(path)
			partial, _ := filepath.Glob(filepath.Join(folder, "*"+partialSuffix))
			text := ""
			if len(partial) == 1 {
				data, err := os.ReadFile(partial[0])
				if text = string(data); err != nil || !strings.Contains(log.String(), partial[0]) {
					t.Errorf("%s: %v, %s", c.name, err, &log)
				}
			}
			if err != c.err || string(whole) != c.whole || text != c.partial {
				t.Errorf("%s: %v; the file has %q, the partial one %q; want %q, %q", c.name, err, whole, text, c.whole,
					c.partial)
			}
		}
	}
}

// An output that cannot be written is found before data is read: here it has no rows, or is gone.
func TestAnOutputThatCannotBeWrittenIsFoundFirst(t *testing.T) {
	trainedMails(t)
	writeFile(t, ".", "another.yaml", smallExperiment)
	writeFile(t, ".", "file", "")
	writeFile(t, ".", "mails.csv", "body,team\n") // without a row
	unwritable := []string{filepath.Join("file", "run")}
	if runtime.GOOS == "linux" {
		unwritable = append(unwritable, "/proc/run", "/sys/run")
	}
	if os.Getuid() > 0 {
		if err := os.Mkdir("read-only", 0o555); err != nil {
			t.Fatal(err)
		}
		unwritable = append(unwritable, filepath.Join("read-only", "a", "b"))
	}
	for _, out := range unwritable {
		for _, args := range []string{
			"train another.yaml --out ", "merge runs/mails runs/mails --out ", "quantize runs/mails --out ",
			"tasks runs/mails --rename team=group --out ", "predict runs/mails gone.csv --out ",
		} {
			status, _, log := call("", strings.Fields(args+out)...)
			if status == 0 || !strings.Contains(log, filepath.Dir(out)) || strings.Contains(log, ".csv") ||
				!strings.Contains(log, "--out") {
				t.Errorf("%s%s: %d, %s", args, out, status, log)
			}
		}
	}
	for _, out := range []string{"runs", "none/such.jsonl"} {
		if status, _, log := call("", "predict", "runs/mails", "gone.csv", "--out", out); status == 0 ||
			!strings.Contains(log, "--out "+out) {
			t.Errorf("predict --out %s: %d, %s", out, status, log)
		}
	}
	if left, err := filepath.Glob("*written*"); err != nil || left != nil {
		t.Errorf("files are left: %q, %v", left, err)
	}

	// what a remedy names works
	mustCall(t, "they paid", "predict", "runs/mails", "--out", "out.jsonl")
	mustCall(t, "they paid", "predict", "runs/mails", "--out", os.DevNull)
	mustCall(t, "", "tasks", "runs/mails", "--rename", "team=group", "--out", "another/one")
}

// So does that of a merged run's heads.
func TestARefitOutlivesItsOutputs(t *testing.T) {
	runsOfOneBase(t)
	out, log := &broken{err: syscall.EPIPE}, &broken{err: syscall.EPIPE}
	args := strings.Fields("merge a b --refit --set training.max_steps=4 --out both")
	if status := Run(args, strings.NewReader(""), out, log); status != 0 {
		t.Errorf("merge --refit: %d", status)
	}
	mustCall(t, "", "eval", "both")
}
