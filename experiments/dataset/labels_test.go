package dataset

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// The first ones have another order as numbers than as strings; "0x1p0", "Inf" and "nan" are numbers only for strconv.
func TestLabelsAreSortedByValueThenByName(t *testing.T) {
	want := []string{"-1", "0x1p0", "1", "9", "10", "1a", "Inf", "nan"}
	for range 50 {
		counts := map[string]int{}
		for _, i := range rand.Perm(len(want)) {
			counts[want[i]]++
		}
		if got := labelNames(counts); !slices.Equal(got, want) {
			t.Fatalf("labels in the order %q, want %q", got, want)
		}
	}
}
