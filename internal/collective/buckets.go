package collective

import (
	"unsafe"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// granule is what the bounds of parts are multiples of: kernels on a part then have the vectors that they have on the
// whole.
const granule = 64

// half returns where a range of values is divided.
func half(from, to int) int { return min(to, from+((to-from)/2+granule-1)/granule*granule) }

// Part returns the range of a bucket of n values whose sums a rank has after Scatter: the bucket is halved as often as
// there are bits in ranks, the lowest bit of the rank first.
func Part(n, rank, ranks int) (from, to int) {
	to = n
	for distance := 1; distance < ranks; distance *= 2 {
		if middle := half(from, to); rank&distance == 0 {
			to = middle
		} else {
			from = middle
		}
	}
	return from, to
}

// Scatter replaces the values of this rank's Part by their sums over all ranks, and others by sums over some of them
// (recursive halving, Thakur et al. 2005, with the nearest neighbours first): the sums have the order of the tree.
// Lanes, from 0, run beside each other.
func (g *Group) Scatter(lane int, values []float32) error {
	from, to := 0, len(values)
	for distance := 1; distance < g.ranks; distance *= 2 {
		middle := half(from, to)
		keep, give := values[from:middle], values[middle:to]
		if g.rank&distance != 0 {
			keep, give = give, keep
			from = middle
		} else {
			to = middle
		}
		other, err := g.exchangeValues(lane, g.rank^distance, give, len(keep))
		if err != nil {
			return err
		}
		kernel.Add(keep, other)
	}
	return nil
}

// GatherParts replaces the values of the other ranks' parts by those that these ranks have.
func (g *Group) GatherParts(lane int, values []float32) error {
	for distance := g.ranks / 2; distance > 0; distance /= 2 {
		partner := g.rank ^ distance
		from, to := Part(len(values), g.rank%(2*distance), 2*distance)
		otherFrom, otherTo := Part(len(values), partner%(2*distance), 2*distance)
		other, err := g.exchangeValues(lane, partner, values[from:to], otherTo-otherFrom)
		if err != nil {
			return err
		}
		copy(values[otherFrom:otherTo], other)
	}
	return nil
}

// exchangeValues sends values to a rank and returns n values from it, in memory that the lane uses again.
func (g *Group) exchangeValues(lane, with int, send []float32, n int) ([]float32, error) {
	tag := tagBuckets + lane
	memory, err := g.buffer(tag, 4*(len(send)+n))
	if err != nil {
		return nil, err
	}
	outgoing, incoming := memory[:4*len(send)], memory[4*len(send):]
	copy(floats(outgoing), send)
	return floats(incoming), g.exchange(with, tag, outgoing, incoming)
}

// floats returns the memory of a message, which is aligned, as values.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}
