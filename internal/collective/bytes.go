package collective

import (
	"encoding/binary"
	"fmt"
)

const longestMessage = 1 << 30 // bytes

// Broadcast returns rank 0's bytes on all ranks; those of the others are not used.
func (g *Group) Broadcast(b []byte) ([]byte, error) {
	if g.rank == 0 {
		for distance := g.ranks / 2; distance > 0; distance /= 2 {
			if err := g.sendBytes(distance, b); err != nil {
				return nil, err
			}
		}
		return b, nil
	}
	lowest := g.rank & -g.rank // the level at which this rank receives
	b, err := g.receiveBytes(g.rank - lowest)
	if err != nil {
		return nil, err
	}
	for distance := lowest / 2; distance > 0; distance /= 2 {
		if err := g.sendBytes(g.rank+distance, b); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// Gather returns the bytes of all ranks by rank on rank 0, and nil on the others.
func (g *Group) Gather(b []byte) ([][]byte, error) {
	if g.rank != 0 {
		return nil, g.sendBytes(0, b)
	}
	all := [][]byte{b}
	for rank := 1; rank < g.ranks; rank++ {
		of, err := g.receiveBytes(rank)
		if err != nil {
			return nil, err
		}
		all = append(all, of)
	}
	return all, nil
}

// AllGather returns the bytes of all ranks by rank, on all ranks.
func (g *Group) AllGather(b []byte) ([][]byte, error) {
	all, err := g.Gather(b)
	if err != nil {
		return nil, err
	}
	var together []byte
	for _, of := range all {
		together = binary.AppendUvarint(together, uint64(len(of)))
		together = append(together, of...)
	}
	if together, err = g.Broadcast(together); err != nil {
		return nil, err
	}
	all = make([][]byte, g.ranks)
	for rank := range all {
		length, n := binary.Uvarint(together)
		if n <= 0 || length > uint64(len(together)-n) {
			return nil, fmt.Errorf("rank %d: the bytes of rank %d are incomplete", g.rank, rank)
		}
		end := n + int(length)
		all[rank], together = together[n:end:end], together[end:]
	}
	return all, nil
}

// sendBytes sends the length of b and b, which is filled up to a multiple of 4.
func (g *Group) sendBytes(to int, b []byte) error {
	if len(b) > longestMessage {
		return fmt.Errorf("a message of %d bytes is longer than %d", len(b), longestMessage)
	}
	memory, err := g.buffer(tagBytes, 8+padded(len(b)))
	if err != nil {
		return err
	}
	binary.LittleEndian.PutUint64(memory, uint64(len(b)))
	copy(memory[8:], b)
	if err := g.swap(to, tagBytes, memory[:8], nil); err != nil {
		return err
	}
	return g.swap(to, tagBytes, memory[8:], nil)
}

// receiveBytes receives what sendBytes has sent.
func (g *Group) receiveBytes(from int) ([]byte, error) {
	memory, err := g.buffer(tagBytes, 8)
	if err != nil {
		return nil, err
	}
	if err := g.swap(from, tagBytes, nil, memory); err != nil {
		return nil, err
	}
	n := binary.LittleEndian.Uint64(memory)
	if n > longestMessage {
		return nil, fmt.Errorf("rank %d: a message of %d bytes from rank %d is longer than %d", g.rank, n, from,
			longestMessage)
	}
	if memory, err = g.buffer(tagBytes, padded(int(n))); err != nil {
		return nil, err
	}
	if err := g.swap(from, tagBytes, nil, memory); err != nil {
		return nil, err
	}
	return append([]byte{}, memory[:n]...), nil
}

func padded(n int) int { return (n + 3) / 4 * 4 }
