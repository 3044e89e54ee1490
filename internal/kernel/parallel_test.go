package kernel

import (
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
)

func TestParallelRunsEachTileOnce(t *testing.T) {
	defer SetThreads(0)
	for threads := 1; threads <= 3; threads++ {
		SetThreads(threads)
		for _, n := range []int{0, 1, 7, 8, 9, 100} {
			var lock sync.Mutex
			seen := make([]int, n)
			Parallel(n, 8, func(lo, hi int) {
				lock.Lock()
				defer lock.Unlock()
				if lo%8 != 0 || hi != min(lo+8, n) {
					t.Errorf("of %d: tile %d:%d", n, lo, hi)
				}
				for i := lo; i < hi; i++ {
					seen[i]++
				}
			})
			for i, times := range seen {
				if times != 1 {
					t.Errorf("of %d with %d threads: %d was run %d times", n, threads, i, times)
				}
			}
		}
	}
}

func TestJobsOfChangingSizesRunEachPieceOnce(t *testing.T) {
	defer SetThreads(0)
	var runs [50]atomic.Int32
	for job := range 3000 {
		SetThreads(2 + job%4)
		pieces := 1 + job*7%len(runs)
		Parallel(pieces, 1, func(i, _ int) { runs[i].Add(1) })
		for i := range runs {
			want := int32(0)
			if i < pieces {
				want = 1
			}
			if got := runs[i].Swap(0); got != want {
				t.Fatalf("job %d: piece %d of %d was run %d times", job, i, pieces, got)
			}
		}
	}
}

// A sender may be interrupted between what the receiver sees first and waking it. It then wakes it in its next wait.
func TestTheEndOfAnEarlierSendIsNoSignal(t *testing.T) {
	var s signal
	s.init()
	s.sent.Store(true) // the begin of a send
	s.wait()

	received := make(chan bool)
	go func() {
		s.wait()
		close(received)
	}()
	asleep := func() {
		for !s.asleep.Load() {
			select {
			case <-received:
				t.Fatal("a signal is received that was not sent")
			default:
				runtime.Gosched()
			}
		}
	}
	asleep()
	if s.asleep.Swap(false) { // the end of the send
		s.wake <- struct{}{}
	}
	asleep()
	s.send()
	<-received
}

// A goroutine whose piece takes long does not keep its other pieces: this one ends only after all others have.
func TestPiecesOfASlowGoroutineAreTakenByOthers(t *testing.T) {
	defer SetThreads(0)
	for _, threads := range []int{2, 3} {
		SetThreads(threads)
		const pieces = 20
		for slow := range pieces {
			var others sync.WaitGroup
			others.Add(pieces - 1)
			Parallel(pieces, 1, func(i, _ int) {
				if i != slow {
					others.Done()
					return
				}
				others.Wait()
			})
		}
	}
}

func TestRangesAreTakenFromBothEnds(t *testing.T) {
	var r pieceRange
	if _, ok := r.first(); ok {
		t.Error("the zero value has a piece")
	}
	r.set(3, 7)
	take := func(take func() (int, bool), want int) {
		t.Helper()
		if piece, ok := take(); !ok || piece != want {
			t.Errorf("piece %d, %v, want %d", piece, ok, want)
		}
	}
	take(r.first, 3)
	take(r.last, 6)
	take(r.last, 5)
	take(r.first, 4)
	for _, take := range []func() (int, bool){r.first, r.last} {
		if piece, ok := take(); ok {
			t.Errorf("piece %d of an empty range", piece)
		}
	}
}

func TestThreadsAreLimited(t *testing.T) {
	defer SetThreads(0)
	SetThreads(math.MaxInt)
	if n := Threads(); n < 4 || n > 4*runtime.NumCPU() {
		t.Errorf("%d threads are used", n)
	}
	SetThreads(0)
	if got, want := Threads(), runtime.GOMAXPROCS(0); got != want {
		t.Errorf("%d threads are used for all cores, want %d", got, want)
	}
}

func TestParallelMayBeCalledFromManyGoroutinesAndFromInside(t *testing.T) {
	defer SetThreads(0)
	SetThreads(3)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				var sum atomic.Int64
				Parallel(10, 1, func(i, _ int) {
					Parallel(5, 2, func(lo, hi int) { sum.Add(int64((hi - lo) * i)) })
				})
				if got := sum.Load(); got != 5*45 {
					t.Errorf("sum is %d, want %d", got, 5*45)
				}
			}
		})
	}
	wg.Wait()
}

func TestTilingsAllocateNothing(t *testing.T) {
	if raceEnabled {
		t.Skip("the race detector empties pools")
	}
	defer SetThreads(0)
	x, y := make([]float32, 100_000), make([]float32, 100_000)
	for _, n := range []int{1, 2} {
		SetThreads(n)
		if allocs := testing.AllocsPerRun(100, func() { Add(x, y) }); allocs > 0 {
			t.Errorf("Add with %d threads allocates %v times", n, allocs)
		}
	}
}
