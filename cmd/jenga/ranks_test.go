//go:build unix

package main

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/mpi/mpitest"
)

// inProcesses are trainings of killedExperiment in several processes, with what is set.
type inProcesses struct {
	program, home string
	sets          []string
}

// command returns the command that trains, or goes on, in so many processes that a launcher starts; without a launcher
// in this one alone.
func (p inProcesses) command(t *testing.T, launcher string, processes int, folder string) *exec.Cmd {
	t.Helper()
	args := []string{"train", "--resume", "experiment.yaml", "--out", folder, "--threads", "1",
		"--set", "training.shards=8", "--set", "training.early_stopping_patience=0"}
	for _, set := range p.sets {
		args = append(args, "--set", set)
	}
	cmd := exec.Command(p.program, args...)
	if launcher != "" {
		cmd = mpitest.Command(t, launcher, processes, p.program, args...)
	}
	cmd.Dir, cmd.SysProcAttr = p.home, &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// train trains to the end, and returns the result.
func (p inProcesses) train(t *testing.T, launcher string, processes int, folder string) map[string]string {
	t.Helper()
	if out, err := p.command(t, launcher, processes, folder).CombinedOutput(); err != nil {
		t.Fatalf("%s, %d processes: %v\n%s", launcher, processes, err, out)
	}
	return resultOf(t, filepath.Join(p.home, folder))
}

// kill trains in 4 processes and kills them as soon as there is a checkpoint.
func (p inProcesses) kill(t *testing.T, launcher, folder string) {
	t.Helper()
	var log bytes.Buffer
	cmd := p.command(t, launcher, 4, folder)
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
		if _, err := os.Stat(filepath.Join(p.home, folder, "last", "training.snapshot")); err == nil {
			break
		}
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.killOthers(t)
	if err := cmd.Wait(); err == nil {
		t.Fatalf("%s: training ended before it was killed\n%s", launcher, &log)
	}
}

// killOthers kills the processes of the program that a launcher has put into groups of their own.
func (p inProcesses) killOthers(t *testing.T) {
	t.Helper()
	list, err := exec.Command("ps", "-A", "-o", "pid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(list)) {
		fields := strings.Fields(line)
		if len(fields) < 2 || fields[1] != p.program { // which lies in a folder of this test's own
			continue
		}
		id, err := strconv.Atoi(fields[0])
		if err != nil {
			t.Fatal(err)
		}
		syscall.Kill(id, syscall.SIGKILL) // it may have ended
	}
}

// TestProcessesTrainToTheSameBytes trains by the launchers of MPI libraries in 1, 2, 4 and 8 processes, and in 4 that
// are killed and resumed in 2.
func TestProcessesTrainToTheSameBytes(t *testing.T) {
	launchers := mpitest.Launchers(t)
	p := inProcesses{home: t.TempDir()}
	p.program = filepath.Join(p.home, "jenga")
	buildProgram(t, p.program, "mpi")
	killedData(t, p.home)
	t.Run("each updates all parameters", func(t *testing.T) {
		p.sets = []string{"training.ema=0.95"}
		p.compare(t, launchers)
	})
	t.Run("each updates a part", func(t *testing.T) {
		p.sets = []string{"training.ema=0", "model.encoder.feed_forward=2112"} // of matrices too
		p.compare(t, oneOfEachLibrary(t, launchers))                           // to which a part is one more message
	})
}

// oneOfEachLibrary returns the first launcher of each library.
func oneOfEachLibrary(t *testing.T, launchers []string) (all []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, launcher := range launchers {
		if library, _ := mpitest.Library(t, launcher); !seen[library] {
			seen[library], all = true, append(all, launcher)
		}
	}
	return all
}

// compare compares trainings by launchers with one in this process alone.
func (p inProcesses) compare(t *testing.T, launchers []string) {
	t.Helper()
	want := p.train(t, "", 1, "alone")
	defer os.RemoveAll(filepath.Join(p.home, "alone"))
	for _, launcher := range launchers {
		compare := func(how string, got map[string]string) {
			for name := range want {
				if got[name] != want[name] {
					t.Errorf("%s, %s: %s is not that of one process", launcher, how, name)
				}
			}
			if len(got) != len(want) {
				t.Errorf("%s, %s: the run has %q, want %q", launcher, how, slices.Sorted(maps.Keys(got)),
					slices.Sorted(maps.Keys(want)))
			}
		}
		for _, processes := range []int{2, 4, 8} {
			folder := "in-" + strconv.Itoa(processes)
			compare(folder, p.train(t, launcher, processes, folder))
			if err := os.RemoveAll(filepath.Join(p.home, folder)); err != nil {
				t.Fatal(err)
			}
		}
		p.kill(t, launcher, "killed")
		compare("killed in 4 and resumed in 2", p.train(t, launcher, 2, "killed"))
		if err := os.RemoveAll(filepath.Join(p.home, "killed")); err != nil {
			t.Fatal(err)
		}
	}
}
