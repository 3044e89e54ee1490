//go:build mpi && (linux || darwin) && (amd64 || arm64)

package mpi

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
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

// A process whose MPI_Finalize does not return, since another process does not call it, ends nevertheless, with its own
// status. A shell writes it: the launcher may end with that of another process, which it has killed.
func TestAProcessEndsWhereMPICHDoesNotFinalize(t *testing.T) {
	const variable = "JENGA_MPI_WAITS"
	if os.Getenv(variable) != "" {
		waitForAnother(t)
	}
	tested := false
	for _, launcher := range mpitest.Launchers(t) {
		if kind, _ := mpitest.Library(t, launcher); kind != openMPIInterface {
			tested = true
			t.Run(launcher, func(t *testing.T) { endsWithoutFinalize(t, launcher, variable+"=1") })
		}
	}
	if !tested {
		t.Skip("JENGA_MPIRUN lists no launcher of MPICH")
	}
}

// endsWithoutFinalize starts two processes with a variable that makes them waitForAnother.
func endsWithoutFinalize(t *testing.T, launcher, variable string) {
	t.Parallel() // it waits most of the time
	cmd := mpitest.Command(t, launcher, 2, "/bin/sh", "-c", `"$0" "$@"; echo "rank $PMI_RANK: status $?"`, os.Args[0],
		"-test.run=^TestAProcessEndsWhereMPICHDoesNotFinalize$")
	cmd.Env = append(cmd.Env, variable)
	late := time.AfterFunc(3*finalizeLimit, func() { cmd.Process.Kill() })
	out, err := cmd.CombinedOutput()
	if !late.Stop() {
		t.Errorf("it does not end")
	}
	if err != nil && !strings.Contains(string(out), "BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES") {
		t.Errorf("%v, and no word of a process that it has killed\n%s", err, out)
	}
	for _, want := range []string{"rank 0: MPI_Finalize has not returned", "rank 0: status 0\n"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q: %v\n%s", want, err, out)
		}
	}
}

// waitForAnother ends the process with an error unless Close of the first rank, which calls MPI_Finalize alone, takes
// as long as it may.
func waitForAnother(t *testing.T) {
	w, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	if w.Rank() > 0 {
		time.Sleep(2 * finalizeLimit)
		Exit(0)
	}
	began := time.Now()
	w.Close()
	if took := time.Since(began); took < finalizeLimit || took > finalizeLimit*3/2 {
		t.Errorf("Close takes %v, want %v", took, finalizeLimit)
		Exit(1)
	}
	Exit(0)
}
