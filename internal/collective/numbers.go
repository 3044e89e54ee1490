package collective

import (
	"encoding/binary"
	"math"
)

// SumNumbers replaces each number by its sum over all ranks, in the order of the tree.
func (g *Group) SumNumbers(values []float64) error {
	return g.combine(values, func(own, other float64) float64 { return own + other })
}

// MaxNumbers replaces each number by the largest of all ranks.
func (g *Group) MaxNumbers(values []float64) error { return g.combine(values, math.Max) }

// combine replaces each value by the combination of those of all ranks in the tree: at each level that of two
// neighbours, which both compute, so that the operation must be commutative.
func (g *Group) combine(values []float64, of func(a, b float64) float64) error {
	n := 8 * len(values)
	memory, err := g.buffer(tagNumbers, 2*n)
	if err != nil {
		return err
	}
	send, receive := memory[:n], memory[n:]
	for distance := 1; distance < g.ranks; distance *= 2 {
		for i, v := range values {
			binary.LittleEndian.PutUint64(send[8*i:], math.Float64bits(v))
		}
		if err := g.swap(g.rank^distance, tagNumbers, send, receive); err != nil {
			return err
		}
		for i, v := range values {
			values[i] = of(v, math.Float64frombits(binary.LittleEndian.Uint64(receive[8*i:])))
		}
	}
	return nil
}
