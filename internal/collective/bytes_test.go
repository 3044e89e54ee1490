package collective

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

func TestBytesReachAllRanks(t *testing.T) {
	for _, ranks := range []int{1, 2, 4, 8, 16} {
		inRanks(t, ranks, func(g *Group) error {
			for _, n := range []int{0, 1, 5, 10_000, 2*pieceBytes + 3} {
				if n > pieceBytes && ranks != 4 {
					continue
				}
				own := bytes.Repeat([]byte{byte(g.rank + 1)}, n+g.rank)
				all, err := g.AllGather(own)
				if err != nil {
					return err
				}
				for rank, b := range all {
					if !bytes.Equal(b, bytes.Repeat([]byte{byte(rank + 1)}, n+rank)) {
						return fmt.Errorf("%d bytes of rank %d are %d for all", n+rank, rank, len(b))
					}
				}
			}
			return nil
		})
	}
}

func TestValuesReachAllRanks(t *testing.T) {
	type value struct {
		Rank  int
		Cores []int
	}
	inRanks(t, 4, func(g *Group) error {
		all, err := Gather(g, value{g.rank, make([]int, g.rank)})
		for rank, v := range all {
			if !reflect.DeepEqual(v, value{rank, make([]int, rank)}) {
				return fmt.Errorf("the value of rank %d is %v for all", rank, v)
			}
		}
		return err
	})

	// a rank that sends something else
	inRanks(t, 2, func(g *Group) (err error) {
		if g.rank == 1 {
			_, err = g.AllGather([]byte("a machine"))
			return err
		}
		if _, err = Gather(g, value{}); err == nil || !strings.Contains(err.Error(), "message of rank 1: inv") {
			return fmt.Errorf("bytes that are no JSON: %v", err)
		}
		return nil
	})
}
