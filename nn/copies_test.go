package nn

import (
	"slices"
	"testing"
)

func TestCopiesUseTheirMemoryAgain(t *testing.T) {
	for _, prepared := range []int{0, 2, 3, 4, 9} {
		var c Copies
		if prepared > 0 {
			c.Prepare(prepared)
		}
		x, y := []float32{1, 2}, []float32{3, 4}
		var first, second []float32
		for range 3 { // the third has memory for all
			first, second = c.Clone(x), c.Clone(y)
			_ = append(first, 9) // not in the memory of second
			x[0]++
			if !slices.Equal(first, []float32{x[0] - 1, 2}) || !slices.Equal(second, y) || c.Clone(nil) != nil {
				t.Errorf("copies are %v and %v", first, second)
			}
			c.Reuse()
		}
		if again := c.Clone(y); &again[0] != &first[0] || !slices.Equal(again, y) {
			t.Errorf("the next copy is %v, in other memory", again)
		}
	}
	x := []float32{1, 2}
	var c Copies
	c.Prepare(3)
	var first []float32
	for range 3 { // what is beside gets memory of its own: that of the others stays
		copied := c.Clone(x)
		if first == nil {
			first = copied
		}
		if c.Clone(x); &copied[0] != &first[0] {
			t.Error("copies that had memory have other memory")
		}
		c.Reuse()
	}
	if len(c.blocks) != 2 {
		t.Errorf("%d blocks of memory, want 2", len(c.blocks))
	}
	if got := (*Copies)(nil).Clone(x); &got[0] == &x[0] || !slices.Equal(got, x) {
		t.Errorf("without memory the copy is %v", got)
	}
}
