// Package mpi connects processes that mpirun, srun or another launcher has started, by the MPI library of the machine.
// The library is opened at run time, without cgo, in programs built with the tag mpi.
//
// It knows three binary interfaces: the standard one of MPI 5.0, that of MPICH (also of Intel's and Cray's libraries)
// and that of Open MPI. A goroutine on a thread of its own makes all calls of the library (MPI_THREAD_FUNNELED).
package mpi

import (
	"errors"
	"fmt"
)

// ErrNotBuilt is the error of Start in a program that was built without the tag mpi.
var ErrNotBuilt = errors.New("this jenga was built without MPI: build it with go build -tags mpi ./cmd/jenga")

// Lost is the error of a process from which nothing has been heard for too long.
type Lost struct {
	Rank int
	Host string // "": unknown
}

func (l Lost) Error() string {
	host := ""
	if l.Host != "" {
		host = " on " + l.Host
	}
	return fmt.Sprintf("rank %d%s does not answer", l.Rank, host)
}
