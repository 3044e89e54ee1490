package collective

import "encoding/binary"

// pieceBytes is the largest part of a byte string that is one message, a multiple of 4.
const pieceBytes = 4 << 20

// Broadcast returns rank 0's bytes on all ranks; those of the others are not used.
func (g *Group) Broadcast(b []byte) ([]byte, error) {
	level := g.ranks // at which this rank receives
	if g.rank != 0 {
		level = g.rank & -g.rank
		var err error
		if b, err = g.swapBytes(g.rank-level, nil); err != nil {
			return nil, err
		}
	}
	for distance := level / 2; distance > 0; distance /= 2 {
		if _, err := g.swapBytes(g.rank+distance, b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Gather returns the bytes of all ranks by rank on rank 0, and nil on the others.
func (g *Group) Gather(b []byte) ([][]byte, error) {
	if g.rank != 0 {
		_, err := g.swapBytes(0, b)
		return nil, err
	}
	all := [][]byte{b}
	for rank := 1; rank < g.ranks; rank++ {
		of, err := g.swapBytes(rank, nil)
		if err != nil {
			return nil, err
		}
		all = append(all, of)
	}
	return all, nil
}

// AllGather returns the bytes of all ranks by rank, on all ranks: at each level two neighbours swap what they have.
func (g *Group) AllGather(b []byte) ([][]byte, error) {
	all := make([][]byte, g.ranks)
	all[g.rank] = b
	for distance := 1; distance < g.ranks; distance *= 2 {
		with := g.rank ^ distance
		own, other := g.rank&^(distance-1), with&^(distance-1) // where those begin that the two have
		for i := range distance {
			var err error
			if all[other+i], err = g.swapBytes(with, all[own+i]); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// swapBytes sends bytes to a rank, in pieces, and returns what that sends.
func (g *Group) swapBytes(with int, send []byte) (received []byte, err error) {
	// lengths
	memory, err := g.buffer(tagBytes, 16)
	if err != nil {
		return nil, err
	}
	binary.LittleEndian.PutUint64(memory, uint64(len(send)))
	if err := g.swap(with, tagBytes, memory[:8], memory[8:]); err != nil {
		return nil, err
	}
	left := binary.LittleEndian.Uint64(memory[8:])

	// pieces
	for left > 0 || len(send) > 0 {
		out, in := min(len(send), pieceBytes), int(min(left, pieceBytes))
		if memory, err = g.buffer(tagBytes, padded(out)+padded(in)); err != nil {
			return nil, err
		}
		sent, got := memory[:padded(out)], memory[padded(out):]
		copy(sent, send[:out])
		if err := g.swap(with, tagBytes, sent, got); err != nil {
			return nil, err
		}
		received = append(received, got[:in]...)
		send, left = send[out:], left-uint64(in)
	}
	return received, nil
}

// padded returns n bytes filled up to a multiple of 4.
func padded(n int) int { return (n + 3) / 4 * 4 }
