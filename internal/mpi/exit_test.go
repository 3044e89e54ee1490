//go:build mpi && (linux || darwin) && (amd64 || arm64)

package mpi

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/mpi/mpitest"
)

// The first process of a machine that Hydra has started closes its output some time after Exit, and ends some time
// after that. The test may see each of them late, so it looks several times.
func TestTheFirstProcessThatFailsEndsLast(t *testing.T) {
	const variable, status, attempts = "JENGA_MPI_EXITS", 3, 10
	if os.Getenv(variable) != "" {
		os.Stdout.WriteString("exits")
		Exit(status)
	}
	var open, closed time.Duration
	for range attempts {
		cmd := exec.Command(os.Args[0], "-test.run=^TestTheFirstProcessThatFailsEndsLast$")
		cmd.Env = append(os.Environ(), variable+"=1", "MPI_LOCALRANKID=0")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("exits"))); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := io.Copy(io.Discard, out); err != nil {
			t.Fatal(err)
		}
		open = time.Since(began)
		err = cmd.Wait()
		closed = time.Since(began) - open
		if failed := new(exec.ExitError); !errors.As(err, &failed) || failed.ExitCode() != status {
			t.Fatalf("the process ends with %v, want exit status %d", err, status)
		}
		if open > endTime/2 && closed > endTime/2 {
			return
		}
	}
	t.Errorf("the output is open for %v after Exit, and the process is there for %v more; want %v each", open, closed,
		endTime)
}

// A process whose library waits for another one for ever ends nevertheless, and as well as if it had not. The other
// process is one that does not finalize its library while this one waits.
func TestProcessesEndWhereALibraryDoesNotFinalize(t *testing.T) {
	const variable = "JENGA_MPI_WAITS"
	if os.Getenv(variable) != "" {
		w, err := Start()
		if err != nil {
			t.Fatal(err)
		}
		if w.Rank() == 0 {
			w.Close()
		} else {
			time.Sleep(finalizeLimit + finalizeLimit/5)
		}
		Exit(0)
	}
	for _, launcher := range mpitest.Launchers(t) {
		if kind, _ := mpitest.Library(t, launcher); kind != mpichHandles.name {
			continue // its launcher takes a process that has not finalized for one that has failed
		}
		cmd := mpitest.Command(launcher, 2, os.Args[0], "-test.run=^TestProcessesEndWhereALibraryDoesNotFinalize$")
		cmd.Env = append(cmd.Env, variable+"=1")
		began := time.Now()
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%s: %v\n%s", launcher, err, out)
		}
		if took := time.Since(began); took < finalizeLimit || took > 2*finalizeLimit {
			t.Errorf("%s: the processes end after %v, want some more than %v", launcher, took, finalizeLimit)
		}
	}
}
