package nn

import "slices"

// Copies copies values into memory that it uses again: new memory takes longer to get than to fill. A nil Copies makes
// new copies.
type Copies struct {
	all  map[int][][]float32 // by length
	used map[int]int         // how many of each are in use
}

// Reuse allows the memory of all copies to be overwritten by the next ones.
func (c *Copies) Reuse() { clear(c.used) }

// Floats returns n values, which are not zeros where memory is used again.
func (c *Copies) Floats(n int) []float32 {
	if c == nil {
		return make([]float32, n)
	}
	if c.all == nil {
		c.all, c.used = map[int][][]float32{}, map[int]int{}
	}
	if c.used[n] == len(c.all[n]) {
		c.all[n] = append(c.all[n], make([]float32, n))
	}
	c.used[n]++
	return c.all[n][c.used[n]-1]
}

// Clone returns a copy of x, nil of nil.
func (c *Copies) Clone(x []float32) []float32 {
	if c == nil || x == nil {
		return slices.Clone(x)
	}
	y := c.Floats(len(x))
	copy(y, x)
	return y
}
