package collective

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/collective/collectivetest"
)

func TestWatchFindsASilentRank(t *testing.T) {
	const every, silent = 5 * time.Millisecond, 500 * time.Millisecond
	for _, dead := range []int{-1, 0, 2} {
		transports := collectivetest.Local(4)
		var mutex sync.Mutex
		var lost []int
		var all sync.WaitGroup
		for rank, transport := range transports {
			g, err := New(transport)
			if err != nil {
				t.Fatal(err)
			}
			all.Go(func() {
				if rank == dead {
					return // it never says that it is alive
				}
				stop := g.Watch(every, silent, func(rank int) {
					mutex.Lock()
					defer mutex.Unlock()
					lost = append(lost, rank)
				})
				time.Sleep(4 * every)
				stop()
			})
		}
		all.Wait()
		var want []int
		if dead >= 0 {
			want = []int{dead}
		}
		if !slices.Equal(lost, want) {
			t.Errorf("rank %d is silent: %v are lost", dead, lost)
		}
	}
}
