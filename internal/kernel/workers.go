package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// job is work in pieces that may be done in any order and at once.
type job interface{ work(piece int) }

var cores = runtime.NumCPU()

// workers are the goroutines that help whoever shares a job. They live for ever: starting one costs as much as
// multiplying a small matrix.
var workers crew

// crew takes one job at a time. A job that comes meanwhile, or from inside a job, is done by its own goroutine alone.
type crew struct {
	owner   sync.Mutex // held while a job is shared
	members []*signal  // each tells one goroutine to look for work

	job      job
	pieces   int
	untaken  atomic.Int64 // pieces; below 0 where more were asked for
	undone   atomic.Int64 // pieces
	finished signal       // given by the member that does the last piece
}

// share does the pieces 0:pieces of a job with the help of Threads()-1 others, and waits for the last piece. It does
// not wait for a member that comes late, which finds nothing to take.
func (c *crew) share(j job, pieces int) {
	helpers := min(Threads(), pieces) - 1
	if helpers <= 0 || !c.owner.TryLock() {
		for i := range pieces {
			j.work(i)
		}
		return
	}
	if c.finished.wake == nil {
		c.finished.init()
	}
	for len(c.members) < helpers {
		begin := new(signal)
		begin.init()
		c.members = append(c.members, begin)
		go c.help(begin)
	}
	c.job, c.pieces = j, pieces
	c.undone.Store(int64(pieces))
	c.untaken.Store(int64(pieces)) // from here on pieces are taken
	for _, begin := range c.members[:helpers] {
		begin.give()
	}
	if !c.take() {
		c.finished.await()
	}
	c.job = nil
	c.owner.Unlock() // not deferred: after a panic members may still be at work, so the crew takes no other job
}

// help is a member's life.
func (c *crew) help(begin *signal) {
	for {
		begin.await()
		if c.take() {
			c.finished.give()
		}
	}
}

// take does pieces until none is left to take, and tells whether it did the one that was done last.
func (c *crew) take() (last bool) {
	for {
		left := c.untaken.Add(-1)
		if left < 0 {
			return last
		}
		// The job does not change while a piece of it is undone.
		c.job.work(c.pieces - 1 - int(left))
		last = c.undone.Add(-1) == 0
	}
}

// signal is given by one goroutine to another, which first waits awake: the next product of an encoder follows the last
// within microseconds, and waking a goroutine takes about as long.
type signal struct {
	given  atomic.Bool
	asleep atomic.Bool
	wake   chan struct{}
}

func (s *signal) init() { s.wake = make(chan struct{}, 1) }

// How many rounds of pauses a goroutine waits before it sleeps: some 0.3 ms, as waking it takes about as long on a
// machine that is not one's own. Where there are more goroutines than cores, waiting takes the core from one that
// works.
const awake, awakeInCrowd = 2000, 20

// give gives the signal; given twice before it is taken, it is given once.
func (s *signal) give() {
	s.given.Store(true)
	if s.asleep.Swap(false) {
		s.wake <- struct{}{}
	}
}

// await returns once the signal has been given, and takes it.
func (s *signal) await() {
	rounds := awake
	if Threads() > cores {
		rounds = awakeInCrowd
	}
	for range rounds {
		if s.given.CompareAndSwap(true, false) {
			return
		}
		pause()
	}
	s.asleep.Store(true)
	if s.given.Load() && s.asleep.Swap(false) {
		s.given.Store(false)
		return
	}
	<-s.wake
	s.given.Store(false)
}
