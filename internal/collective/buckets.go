package collective

import (
	"unsafe"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// Floats returns memory of n zeros for values that are sent.
func (g *Group) Floats(n int) ([]float32, error) {
	memory, err := g.transport.Allocate(4 * n)
	if err != nil {
		return nil, err
	}
	return floats(memory)[:n], nil
}

// floats returns the memory of a message, which is aligned, as values.
func floats(b []byte) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/4)
}

// bytesOf returns the memory of values.
func bytesOf(values []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), 4*len(values))
}

// Part returns the range of units whose sums a rank has after Scatter: they are halved as often as there are bits in
// ranks, the lowest bit of the rank first.
func Part(units, rank, ranks int) (from, to int) {
	to = units
	for distance := 1; distance < ranks; distance *= 2 {
		if middle := half(from, to); rank&distance == 0 {
			to = middle
		} else {
			from = middle
		}
	}
	return from, to
}

// half returns where a range of units is divided.
func half(from, to int) int { return to - (to-from)/2 }

// Scatter replaces the values of this rank's Part of the units by their sums over all ranks, and others by sums over
// some of them (recursive halving, Thakur et al. 2005, with the nearest neighbours first): the sums have the order of
// the tree. Unit i is values[bounds[i]:bounds[i+1]], in memory of Floats. Lanes, from 0, run beside each other.
func (g *Group) Scatter(lane int, values []float32, bounds []int) error {
	from, to := 0, len(bounds)-1
	for distance := 1; distance < g.ranks; distance *= 2 {
		middle := half(from, to)
		keep, give := values[bounds[from]:bounds[middle]], values[bounds[middle]:bounds[to]]
		if g.rank&distance != 0 {
			keep, give = give, keep
			from = middle
		} else {
			to = middle
		}
		tag := tagBuckets + lane
		other, err := g.buffer(tag, 4*len(keep))
		if err != nil {
			return err
		}
		if err := g.exchange(g.rank^distance, tag, bytesOf(give), other); err != nil {
			return err
		}
		kernel.Add(keep, floats(other))
	}
	return nil
}

// GatherParts replaces the values of the other ranks' parts of the units by those that these ranks have.
func (g *Group) GatherParts(lane int, values []float32, bounds []int) error {
	part := func(rank, ranks int) []byte {
		from, to := Part(len(bounds)-1, rank%ranks, ranks)
		return bytesOf(values[bounds[from]:bounds[to]])
	}
	for distance := g.ranks / 2; distance > 0; distance /= 2 {
		partner := g.rank ^ distance
		err := g.exchange(partner, tagBuckets+lane, part(g.rank, 2*distance), part(partner, 2*distance))
		if err != nil {
			return err
		}
	}
	return nil
}

// Bounds returns the bounds of units of at most size values.
func Bounds(values, size int) []int {
	var bounds []int
	for at := 0; at < values; at += size {
		bounds = append(bounds, at)
	}
	return append(bounds, values)
}
