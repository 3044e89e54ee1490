package kernel

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// job is work in pieces that may run in any order and concurrently.
type job interface{ work(piece int) }

var cores = runtime.NumCPU()

// workers is the pool of goroutines for all jobs. They never end: starting one takes as long as multiplying a small
// matrix.
var workers pool

// pool runs one job at a time. A job that is shared while another runs, or from inside a job, runs on its caller's
// goroutine alone.
type pool struct {
	owner   sync.Mutex // locked while a job runs
	workers []*signal  // the start signal of each goroutine

	job        job
	pieces     int
	unstarted  atomic.Int64 // pieces; below 0 after more attempts to start one
	unfinished atomic.Int64 // pieces
	finished   signal       // sent by the worker that finishes the last piece
}

// share runs the pieces 0:pieces of a job on this goroutine and up to Threads()-1 workers, and waits for the last
// piece. It does not wait for a worker that starts after all pieces have.
func (p *pool) share(j job, pieces int) {
	helpers := min(Threads(), pieces) - 1
	if helpers <= 0 || !p.owner.TryLock() {
		for i := range pieces {
			j.work(i)
		}
		return
	}
	if p.finished.wake == nil {
		p.finished.init()
	}
	for len(p.workers) < helpers {
		start := new(signal)
		start.init()
		p.workers = append(p.workers, start)
		go p.help(start)
	}
	p.job, p.pieces = j, pieces
	p.unfinished.Store(int64(pieces))
	p.unstarted.Store(int64(pieces)) // from here on workers start pieces
	for _, start := range p.workers[:helpers] {
		start.send()
	}
	if !p.run() {
		p.finished.wait()
	}
	p.job = nil
	p.owner.Unlock() // not deferred: after a panic workers may still be running, so the pool runs no other job
}

// help is the loop of a worker.
func (p *pool) help(start *signal) {
	for {
		start.wait()
		if p.run() {
			p.finished.send()
		}
	}
}

// run runs pieces until all have been started, and reports whether it finished the last one.
func (p *pool) run() (last bool) {
	for {
		left := p.unstarted.Add(-1)
		if left < 0 {
			return last
		}
		// The job does not change while a piece of it is unfinished.
		p.job.work(p.pieces - 1 - int(left))
		last = p.unfinished.Add(-1) == 0
	}
}

// signal is sent by one goroutine to another, which spins before it blocks: the next product of an encoder follows
// within microseconds, and waking a goroutine takes about as long.
type signal struct {
	sent   atomic.Bool
	asleep atomic.Bool
	wake   chan struct{}
}

func (s *signal) init() { s.wake = make(chan struct{}, 1) }

// Rounds of pauses that a goroutine spins before it blocks: some 0.3 ms, since waking it takes about as long on a
// virtual machine. With more goroutines than cores, spinning would take the core from a goroutine that has work.
const spins, spinsWithoutCores = 2000, 20

// send sends the signal. Sent twice before it is received, it is received once.
func (s *signal) send() {
	s.sent.Store(true)
	if s.asleep.Swap(false) {
		s.wake <- struct{}{}
	}
}

// wait receives the signal: it returns once it has been sent.
func (s *signal) wait() {
	rounds := spins
	if Threads() > cores {
		rounds = spinsWithoutCores
	}
	for range rounds {
		if s.sent.CompareAndSwap(true, false) {
			return
		}
		pause()
	}
	s.asleep.Store(true)
	if s.sent.Load() && s.asleep.Swap(false) {
		s.sent.Store(false)
		return
	}
	<-s.wake
	s.sent.Store(false)
}
