// Package batch runs the work of many callers together.
package batch

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"time"
)

// ErrFull is the error of a call that the queue has no room for.
var ErrFull = errors.New("the queue is full")

// ErrClosed is the error of a call after Close.
var ErrClosed = errors.New("closed")

// Options of a queue.
type Options struct {
	// Size is the most that the items of a batch have together, as the queue's function measures them; a larger item is
	// a batch of its own.
	Size int
	// Wait is how long after a batch the next one waits until as many calls are there as that one had: callers that got
	// their results together are likely to call again together. A call that comes later, or after a batch of one call,
	// runs at once.
	Wait time.Duration
	// Most is how many items may wait; 0: any number. A call of more items than that is refused even if none waits.
	Most int
	// Observe, if not nil, is called after each batch, with its number of items, their size and the time that it took.
	Observe func(items, size int, took time.Duration)
}

// Queue collects the items of concurrent calls in batches, which one goroutine processes. A batch takes items of all
// calls in turn, so that a call with few items does not wait for the end of one with many.
type Queue[I, O any] struct {
	options Options
	size    func(I) int
	process func([]I) ([]O, error)

	mu      sync.Mutex
	calls   []*call[I, O] // with items that wait, in the order of their turns
	waiting int           // items
	closed  bool
	changed chan struct{} // a call came, or Close; holds one
	ended   chan struct{} // the goroutine returned
}

type call[I, O any] struct {
	items   []I
	results []O
	taken   int // items that are in batches
	left    int // items without a result
	err     error
	done    chan struct{}
}

// New starts a queue. process returns a result for each item, or an error, after which it may be called again with some
// of them; size measures an item.
func New[I, O any](o Options, size func(I) int, process func([]I) ([]O, error)) *Queue[I, O] {
	q := &Queue[I, O]{options: o, size: size, process: process,
		changed: make(chan struct{}, 1), ended: make(chan struct{})}
	go q.work()
	return q
}

// Do returns the results of items, in their order. Without a result when ctx is done it returns the context's error,
// and items that are in no batch yet are dropped.
func (q *Queue[I, O]) Do(ctx context.Context, items ...I) ([]O, error) {
	if err := ctx.Err(); err != nil || len(items) == 0 {
		return nil, err
	}
	c := &call[I, O]{items: items, results: make([]O, len(items)), left: len(items),
		done: make(chan struct{})}
	if err := q.add(c); err != nil {
		return nil, err
	}
	select {
	case <-c.done:
		return c.results, c.err
	case <-ctx.Done():
		q.drop(c)
		return nil, ctx.Err()
	}
}

// Waiting returns the number of items that are in no batch yet.
func (q *Queue[I, O]) Waiting() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.waiting
}

// Close waits until the calls before it have their results, and ends the queue.
func (q *Queue[I, O]) Close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
	<-q.ended
}

func (q *Queue[I, O]) add(c *call[I, O]) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case q.closed:
		return ErrClosed
	case q.options.Most > 0 && q.waiting+len(c.items) > q.options.Most:
		return ErrFull
	}
	q.calls = append(q.calls, c)
	q.waiting += len(c.items)
	q.signal()
	return nil
}

// drop removes the items of a call that wait.
func (q *Queue[I, O]) drop(c *call[I, O]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if at := slices.Index(q.calls, c); at >= 0 {
		q.calls = slices.Delete(q.calls, at, at+1)
		q.waiting -= len(c.items) - c.taken
	}
}

func (q *Queue[I, O]) signal() {
	select {
	case q.changed <- struct{}{}:
	default:
	}
}

func (q *Queue[I, O]) work() {
	defer close(q.ended)
	calls := 0          // of the batch before
	var ended time.Time // it
	for q.await() {
		if left := q.options.Wait - time.Since(ended); calls > 1 && left > 0 {
			q.gather(calls, left)
		}
		calls = q.run(q.take())
		ended = time.Now()
	}
}

// await waits for an item, and returns false if none will come.
func (q *Queue[I, O]) await() bool {
	for {
		q.mu.Lock()
		waits, closed := len(q.calls) > 0, q.closed
		q.mu.Unlock()
		if waits || closed {
			return waits
		}
		<-q.changed
	}
}

// gather waits for a number of calls, or until a batch is full, at most for a time.
func (q *Queue[I, O]) gather(calls int, most time.Duration) {
	late := time.NewTimer(most)
	defer late.Stop()
	for {
		q.mu.Lock()
		ready := len(q.calls) >= calls || q.closed || q.full()
		q.mu.Unlock()
		if ready {
			return
		}
		select {
		case <-q.changed:
		case <-late.C:
			return
		}
	}
}

func (q *Queue[I, O]) full() bool {
	size := 0
	for _, c := range q.calls {
		for _, item := range c.items[c.taken:] {
			if size += q.size(item); size >= q.options.Size {
				return true
			}
		}
	}
	return false
}

type place[I, O any] struct {
	*call[I, O]
	at int
}

// take returns the items of the next batch: of each call one, again and again, until the batch is full. The call whose
// turn it is then is the first of the batch after it.
func (q *Queue[I, O]) take() (batch []place[I, O]) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for size := 0; len(q.calls) > 0; {
		c := q.calls[0]
		size += q.size(c.items[c.taken])
		if len(batch) > 0 && size > q.options.Size {
			break
		}
		batch = append(batch, place[I, O]{c, c.taken})
		c.taken++
		q.waiting--
		q.calls = q.calls[1:]
		if c.taken < len(c.items) {
			q.calls = append(q.calls, c)
		}
	}
	return batch
}

// run processes a batch, hands the results out, and returns the number of calls in it. After an error, or a panic, each
// call's items are processed apart, so that those of one call are no error of the others; a call that has one is done.
func (q *Queue[I, O]) run(batch []place[I, O]) (calls int) {
	if len(batch) == 0 { // all calls were dropped meanwhile
		return 0
	}
	items := make([]I, len(batch))
	of := map[*call[I, O]][]place[I, O]{}
	for i, p := range batch {
		items[i], of[p.call] = p.items[p.at], append(of[p.call], p)
	}
	results, err := q.processed(items)
	if err != nil && len(of) > 1 {
		for _, one := range of {
			q.run(one)
		}
		return len(of)
	}
	for i, p := range batch {
		switch {
		case p.left <= 0: // after an error
		case err != nil:
			q.drop(p.call)
			p.err, p.left = err, 0
			close(p.done)
		default:
			p.results[p.at] = results[i]
			if p.left--; p.left == 0 {
				close(p.done)
			}
		}
	}
	return len(of)
}

func (q *Queue[I, O]) processed(items []I) (results []O, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v\n%s", p, debug.Stack())
		}
	}()
	start := time.Now()
	results, err = q.process(items)
	if q.options.Observe != nil {
		size := 0
		for _, item := range items {
			size += q.size(item)
		}
		q.options.Observe(len(items), size, time.Since(start))
	}
	if err == nil && len(results) != len(items) {
		err = fmt.Errorf("%d results for %d items", len(results), len(items))
	}
	return results, err
}
