package queue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"
)

// doubling is a queue that doubles numbers, and takes a second for a batch. It records the batches.
type doubling struct {
	*Queue[*number]
	batches [][]int
}

type number struct{ n, doubled int }

// Do returns the doubles of numbers.
func (d *doubling) Do(ctx context.Context, numbers ...int) ([]int, error) {
	items := make([]*number, len(numbers))
	for i, n := range numbers {
		items[i] = &number{n: n}
	}
	err := d.Queue.Do(ctx, items...)
	results := make([]int, len(numbers))
	for i := range results {
		if err == nil { // else it may be processed now
			results[i] = items[i].doubled
		}
	}
	return results, err
}

func newDoubling(o Options) *doubling {
	d := &doubling{}
	d.Queue = New(o, func(item *number) int { return item.n }, func(items []*number) error {
		var numbers []int
		for _, item := range items {
			numbers = append(numbers, item.n)
		}
		d.batches = append(d.batches, numbers)
		time.Sleep(time.Second)
		for _, item := range items {
			switch item.n {
			case 13:
				return errors.New("unlucky")
			case 666:
				panic("diabolic")
			}
			item.doubled = 2 * item.n
		}
		return nil
	})
	return d
}

// do calls Do after a time, in a goroutine of its own, and checks the results.
func (d *doubling) do(t *testing.T, after time.Duration, items ...int) {
	go func() {
		time.Sleep(after)
		results, err := d.Do(t.Context(), items...)
		if err != nil {
			t.Error(err)
		}
		for i, n := range items {
			if results[i] != 2*n {
				t.Errorf("%d becomes %d", n, results[i])
			}
		}
	}()
}

// sequence is calls, and the batches that they have.
type sequence struct {
	options Options
	calls   func(t *testing.T, d *doubling)
	want    string
}

const ms = time.Millisecond

var sequences = map[string]sequence{
	"an idle queue does not wait": {Options{BatchTokens: 10, Wait: time.Minute}, func(t *testing.T, d *doubling) {
		d.do(t, 0, 1)
		d.do(t, 5*time.Second, 2)
	}, "[[1] [2]]"},
	"calls meet while another runs": {Options{BatchTokens: 10}, func(t *testing.T, d *doubling) {
		d.do(t, 0, 1)
		d.do(t, ms, 2)
		d.do(t, 2*ms, 3, 4)
	}, "[[1] [2 3 4]]"},
	"a batch is full": {Options{BatchTokens: 5}, func(t *testing.T, d *doubling) {
		d.do(t, 0, 1)
		d.do(t, ms, 2)
		d.do(t, 2*ms, 3)
		d.do(t, 3*ms, 1)
	}, "[[1] [2 3] [1]]"},
	"a larger item is alone": {Options{BatchTokens: 5}, func(t *testing.T, d *doubling) {
		d.do(t, 0, 9, 2, 9)
	}, "[[9] [2] [9]]"},
	"calls take turns": {Options{BatchTokens: 4}, func(t *testing.T, d *doubling) {
		d.do(t, 0, 9)
		d.do(t, ms, 1, 1, 1, 1, 1, 1, 1, 1)
		d.do(t, 2*ms, 2)
	}, "[[9] [1 2 1] [1 1 1 1] [1 1]]"},
	"calls of large items take turns too": {Options{BatchTokens: 5}, func(t *testing.T, d *doubling) {
		d.do(t, 0, 9)
		d.do(t, ms, 5, 5, 5, 5)
		d.do(t, 2*ms, 1)
		d.do(t, 3*ms, 2, 3)
	}, "[[9] [5] [1 2] [5] [3] [5] [5]]"},
	"as many calls are awaited as before": {Options{BatchTokens: 10, Wait: 500 * ms}, func(t *testing.T, d *doubling) {
		d.do(t, 0, 1)
		d.do(t, ms, 1)
		d.do(t, 2*ms, 2) // with the one before from 1000 to 2000 ms
		d.do(t, 2*time.Second, 3)
		d.do(t, 2400*ms, 4)    // with the one before from then on
		d.do(t, 3500*ms, 5)    // waits until 3900 ms
		d.do(t, 3800*ms, 1, 1) // with it, since as many calls have come
		d.do(t, 5500*ms, 6)    // more than 500 ms later: at once
		d.do(t, 5600*ms, 7)
	}, "[[1] [1 2] [3 4] [5 1 1] [6] [7]]"},
	"not longer than that": {Options{BatchTokens: 10, Wait: 500 * ms}, func(t *testing.T, d *doubling) {
		d.do(t, 0, 1)
		d.do(t, ms, 1)
		d.do(t, 2*ms, 2)
		d.do(t, 2100*ms, 3) // waits until 2500 ms
		d.do(t, 2501*ms, 4)
	}, "[[1] [1 2] [3] [4]]"},
	"not once a batch is full": {Options{BatchTokens: 5, Wait: time.Minute}, func(t *testing.T, d *doubling) {
		d.do(t, 0, 1)
		d.do(t, ms, 2)
		d.do(t, 2*ms, 3)
		d.do(t, 2500*ms, 4, 2)
		d.do(t, 2600*ms, 1)
	}, "[[1] [2 3] [4] [2 1]]"},
}

func TestBatches(t *testing.T) {
	for name, test := range sequences {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDoubling(test.options)
				test.calls(t, d)
				time.Sleep(time.Hour)
				d.Close()
				if got := fmt.Sprint(d.batches); got != test.want {
					t.Errorf("the batches are %s, want %s", got, test.want)
				}
			})
		})
	}
}

func TestAFullQueueRefusesCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoubling(Options{BatchTokens: 1, MaxWaiting: 2})
		defer d.Close()
		d.do(t, 0, 1)
		time.Sleep(time.Millisecond) // it runs, and does not wait
		d.do(t, 0, 2, 3)
		synctest.Wait()
		if n := d.Waiting(); n != 2 {
			t.Errorf("%d items wait, want 2", n)
		}
		if _, err := d.Do(t.Context(), 4); err != ErrBusy {
			t.Errorf("error is %v, want %v", err, ErrBusy)
		}
		time.Sleep(time.Second)
		d.do(t, 0, 5)
		time.Sleep(time.Hour)
		if n := d.Waiting(); n != 0 {
			t.Errorf("%d items wait in the end", n)
		}
		if _, err := d.Do(t.Context(), 1, 2, 3); err != ErrBusy {
			t.Errorf("more items than may wait: error is %v, want %v", err, ErrBusy)
		}
	})
}

// A call that has its results, whose items may have megabytes of them, is not kept by those that wait behind it.
func TestTheQueueKeepsNoCallThatIsDone(t *testing.T) {
	goes := make(chan struct{})
	q := New(Options{BatchTokens: 1}, func(*number) int { return 1 }, func([]*number) error {
		<-goes
		return nil
	})
	defer q.Close()
	const calls = 8
	done := make([]weak.Pointer[number], calls)
	var all sync.WaitGroup
	for i := range done {
		item := &number{n: i}
		done[i] = weak.Make(item)
		all.Go(func() {
			if err := q.Do(t.Context(), item); err != nil {
				t.Error(err)
			}
		})
		for q.Waiting() < i { // the first is in a batch at once
			time.Sleep(time.Millisecond)
		}
	}
	for range calls {
		goes <- struct{}{}
	}
	all.Wait()
	kept := calls
	for range 100 { // the queue may not have left the last batch
		runtime.GC()
		kept = 0
		for _, item := range done {
			if item.Value() != nil {
				kept++
			}
		}
		if kept == 0 {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("%d of %d items are kept", kept, calls)
}

func TestACancelledCallLeavesTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoubling(Options{BatchTokens: 2})
		d.do(t, 0, 1)
		time.Sleep(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second/2)
		defer cancel()
		start := time.Now()
		if _, err := d.Do(ctx, 2, 3, 4); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		if took := time.Since(start); took != time.Second/2 {
			t.Errorf("Do returned after %v", took)
		}
		d.do(t, 0, 5)
		time.Sleep(100 * time.Millisecond)
		ended, cancel := context.WithTimeout(t.Context(), 3*time.Second/2) // ends while 1 runs
		defer cancel()
		if _, err := d.Do(ended, 1, 6); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		time.Sleep(time.Hour)
		if _, err := d.Do(ctx, 7); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error is %v", err)
		}
		d.Close()
		if got := fmt.Sprint(d.batches); got != "[[1] [5] [1]]" || d.Waiting() != 0 {
			t.Errorf("the batches are %s, %d items wait", got, d.Waiting())
		}
		if _, err := d.Do(t.Context(), 8); err != ErrClosed {
			t.Errorf("error is %v, want %v", err, ErrClosed)
		}
	})
}

func TestErrorsAndPanicsAreOfTheBatchAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDoubling(Options{BatchTokens: 14})
		for _, test := range []struct {
			items []int
			want  string
		}{{[]int{1, 13, 2, 3, 20}, "unlucky"}, {[]int{666}, "panic: diabolic"}} {
			if _, err := d.Do(t.Context(), test.items...); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error is %v, want %s", err, test.want)
			}
		}
		d.do(t, 0, 1)
		time.Sleep(time.Hour)
		d.Close()
		if got := fmt.Sprint(d.batches); got != "[[1 13] [666] [1]]" || d.Waiting() != 0 {
			t.Errorf("the batches are %s, %d items wait", got, d.Waiting())
		}
	})
}

func TestACallWithAnErrorIsNoErrorOfTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		items, size := 0, 0
		d := newDoubling(Options{BatchTokens: 1000, Observe: func(n, tokens int, _ time.Duration) {
			items, size = items+n, size+tokens
		}})
		d.do(t, 0, 5) // the calls after it meet while this batch runs
		for _, bad := range []int{13, 666} {
			go func() {
				time.Sleep(time.Millisecond)
				if _, err := d.Do(t.Context(), 1, bad); err == nil {
					t.Errorf("no error for %d", bad)
				}
			}()
		}
		d.do(t, 2*time.Millisecond, 7, 8)
		d.do(t, 3*time.Millisecond, 9)
		time.Sleep(time.Hour)
		d.Close()
		if d.Waiting() != 0 || len(d.batches) != 6 {
			t.Errorf("the batches are %v, %d items wait; want one for each call after the batch of all", d.batches,
				d.Waiting())
		}
		if items != 4 || size != 5+7+8+9 {
			t.Errorf("observed %d items of size %d, want those with a result, once", items, size)
		}
	})
}

func TestResultsAreTheCallersOwn(t *testing.T) {
	d := &doubling{}
	tokens := func(item *number) int { return item.n % 7 }
	d.Queue = New(Options{BatchTokens: 20}, tokens, func(items []*number) error {
		for _, item := range items {
			item.doubled = 2 * item.n
		}
		return nil
	})
	var callers sync.WaitGroup
	for c := range 20 {
		callers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 0))
			for range 300 {
				items := make([]int, r.IntN(9))
				for i := range items {
					items[i] = r.IntN(1000)
				}
				ctx, cancel := context.WithCancel(t.Context())
				if r.IntN(4) == 0 {
					go cancel()
				}
				results, err := d.Do(ctx, items...)
				if err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				for i, n := range results {
					if err == nil && n != 2*items[i] {
						t.Errorf("%d becomes %d", items[i], n)
					}
				}
				cancel()
			}
		})
	}
	callers.Wait()
	d.Close()
}
