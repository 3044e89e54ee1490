package nn

import "slices"

// Copies copies values into memory that it uses again: new memory takes longer to get than to fill. A nil Copies makes
// new copies.
type Copies struct {
	memory    []float32
	used      int            // values of memory
	beside    int            // values for which memory had no space
	allocated chan []float32 // by Prepare, if it is not nil
}

// Prepare allocates memory for n values of copies in the background. It is called before there are copies.
func (c *Copies) Prepare(n int) {
	const page = 1024 // values
	allocated := make(chan []float32, 1)
	c.allocated = allocated
	go func() {
		memory := make([]float32, n)
		for i := 0; i < n; i += page {
			memory[i] = 0 // the system provides a page when it is first written
		}
		allocated <- memory
	}()
}

// Reuse allows the memory of all copies to be overwritten by the next ones.
func (c *Copies) Reuse() {
	if c.beside > 0 {
		c.memory = make([]float32, len(c.memory)+c.beside)
	}
	c.used, c.beside = 0, 0
}

// Floats returns n values, which are not zeros where memory is used again.
func (c *Copies) Floats(n int) []float32 {
	if c == nil {
		return make([]float32, n)
	}
	if c.allocated != nil {
		c.memory, c.allocated = <-c.allocated, nil
	}
	if n > len(c.memory)-c.used {
		c.beside += n
		return make([]float32, n)
	}
	c.used += n
	return c.memory[c.used-n : c.used : c.used]
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
