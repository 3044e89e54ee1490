package nn

import (
	"slices"
	"testing"
)

func TestCopiesUseTheirMemoryAgain(t *testing.T) {
	var c Copies
	x, y := []float32{1, 2}, []float32{3, 4}
	first, second := c.Clone(x), c.Clone(y)
	x[0] = 5
	if !slices.Equal(first, []float32{1, 2}) || !slices.Equal(second, []float32{3, 4}) || c.Clone(nil) != nil {
		t.Errorf("copies are %v and %v", first, second)
	}
	c.Reuse()
	if again := c.Clone(y); &again[0] != &first[0] || !slices.Equal(again, y) {
		t.Errorf("the next copy is %v, in other memory", again)
	}
	if got := (*Copies)(nil).Clone(x); &got[0] == &x[0] || !slices.Equal(got, x) {
		t.Errorf("without memory the copy is %v", got)
	}
}
