// Package collective sums numbers over the processes of a training, the ranks, so that each sum has the same bits at
// any number of ranks: in a fixed binary tree, neighbours first. The number of ranks is a power of two.
package collective

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"sync"
	"time"
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

func wait(start func(done func(error))) error {
	ended := make(chan error, 1)
	start(func(err error) { ended <- err })
	return <-ended
}

// Traffic is what a rank has exchanged with others, but for the messages of Watch.
type Traffic struct {
	Sent   int64         // bytes
	Active time.Duration // in which at least one exchange had begun and not ended
}

// Since returns the traffic since an earlier one.
func (t Traffic) Since(before Traffic) Traffic {
	return Traffic{t.Sent - before.Sent, t.Active - before.Active}
}

type meter struct {
	mutex   sync.Mutex
	traffic Traffic
	begun   int // exchanges that have not ended
	since   time.Time
}

// begin counts an exchange that sends so many bytes.
func (m *meter) begin(sent int) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.begun == 0 {
		m.since = time.Now()
	}
	m.begun++
	m.traffic.Sent += int64(sent)
}

func (m *meter) end() {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.begun--; m.begun == 0 {
		m.traffic.Active += time.Since(m.since)
	}
}

// Traffic returns what this rank has exchanged so far.
func (g *Group) Traffic() Traffic {
	m := &g.meter
	m.mutex.Lock()
	defer m.mutex.Unlock()
	t := m.traffic
	if m.begun > 0 {
		t.Active += time.Since(m.since)
	}
	return t
}

// pieceBytes is the largest part of a byte string that is one message, a multiple of 4.
const pieceBytes = 4 << 20

// AllGather returns the bytes of all ranks by rank, on all ranks: at each level two neighbours swap what they have.
func (g *Group) AllGather(b []byte) ([][]byte, error) {
	all := make([][]byte, g.ranks)
	all[g.rank] = b
	for distance := 1; distance < g.ranks; distance *= 2 {
		with := g.rank ^ distance
		own, other := g.rank&^(distance-1), with&^(distance-1) // where those begin that the two have
		for i := range distance {
			var err error
			if all[other+i], err = g.swapBytes(tagBytes, with, all[own+i]); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// Gather returns the values that all ranks call it with, by rank, on all ranks. They are sent as JSON.
func Gather[T any](g *Group, own T) ([]T, error) {
	text, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	texts, err := g.AllGather(text)
	if err != nil {
		return nil, err
	}
	all := make([]T, len(texts))
	for rank, text := range texts {
		if err := json.Unmarshal(text, &all[rank]); err != nil {
			return nil, fmt.Errorf("the message of rank %d: %w", rank, err)
		}
	}
	return all, nil
}

// swapBytes sends bytes to a rank, in pieces, and returns what that sends.
func (g *Group) swapBytes(tag, with int, send []byte) (received []byte, err error) {
	// lengths
	memory, err := g.buffer(tag, 16)
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint64(memory, uint64(len(send)))
	if err := g.swap(with, tag, memory[:8], memory[8:]); err != nil {
		return nil, err
	}
	left := binary.LittleEndian.Uint64(memory[8:])

	// pieces
	for left > 0 || len(send) > 0 {
		out, in := min(len(send), pieceBytes), int(min(left, pieceBytes))
		if memory, err = g.buffer(tag, padded(out)+padded(in)); err != nil {
			return nil, err
		}
		sent, got := memory[:padded(out)], memory[padded(out):]
		copy(sent, send[:out])
		if err := g.swap(with, tag, sent, got); err != nil {
			return nil, err
		}
		received = append(received, got[:in]...)
		send, left = send[out:], left-uint64(in)
	}
	return received, nil
}

func padded(n int) int { return (n + 3) / 4 * 4 }

// SumNumbers replaces each number by its sum over all ranks, in the order of the tree.
func (g *Group) SumNumbers(values []float64) error {
	return g.combine(values, func(own, other float64) float64 { return own + other })
}

// MaxNumbers replaces each number by the largest of all ranks.
func (g *Group) MaxNumbers(values []float64) error { return g.combine(values, math.Max) }

// combine replaces each value by the combination of those of all ranks in the tree: at each level that of two
// neighbours, which both compute, so that the operation must be commutative.
func (g *Group) combine(values []float64, of func(a, b float64) float64) error {
	n := 8 * len(values)
	memory, err := g.buffer(tagNumbers, 2*n)
	if err != nil {
		return err
	}
	send, receive := memory[:n], memory[n:]
	for distance := 1; distance < g.ranks; distance *= 2 {
		for i, v := range values {
			binary.LittleEndian.PutUint64(send[8*i:], math.Float64bits(v))
		}
		if err := g.swap(g.rank^distance, tagNumbers, send, receive); err != nil {
			return err
		}
		for i, v := range values {
			values[i] = of(v, math.Float64frombits(binary.LittleEndian.Uint64(receive[8*i:])))
		}
	}
	return nil
}

// ErrLate is the error of Meet where not all ranks have called it in time.
var ErrLate = errors.New("the other processes do not end")

// longestText is the most bytes of a text of Meet that are sent.
const longestText = 1 << 12

// Meet waits until all ranks have called it, at most for a time, or without limit for 0. Rank 0 then calls decide with
// the texts of all by rank, and all ranks return its result, the others not before rank 0 has it. It is the last method
// of a group that a rank calls, while others may be in any method.
func (g *Group) Meet(text string, limit time.Duration, decide func(texts []string) int) (decision int, err error) {
	text = text[:min(len(text), longestText)]
	if g.rank > 0 {
		return inTime(limit, func() (int, error) {
			if _, err := g.gatherTexts(text); err != nil {
				return 0, err
			}
			answer, err := g.swapBytes(tagMeet, 0, nil)
			if err != nil {
				return 0, err
			}
			return strconv.Atoi(string(answer))
		})
	}
	texts, err := inTime(limit, func() ([]string, error) { return g.gatherTexts(text) })
	if err != nil {
		return 0, err
	}
	decision = decide(texts)
	for rank := 1; rank < g.ranks && err == nil; rank++ {
		_, err = g.swapBytes(tagMeet, rank, []byte(strconv.Itoa(decision)))
	}
	return decision, err
}

// gatherTexts returns the texts of Meet by rank on rank 0, and nil on the others.
func (g *Group) gatherTexts(own string) (texts []string, err error) {
	if g.rank != 0 {
		_, err := g.swapBytes(tagMeet, 0, []byte(own))
		return nil, err
	}
	texts = []string{own}
	for rank := 1; rank < g.ranks; rank++ {
		of, err := g.swapBytes(tagMeet, rank, nil)
		if err != nil {
			return nil, err
		}
		texts = append(texts, string(of))
	}
	return texts, nil
}

// inTime calls do, and returns ErrLate where it does not return within a time that is not 0.
func inTime[T any](limit time.Duration, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	ended := make(chan result, 1)
	go func() {
		value, err := do()
		ended <- result{value, err}
	}()
	var late <-chan time.Time
	if limit > 0 {
		late = time.After(limit)
	}
	select {
	case r := <-ended:
		return r.value, r.err
	case <-late:
		var none T
		return none, ErrLate
	}
}

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
