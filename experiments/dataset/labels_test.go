package dataset

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// The first ones have another order as numbers than as strings; "0x1p0", "Inf" and "nan" are numbers only for strconv.
func TestLabelsAreSortedByValueThenByName(t *testing.T) {
	want := []string{"-1", "0x1p0", "1", "9", "10", "1a", "Inf", "nan"}
	for range 50 {
		var train []*corpus.Example
		for _, i := range rand.Perm(len(want)) {
			train = append(train, &corpus.Example{Targets: []corpus.Target{&outputs.LabelTarget{Label: want[i]}}})
		}
		if got := labelNames(outputs.Label, train, 0); !slices.Equal(got, want) {
			t.Fatalf("labels in the order %q, want %q", got, want)
		}
	}
}
