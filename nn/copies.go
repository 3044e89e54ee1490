package nn

import "slices"

// Copies copies values into memory that it uses again: new memory takes longer to get than to fill. A nil Copies makes
// new copies.
type Copies struct {
	blocks    []copiesBlock
	beside    int            // values for which no block had space
	allocated chan []float32 // by Prepare, if it is not nil
}

// copiesBlock is memory of which the first values are in use.
type copiesBlock struct {
	memory []float32
	used   int
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
		c.blocks = append(c.blocks, copiesBlock{memory: make([]float32, c.beside)})
	}
	for i := range c.blocks {
		c.blocks[i].used = 0
	}
	c.beside = 0
}

// Floats returns n values, which are not zeros where memory is used again.
func (c *Copies) Floats(n int) []float32 {
	if c == nil {
		return make([]float32, n)
	}
	if c.allocated != nil {
		c.blocks, c.allocated = []copiesBlock{{memory: <-c.allocated}}, nil
	}
	for i := range c.blocks {
		if b := &c.blocks[i]; n <= len(b.memory)-b.used {
			b.used += n
			return b.memory[b.used-n : b.used : b.used]
		}
	}
	c.beside += n
	return make([]float32, n)
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
