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
)

// inProcesses are trainings of killedExperiment in several processes.
type inProcesses struct{ program, home string }

// command returns the command that trains, or goes on, in so many processes that a launcher starts; without a launcher
// in this one alone.
func (p inProcesses) command(launcher string, processes int, folder string) *exec.Cmd {
	words := []string{p.program, "train", "--resume", "experiment.yaml", "--out", folder, "--threads", "1",
		"--set", "training.shards=8", "--set", "training.early_stopping_patience=0"}
	if launcher != "" {
		words = append([]string{launcher, "-n", strconv.Itoa(processes)}, words...)
	}
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir = p.home
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(launcher)+string(os.PathListSeparator)+os.Getenv("PATH"),
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
		"PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe", "OMPI_MCA_rmaps_base_oversubscribe=1")
	if prefix := filepath.Dir(filepath.Dir(launcher)); strings.Contains(launcher, "openmpi") { // it can be anywhere
		cmd.Env = append(cmd.Env, "OPAL_PREFIX="+prefix, "PMIX_PREFIX="+prefix, "PRTE_PREFIX="+prefix)
	}
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
	if err := exec.Command("pkill", "-KILL", "-f", p.program).Run(); err != nil { // in groups of their own
		t.Log(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Fatalf("%s: training ended before it was killed\n%s", launcher, &log)
	}
}

// TestProcessesTrainToTheSameBytes trains by the launchers of MPI libraries that JENGA_MPIRUN lists, in 1, 2, 4 and 8
// processes, and in 4 that are killed and resumed in 2.
func TestProcessesTrainToTheSameBytes(t *testing.T) {
	launchers := filepath.SplitList(os.Getenv("JENGA_MPIRUN"))
	if len(launchers) == 0 {
		t.Skip("JENGA_MPIRUN lists no launchers of MPI libraries")
	}
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
