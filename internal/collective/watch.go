package collective

import (
	"sync"
	"time"
)

// Watch tells the next rank again and again that this one is alive, whatever it computes, and calls lost once with the
// number of the rank before it if that is silent for a time, or a message to one of them fails. All ranks call Watch,
// and stop, which waits for the rank before to stop.
func (g *Group) Watch(every, silent time.Duration, lost func(rank int)) (stop func()) {
	if g.ranks == 1 {
		return func() {}
	}
	next, before := (g.rank+1)%g.ranks, (g.rank+g.ranks-1)%g.ranks
	var once sync.Once
	report := func(rank int) { once.Do(func() { lost(rank) }) }

	memory, err := g.transport.Allocate(8)
	if err != nil {
		report(before)
		return func() {}
	}
	ended, all := make(chan struct{}), sync.WaitGroup{}
	all.Go(func() { g.beat(next, memory[:4], every, ended, report) })
	all.Go(func() { g.listen(before, memory[4:], silent, report) })
	return func() {
		close(ended)
		all.Wait()
	}
}

// The messages of Watch, by their first byte.
const (
	alive = 1
	bye   = 2
)

// beat sends messages to a rank until ended is closed.
func (g *Group) beat(to int, memory []byte, every time.Duration, ended <-chan struct{}, lost func(rank int)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for memory[0] = alive; memory[0] == alive; {
		select {
		case <-tick.C:
		case <-ended:
			memory[0] = bye
		}
		if err := wait(func(done func(error)) { g.transport.Send(to, tagAlive, memory, done) }); err != nil {
			lost(to)
			return
		}
	}
}

// listen receives messages from a rank until the last one.
func (g *Group) listen(from int, memory []byte, silent time.Duration, lost func(rank int)) {
	for {
		received := make(chan error, 1)
		g.transport.Receive(from, tagAlive, memory, func(err error) { received <- err })
		select {
		case err := <-received:
			if err != nil {
				lost(from)
				return
			}
			if memory[0] == bye {
				return
			}
		case <-time.After(silent):
			lost(from)
			return
		}
	}
}
