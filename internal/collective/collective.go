// Package collective sums numbers over the processes of a training, the ranks, so that each sum has the same bits at
// any number of ranks: in a fixed binary tree, neighbours first. The number of ranks is a power of two.
package collective

import (
	"fmt"
	"math/bits"
	"slices"
	"sync"
)

// Transport carries messages between ranks. Its methods may be called by several goroutines.
type Transport interface {
	// Rank returns the number of this process, from 0, and Ranks how many there are.
	Rank() int
	Ranks() int
	// Allocate returns memory of zeros that Send and Receive take parts of, in multiples of 4 bytes.
	Allocate(bytes int) ([]byte, error)
	// Send sends b to a rank. b must not change before done is called. Messages between two ranks with the same tag, of
	// 0 to 32767, arrive in the order in which they are sent. done may send and receive, but does not wait.
	Send(to, tag int, b []byte, done func(error))
	// Receive receives a message of exactly len(b) bytes from a rank into b, which must not be used before done is
	// called.
	Receive(from, tag int, b []byte, done func(error))
}

// Summer is a Transport that sums by itself.
type Summer interface {
	// Sum replaces the float32 values of b by their sums over all ranks, in an order of its own.
	Sum(b []byte, done func(error))
}

// Tags of messages by what they belong to.
const (
	tagNumbers = 1
	tagBytes   = 2
	tagAlive   = 3
	tagValues  = 4
	tagMeet    = 5
	tagLanes   = 16 // and above: each lane has its own
)

// Group is the ranks of a training. Each of its methods is called by all ranks, in the same order.
type Group struct {
	transport   Transport
	rank, ranks int
	rounds      bool // sums are rounded to bfloat16
	lanes       [lanes]lane
	started     int            // scatters
	scatters    *pending       // those that have not ended; nil: none have begun
	scattered   chan error     // the result of scatters
	mutex       sync.Mutex     // of memory and free
	memory      map[int][]byte // by tag: one goroutine at a time uses a tag
	free        [][]byte       // memory that is not used any more
	meter       meter
}

// New returns the group of a transport's ranks.
func New(t Transport) (*Group, error) {
	if n := t.Ranks(); bits.OnesCount(uint(n)) != 1 {
		return nil, fmt.Errorf("%d ranks; want a power of two", n)
	}
	g := &Group{transport: t, rank: t.Rank(), ranks: t.Ranks(), memory: map[int][]byte{}}
	for i := range g.lanes {
		g.lanes[i].tag = tagLanes + i
	}
	return g, nil
}

// Rank returns the number of this process, from 0, and how many there are.
func (g *Group) Rank() (rank, ranks int) { return g.rank, g.ranks }

// buffer returns n bytes of memory for messages with a tag.
func (g *Group) buffer(tag, n int) ([]byte, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if n > len(g.memory[tag]) {
		memory, err := g.allocate(max(n, 2*len(g.memory[tag]), 1<<12))
		if err != nil {
			return nil, err
		}
		if before := g.memory[tag]; before != nil {
			g.free = append(g.free, before)
		}
		g.memory[tag] = memory
	}
	return g.memory[tag][:n], nil
}

// allocate returns at least n bytes of the transport's memory, of zeros: free memory that is not much larger, where
// there is some. None is given back to the system: a library may have registered it with a network adapter, and does
// not learn from Go that its pages are others'.
func (g *Group) allocate(n int) ([]byte, error) {
	const larger = 4 // times
	best := -1
	for i, b := range g.free {
		if len(b) >= n && len(b)/larger <= n && (best < 0 || len(b) < len(g.free[best])) {
			best = i
		}
	}
	if best < 0 {
		return g.transport.Allocate(n)
	}
	b := g.free[best]
	g.free = slices.Delete(g.free, best, best+1)
	clear(b)
	return b, nil
}

// post sends a message to a rank, and receives one from it, before it calls done. Either may be empty.
func (g *Group) post(with, tag int, send, receive []byte, done func(error)) {
	g.meter.begin(len(send))
	both := &pending{left: 1, done: func(err error) {
		g.meter.end()
		if err != nil {
			err = fmt.Errorf("rank %d: exchange with rank %d: %w", g.rank, with, err)
		}
		done(err)
	}}
	if len(receive) > 0 {
		g.transport.Receive(with, tag, receive, both.add())
	}
	if len(send) > 0 {
		g.transport.Send(with, tag, send, both.add())
	}
	both.end(nil)
}

// swap is post, and waits.
func (g *Group) swap(with, tag int, send, receive []byte) error {
	return wait(func(done func(error)) { g.post(with, tag, send, receive, done) })
}

// pending calls done when as many operations have ended as were added, and one more.
type pending struct {
	mutex sync.Mutex
	left  int
	err   error // the first
	done  func(error)
}

// add adds an operation, and returns what ends it.
func (p *pending) add() (end func(error)) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.left++
	return p.end
}

func (p *pending) end(err error) {
	p.mutex.Lock()
	if p.left--; p.err == nil {
		p.err = err
	}
	left, first := p.left, p.err
	p.mutex.Unlock()
	if left == 0 {
		p.done(first)
	}
}

// wait starts an operation and waits for its end.
func wait(start func(done func(error))) error {
	ended := make(chan error, 1)
	start(func(err error) { ended <- err })
	return <-ended
}
