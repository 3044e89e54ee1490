package collective

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestRanksMeet(t *testing.T) {
	for _, ranks := range []int{1, 2, 4, 8} {
		var decided atomic.Bool
		inRanks(t, ranks, func(g *Group) error {
			if g.rank == 0 {
				time.Sleep(20 * time.Millisecond) // the others wait
			}
			text := strings.Repeat("x", g.rank*1000) // those above longestText are truncated
			decision, err := g.Meet(text, 0, func(texts []string) int {
				defer decided.Store(true)
				var lengths, want []int
				for rank, text := range texts {
					lengths, want = append(lengths, len(text)), append(want, min(rank*1000, longestText))
				}
				if !slices.Equal(lengths, want) || len(texts) != ranks {
					t.Errorf("texts of %v bytes, want %v", lengths, want)
				}
				return -3
			})
			if err != nil || decision != -3 || !decided.Load() {
				return fmt.Errorf("Meet returned %d, %v, decided: %v", decision, err, decided.Load())
			}
			return nil
		})
	}
}

// A rank that meets no other ends, and its message is none of what the others exchange.
func TestMeetIsLate(t *testing.T) {
	inRanks(t, 4, func(g *Group) error {
		if g.rank == 3 {
			_, err := g.Meet("alone", 10*time.Millisecond, nil)
			if !errors.Is(err, ErrLate) {
				return fmt.Errorf("Meet returned %v", err)
			}
		}
		all, err := g.AllGather([]byte{byte(g.rank)})
		if want := [][]byte{{0}, {1}, {2}, {3}}; err != nil || !slices.EqualFunc(all, want, slices.Equal) {
			return fmt.Errorf("gathered %v, %v", all, err)
		}
		return nil
	})
}
