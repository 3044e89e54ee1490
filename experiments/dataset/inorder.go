package dataset

import (
	"sync/atomic"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// chunkSize is how many elements one goroutine of inOrder makes at once.
const chunkSize = 64

// chunk is neighbouring elements of inOrder.
type chunk[T any] struct {
	from   int
	values []T
	err    error // of the element after values
	done   chan struct{}
}

// inOrder calls visit with of(0), …, of(n-1), in this order; several goroutines call of. It returns the first
// error of either.
func inOrder[T any](n int, of func(i int) (T, error), visit func(i int, v T) error) error {
	workers := kernel.Threads()
	var stopped atomic.Bool
	pending, work := make(chan *chunk[T], 2*workers), make(chan *chunk[T], 2*workers)
	for range workers {
		go func() {
			for c := range work {
				for i := c.from; i < min(n, c.from+chunkSize) && c.err == nil && !stopped.Load(); i++ {
					var v T
					if v, c.err = of(i); c.err == nil {
						c.values = append(c.values, v)
					}
				}
				close(c.done)
			}
		}()
	}
	go func() {
		for from := 0; from < n && !stopped.Load(); from += chunkSize {
			c := &chunk[T]{from: from, done: make(chan struct{})}
			work <- c
			pending <- c
		}
		close(work)
		close(pending)
	}()

	var err error
	for c := range pending {
		<-c.done
		for i, v := range c.values {
			if err == nil {
				err = visit(c.from+i, v)
			}
		}
		if err == nil {
			err = c.err
		}
		if err != nil {
			stopped.Store(true) // the chunks that remain are received, so that the goroutines end
		}
	}
	return err
}
