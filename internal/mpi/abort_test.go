//go:build mpi && (linux || darwin) && (amd64 || arm64)

package mpi

import (
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"
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
