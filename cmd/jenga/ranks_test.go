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
	"syscall"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/mpi/mpitest"
)

// inProcesses are trainings of killedExperiment in several processes.
type inProcesses struct{ program, home string }

// command returns the command that trains, or goes on, in so many processes that a launcher starts; without a launcher
// in this one alone.
func (p inProcesses) command(launcher string, processes int, folder string) *exec.Cmd {
	args := []string{"train", "--resume", "experiment.yaml", "--out", folder, "--threads", "1",
		"--set", "training.shards=8", "--set", "training.early_stopping_patience=0"}
	cmd := exec.Command(p.program, args...)
	if launcher != "" {
		cmd = mpitest.Command(launcher, processes, p.program, args...)
	}
	cmd.Dir, cmd.SysProcAttr = p.home, &syscall.SysProcAttr{Setpgid: true}
	return cmd
}

// train trains to the end, and returns the result.
func (p inProcesses) train(t *testing.T, launcher string, processes int, folder string) map[string]string {
	t.Helper()
	if out, err := p.command(launcher, processes, folder).CombinedOutput(); err != nil {
		t.Fatalf("%s, %d processes: %v\n%s", launcher, processes, err, out)
	}
	return resultOf(t, filepath.Join(p.home, folder))
}

// kill trains in 4 processes and kills them as soon as there is a checkpoint.
func (p inProcesses) kill(t *testing.T, launcher, folder string) {
	t.Helper()
	var log bytes.Buffer
	cmd := p.command(launcher, 4, folder)
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
	exec.Command("pkill", "-KILL", "-f", p.program).Run() // those in groups of their own; without any it fails
	if err := cmd.Wait(); err == nil {
		t.Fatalf("%s: training ended before it was killed\n%s", launcher, &log)
	}
}

// TestProcessesTrainToTheSameBytes trains by the launchers of MPI libraries in 1, 2, 4 and 8 processes, and in 4 that
// are killed and resumed in 2.
func TestProcessesTrainToTheSameBytes(t *testing.T) {
	launchers := mpitest.Launchers(t)
	p := inProcesses{home: t.TempDir()}
	p.program = filepath.Join(p.home, "jenga")
	build := exec.Command("go", "build", "-tags", "mpi", "-o", p.program, ".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	killedData(t, p.home)
	want := p.train(t, "", 1, "alone")
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
