// Package mpi connects processes that mpirun, srun or another launcher has started, by the MPI library of the machine.
// The library is opened at run time, without cgo, in programs built with the tag mpi.
//
// It knows three binary interfaces: the standard one of MPI 5.0, that of MPICH (also of Intel's and Cray's libraries)
// and that of Open MPI. A goroutine on a thread of its own makes all calls of the library (MPI_THREAD_FUNNELED).
package mpi

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/internal/collective"
)

// ErrNotBuilt is the error of Start in a program that was built without the tag mpi.
var ErrNotBuilt = errors.New("this jenga was built without MPI: build it with go build -tags mpi ./cmd/jenga")

// LibraryVariable is the environment variable that names the MPI library's file.
const LibraryVariable = "JENGA_MPI_LIBRARY"

// World is the processes that were started together. Memory of Allocate is outside of Go's heap, and messages are in
// such memory. All calls of done follow each other on the goroutine that uses the library.
type World interface {
	collective.Transport
	collective.Summer
	// Version returns the name, version and file of the MPI library, in one line.
	Version() string
	// Close finalizes MPI after all requests; all ranks call it. Where MPICH does not return from that, Close does
	// after some seconds. There are no requests after it, and the process ends by Exit.
	Close()
	// Abort ends the processes of all ranks with an exit status, and this one too where the library does not do it
	// within seconds, after launchers have read its output. It may be called while requests are open. It never returns.
	Abort(status int)
}

// Launcher is what a launcher's environment says about the processes that it has started.
type Launcher struct {
	Name  string // of the program or the interface
	Ranks int    // number of processes, 0: the environment does not say it
}

// Names of launchers.
const (
	openMPI = "Open MPI's mpirun"
	pmi     = "mpiexec (PMI)"
	pmix    = "a launcher with PMIx"
)

// Launched returns the launcher that has started this process as one of several. srun without a PMI plugin is not one:
// see SlurmTasks.
func Launched() (l Launcher, ok bool) {
	for _, known := range []struct{ name, ranks string }{
		{openMPI, "OMPI_COMM_WORLD_SIZE"},
		{pmi, "PMI_SIZE"},
	} {
		if value, ok := os.LookupEnv(known.ranks); ok {
			n, _ := strconv.Atoi(value)
			return Launcher{known.name, n}, true
		}
	}
	if _, ok := os.LookupEnv("PMIX_RANK"); !ok {
		return Launcher{}, false
	}
	// PMIx has no variable for the number. In a step of Slurm's plugin it is that of the tasks, but not among the
	// processes that prterun starts within a step.
	if strings.HasPrefix(os.Getenv("PMIX_NAMESPACE"), "prte") {
		return Launcher{pmix, 0}, true
	}
	return Launcher{pmix, SlurmTasks()}, true
}

// SlurmTasks returns the number of tasks of the Slurm step that the process belongs to, 0 outside of one.
func SlurmTasks() int {
	n, _ := strconv.Atoi(os.Getenv("SLURM_STEP_NUM_TASKS"))
	return n
}
