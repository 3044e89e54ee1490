package collective

import (
	"bytes"
	"fmt"
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
