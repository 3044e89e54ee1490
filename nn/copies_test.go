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
	if got := (*Copies)(nil).Clone(x); &got[0] == &x[0] || !slices.Equal(got, x) {
		t.Errorf("without memory the copy is %v", got)
	}
}
