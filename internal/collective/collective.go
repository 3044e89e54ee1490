// Package collective sums numbers over the processes of a training, the ranks, so that each sum has the same bits at
// any number of ranks: in a fixed binary tree, neighbours first. The number of ranks is a power of two.
package collective

import (
	"fmt"
	"math/bits"
	"sync"
)

// Transport carries messages between ranks. Its methods may be called by several goroutines.
type Transport interface {
	// Rank returns the number of this process, from 0, and Ranks how many there are.
	Rank() int
	Ranks() int
	// Allocate returns memory of zeros that Send and Receive take parts of, in multiples of 4 bytes.
	Allocate(bytes int) ([]byte, error)
	// Send sends b to a rank. b must not change until the result arrives. Messages between two ranks with the same tag,
	// of 0 to 32767, arrive in the order in which they are sent.
	Send(to, tag int, b []byte) <-chan error
	// Receive receives a message of exactly len(b) bytes from a rank into b, which must not be used until the result
	// arrives.
	Receive(from, tag int, b []byte) <-chan error
}

// Tags of messages by what they belong to.
const (
	tagNumbers = 1
	tagBytes   = 2
	tagAlive   = 3
	tagBuckets = 16 // and above: each lane of buckets has its own
)

// Group is the ranks of a training. Each of its methods is called by all ranks, in the same order.
type Group struct {
	transport   Transport
	rank, ranks int
	mutex       sync.Mutex     // of memory
	memory      map[int][]byte // by tag: one goroutine at a time uses a tag
}

// New returns the group of a transport's ranks.
func New(t Transport) (*Group, error) {
	if n := t.Ranks(); bits.OnesCount(uint(n)) != 1 {
		return nil, fmt.Errorf("%d ranks; want a power of two", n)
	}
	return &Group{transport: t, rank: t.Rank(), ranks: t.Ranks(), memory: map[int][]byte{}}, nil
}

// Rank returns the number of this process, from 0, and how many there are.
func (g *Group) Rank() (rank, ranks int) { return g.rank, g.ranks }

// buffer returns n bytes of memory for messages with a tag.
func (g *Group) buffer(tag, n int) ([]byte, error) {
	g.mutex.Lock()
	defer g.mutex.Unlock()
	if n > len(g.memory[tag]) {
		memory, err := g.transport.Allocate(max(n, 2*len(g.memory[tag]), 1<<12))
		if err != nil {
			return nil, err
		}
		g.memory[tag] = memory
	}
	return g.memory[tag][:n], nil
}

// exchange sends a message to a rank, and receives one from it. Either may be empty.
func (g *Group) exchange(with, tag int, send, receive []byte) error {
	var received, sent <-chan error
	if len(receive) > 0 {
		received = g.transport.Receive(with, tag, receive)
	}
	if len(send) > 0 {
		sent = g.transport.Send(with, tag, send)
	}
	for _, result := range []<-chan error{received, sent} {
		if result == nil {
			continue
		}
		if err := <-result; err != nil {
			return fmt.Errorf("rank %d: exchange with rank %d: %w", g.rank, with, err)
		}
	}
	return nil
}
