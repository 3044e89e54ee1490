// Package queue collects what many callers ask of a model in batches, which are processed together.
package queue

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// ErrBusy is the error of Do where too many items wait.
var ErrBusy = errors.New("too many texts wait for an answer")

// ErrClosed is the error of Do after Close.
var ErrClosed = errors.New("the model is closed")

// Options are those of a queue.
type Options struct {
	BatchTokens int           // of a batch at most; an item with more is a batch of its own
	Wait        time.Duration // after a batch of several calls for as many to come
	MaxWaiting  int           // items that may wait, with more Do returns ErrBusy; 0: any number
	// Observe, if not nil, is called after each batch without an error, with what it had and the time that it took.
	Observe func(items, tokens int, took time.Duration)
}

// Queue collects the items of concurrent calls in batches, which one goroutine processes. A batch takes items of all
// calls in turn, so that a call with few items does not wait for the end of one with many.
type Queue[I any] struct {
	Process func([]I) error // that of New; another one may take its place before the first call
	options Options
	tokens  func(I) int

	mu      sync.Mutex
	calls   []*call[I] // with items that wait, in the order of their turns
	waiting int        // items
	closed  bool
	changed chan struct{} // a call came, or close; holds one
	ended   chan struct{} // the goroutine returned
}

type call[I any] struct {
	items []I
	taken int // items that are in batches
	left  int // items that are not processed
	err   error
	done  chan struct{}
}

// New starts a queue of items with so many tokens. Batches end with process, which writes the results into the items;
// after an error it may be called again with some of them.
func New[I any](o Options, tokens func(I) int, process func([]I) error) *Queue[I] {
	q := &Queue[I]{options: o, tokens: tokens, Process: process,
		changed: make(chan struct{}, 1), ended: make(chan struct{})}
	go q.work()
	return q
}

// Do processes items, and returns when they are. If ctx is done before, it returns the context's error, and items that
// are in no batch yet are dropped.
func (q *Queue[I]) Do(ctx context.Context, items ...I) error {
	if err := ctx.Err(); err != nil || len(items) == 0 {
		return err
	}
	c := &call[I]{items: items, left: len(items), done: make(chan struct{})}
	q.mu.Lock()
	closed, full := q.closed, q.options.MaxWaiting > 0 && q.waiting+len(items) > q.options.MaxWaiting
	if !closed && !full {
		q.calls = append(q.calls, c)
		q.waiting += len(items)
	}
	q.mu.Unlock()
	switch {
	case closed:
		return ErrClosed
	case full:
		return ErrBusy
	}
	q.signal()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		q.drop(c)
		return ctx.Err()
	}
}

// Waiting returns the number of items that are in no batch yet.
func (q *Queue[I]) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// Close waits until the calls before it are processed, and ends the queue.
func (q *Queue[I]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
	<-q.ended
}

// drop removes the items of a call that wait.
func (q *Queue[I]) drop(c *call[I]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := slices.Index(q.calls, c); at >= 0 {
		q.calls = slices.Delete(q.calls, at, at+1)
		q.waiting -= len(c.items) - c.taken
	}
}

func (q *Queue[I]) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

// work processes batches. After a batch of several calls it waits for as many, until Options.Wait is over: callers that
// got their results together are likely to call again together.
func (q *Queue[I]) work() {
	defer close(q.ended)
	calls := 0 // of the batch before
	var late <-chan time.Time
	for {
		q.mu.Lock()
		some, closed := len(q.calls) > 0, q.closed
		ready := len(q.calls) >= calls || closed || q.isFull()
		q.mu.Unlock()
		switch {
		case some && ready:
			calls = q.run(q.take())
			late = time.After(q.options.Wait)
		case closed:
			return
		default:
			select {
			case <-q.changed:
			case <-late:
				calls = 0
			}
		}
	}
}

func (q *Queue[I]) isFull() bool {
	n := 0
	for _, c := range q.calls {
		for _, item := range c.items[c.taken:] {
			if n += q.tokens(item); n >= q.options.BatchTokens {
				return true
			}
		}
	}
	return false
}

type batched[I any] struct {
	*call[I]
	item I
}

// take returns the items of the next batch: of each call one, again and again, until the batch is full. The call whose
// turn it is then is the first of the batch after it.
func (q *Queue[I]) take() (batch []batched[I]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for n := 0; len(q.calls) > 0; {
		c := q.calls[0]
		item := c.items[c.taken]
		n += q.tokens(item)
		if len(batch) > 0 && n > q.options.BatchTokens {
			break
		}
		batch = append(batch, batched[I]{c, item})
		c.taken++
		q.waiting--
		q.calls[0] = nil // the array keeps its room for a while, and would keep the call's results
		q.calls = q.calls[1:]
		if c.taken < len(c.items) {
			q.calls = append(q.calls, c)
		}
	}
	return batch
}

// run processes a batch, and returns the number of calls in it. After an error, or a panic, each call's items are
// processed apart, so that those of one call are no error of the others; a call that has one is done.
func (q *Queue[I]) run(batch []batched[I]) (calls int) {
	if len(batch) == 0 { // all calls were dropped meanwhile
		return 0
	}
	items := make([]I, len(batch))
	of := map[*call[I]][]batched[I]{}
	for i, b := range batch {
		items[i], of[b.call] = b.item, append(of[b.call], b)
	}
	err := q.processed(items)
	if err != nil && len(of) > 1 {
		for _, one := range of {
			q.run(one)
		}
		return len(of)
	}
	for _, b := range batch {
		switch {
		case b.left <= 0: // after an error
		case err != nil:
			q.drop(b.call)
			b.err, b.left = err, 0
			close(b.done)
		default:
			if b.left--; b.left == 0 {
				close(b.done)
			}
		}
	}
	return len(of)
}

func (q *Queue[I]) processed(items []I) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	start := time.Now()
	if err := q.Process(items); err != nil || q.options.Observe == nil {
		return err
	}
	n := 0
	for _, item := range items {
		n += q.tokens(item)
	}
	q.options.Observe(len(items), n, time.Since(start))
	return nil
}
