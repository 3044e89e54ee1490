//go:build mpi && (linux || darwin) && (amd64 || arm64)

package mpi

import (
	"time"

	"golang.org/x/sys/unix"
)

// Processes and threads that share a processor leave it to each other: a thread that waits for requests looks at them
// less and less often.
const (
	shortestPause = 25 * time.Microsecond
	longestPause  = time.Millisecond
)

// nextPause returns the pause after one without news.
func nextPause(pause time.Duration) time.Duration {
	return min(max(shortestPause, pause+pause/2), longestPause)
}

// bell wakes a thread that waits for a time. Timers of the Go runtime are not used: in a process that has nothing else
// to do they are late by up to a millisecond.
type bell struct{ read, write int } // a pipe

func newBell() (*bell, error) {
	var ends [2]int
	if err := unix.Pipe(ends[:]); err != nil {
		return nil, err
	}
	for _, end := range ends {
		unix.CloseOnExec(end)
		if err := unix.SetNonblock(end, true); err != nil {
			return nil, err
		}
	}
	return &bell{ends[0], ends[1]}, nil
}

// ring ends the wait at hand, or the next one.
func (b *bell) ring() {
	unix.Write(b.write, []byte{1}) // where the pipe is full it rings already
}

// wait waits for a time or until the bell rings.
func (b *bell) wait(pause time.Duration) {
	if waitToRead(b.read, pause) {
		var rings [64]byte
		unix.Read(b.read, rings[:])
	}
}
