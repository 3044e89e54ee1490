//go:build mpi && (linux || darwin) && (amd64 || arm64)

package mpi

import (
	"os"
	"time"

	"github.com/ebitengine/purego"
)

// Exit ends the process as C's exit does, which calls what libraries have registered: MPICH signs off from its launcher
// there, which ends all ranks where one ends without that. With a status other than 0 the first process of a machine
// ends after the others.
func Exit(status int) {
	if status != 0 && os.Getenv("MPI_LOCALRANKID") == "0" {
		outlive()
	}
	time.AfterFunc(exitLimit, func() { os.Exit(status) })
	if exit, err := purego.Dlsym(purego.RTLD_DEFAULT, "exit"); err == nil {
		purego.SyscallN(exit, uintptr(status))
	}
	os.Exit(status)
}

// endTime is the time in which the other processes of this machine end, once all have left the library.
const endTime = 50 * time.Millisecond

// outlive closes the output when the other processes of this machine have ended, and returns later: Hydra, MPICH's
// launcher, looks for processes that have ended when an output closes. In MPICH 4.0 it forgets the exit statuses of
// those that it finds after the last output has closed, and mpiexec exits with 0 where all processes end at once.
func outlive() {
	time.Sleep(endTime)
	os.Stdout.Close()
	time.Sleep(endTime)
}

// exitLimit is the time that C's exit has: what libraries have registered may wait for a thread in MPI_Finalize.
const exitLimit = 5 * time.Second
