// Package collectivetest has a transport of collective between ranks in one process, for tests.
package collectivetest

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Local returns transports of ranks in one process.
func Local(ranks int) []*Transport {
	mail := &mail{boxes: map[box]queue{}, summands: make([][]receiver, ranks)}
	var all []*Transport
	for rank := range ranks {
		all = append(all, &Transport{mail, rank, ranks})
	}
	return all
}

// Transport is the transport of one rank: a collective.Transport and a collective.Summer.
type Transport struct {
	mail        *mail
	rank, ranks int
}

// box is where messages from a rank to another wait, by tag.
type box struct{ from, to, tag int }

// mail holds the messages that are sent but not received, and the receivers that wait.
type mail struct {
	mutex    sync.Mutex
	boxes    map[box]queue
	summands [][]receiver // of each rank
}

// queue is the messages or the receivers of a box: one of the two is empty.
type queue struct {
	messages  [][]byte
	receivers []receiver
}

type receiver struct {
	into []byte
	done func(error)
}

// Rank implements collective.Transport.
func (l *Transport) Rank() int { return l.rank }

// Ranks implements collective.Transport.
func (l *Transport) Ranks() int { return l.ranks }

// Allocate implements collective.Transport.
func (l *Transport) Allocate(bytes int) ([]byte, error) { return make([]byte, bytes), nil }

// Send implements collective.Transport. It copies b.
func (l *Transport) Send(to, tag int, b []byte, done func(error)) {
	l.mail.deliver(box{l.rank, to, tag}, queue{messages: [][]byte{bytes.Clone(b)}})
	done(nil)
}

// Receive implements collective.Transport.
func (l *Transport) Receive(from, tag int, b []byte, done func(error)) {
	l.mail.deliver(box{from, l.rank, tag}, queue{receivers: []receiver{{b, done}}})
}

// deliver adds a message or a receiver to a box, and gives the first message to the first receiver.
func (m *mail) deliver(at box, more queue) {
	m.mutex.Lock()
	q := m.boxes[at]
	q.messages, q.receivers = append(q.messages, more.messages...), append(q.receivers, more.receivers...)
	first, ready := q, len(q.messages) > 0 && len(q.receivers) > 0
	if ready {
		q.messages, q.receivers = q.messages[1:], q.receivers[1:]
	}
	m.boxes[at] = q
	m.mutex.Unlock()
	if ready {
		first.receivers[0].take(first.messages[0])
	}
}

// Sum implements collective.Summer. It adds the values in the order of the ranks.
func (l *Transport) Sum(b []byte, done func(error)) {
	l.mail.mutex.Lock()
	l.mail.summands[l.rank] = append(l.mail.summands[l.rank], receiver{b, done})
	var all []receiver
	if !slices.ContainsFunc(l.mail.summands, func(of []receiver) bool { return len(of) == 0 }) {
		for rank, of := range l.mail.summands {
			all, l.mail.summands[rank] = append(all, of[0]), of[1:]
		}
	}
	l.mail.mutex.Unlock()
	if all == nil {
		return
	}
	sums := make([]float32, len(b)/4)
	for _, r := range all {
		for i := range sums {
			sums[i] += math.Float32frombits(binary.NativeEndian.Uint32(r.into[4*i:]))
		}
	}
	message := make([]byte, 0, len(b))
	for _, sum := range sums {
		message = binary.NativeEndian.AppendUint32(message, math.Float32bits(sum))
	}
	for _, r := range all {
		r.take(message)
	}
}

// take fills the receiver's memory with a message.
func (r receiver) take(message []byte) {
	if len(message) != len(r.into) {
		r.done(fmt.Errorf("a message of %d bytes; want %d", len(message), len(r.into)))
		return
	}
	copy(r.into, message)
	r.done(nil)
}
