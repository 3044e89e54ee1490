//go:build mpi && (linux || darwin) && (amd64 || arm64)

package mpi

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/mpi/mpitest"
)

// A process ends by Abort although the goroutine that calls the library does not run any more.
func TestAbortWithoutTheLibrary(t *testing.T) {
	const variable, status = "JENGA_MPI_ABORTS", 7
	if os.Getenv(variable) != "" {
		bell, err := newBell()
		if err != nil {
			t.Fatal(err)
		}
		(&world{bell: bell}).Abort(status)
	}
	t.Parallel() // it waits most of the time
	cmd := exec.Command(os.Args[0], "-test.run=^TestAbortWithoutTheLibrary$")
	cmd.Env = append(os.Environ(), variable+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(abortLimit+time.Minute, func() { cmd.Process.Kill() })
	defer late.Stop()
	var ended *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &ended) || ended.ExitCode() != status {
		t.Errorf("Abort(%d): %v", status, err)
	}
}

// A launcher passes on what a process has written before Abort. MPICH's loses at times what comes just before the end,
// so each starts several.
func TestLaunchersReadWhatComesBeforeAbort(t *testing.T) {
	const variable, words, attempts = "JENGA_MPI_LAST_WORDS", "rank 1 is silent", 20
	if os.Getenv(variable) != "" {
		abortAfter(t, words)
	}
	for _, launcher := range mpitest.Launchers(t) {
		t.Run(launcher, func(t *testing.T) {
			t.Parallel() // it waits most of the time
			for range attempts {
				cmd := mpitest.Command(t, launcher, 2, os.Args[0], "-test.run=^TestLaunchersReadWhatComesBeforeAbort$")
				cmd.Env = append(cmd.Env, variable+"=1")
				if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), words) {
					t.Fatalf("%v, want an error and %q in\n%s", err, words, out)
				}
			}
		})
	}
}

// abortAfter ends all processes from the first, which writes words before.
func abortAfter(t *testing.T, words string) {
	w, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	if w.Rank() > 0 {
		time.Sleep(time.Minute)
		Exit(0)
	}
	os.Stderr.WriteString(words + "\n")
	w.Abort(1)
}
