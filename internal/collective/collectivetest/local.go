// Package collectivetest has a transport of collective between ranks in one process, for tests.
package collectivetest

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
)

// Local returns transports of ranks in one process.
func Local(ranks int) []*Transport {
	mail := &mail{boxes: map[box]*queue{}, summands: make([][]receiver, ranks)}
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
	boxes    map[box]*queue
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
	l.mail.mutex.Lock()
	q := l.mail.queue(box{l.rank, to, tag})
	var r receiver
	if len(q.receivers) == 0 {
		q.messages = append(q.messages, append([]byte{}, b...))
	} else {
		r, q.receivers = q.receivers[0], q.receivers[1:]
	}
	l.mail.mutex.Unlock()
	if r.done != nil {
		r.take(b)
	}
	done(nil)
}

// Receive implements collective.Transport.
func (l *Transport) Receive(from, tag int, b []byte, done func(error)) {
	l.mail.mutex.Lock()
	q, r := l.mail.queue(box{from, l.rank, tag}), receiver{b, done}
	var message []byte
	waits := len(q.messages) == 0
	if waits {
		q.receivers = append(q.receivers, r)
	} else {
		message, q.messages = q.messages[0], q.messages[1:]
	}
	l.mail.mutex.Unlock()
	if !waits {
		r.take(message)
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

func (m *mail) queue(at box) *queue {
	if m.boxes[at] == nil {
		m.boxes[at] = &queue{}
	}
	return m.boxes[at]
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
