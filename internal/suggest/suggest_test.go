package suggest

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	names := []string{"dropout", "crf", "linear", "max_pool"}
	for word, want := range map[string]string{
		"droput": "dropout", "dorpout": "dropout", "Dropout": "dropout", "max_pol": "max_pool", "maxpool": "max_pool",
		"cfr": "crf", "cr": "crf", "xyz": "", "bilinear": "linear", "focus": "", "": "", strings.Repeat("x", 1<<20): "",
	} {
		if got, ok := Nearest(word, names); got != want || ok != (want != "") {
			t.Errorf("Nearest(%.20q) = %q, %v; want %q", word, got, ok, want)
		}
	}
}

func TestEdits(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"kitten", "sitting", 3}, {"ab", "ba", 1}, {"abcd", "acbd", 1},
		{"é", "e", 1}} {
		if got := edits(test.a, test.b); got != test.want {
			t.Errorf("edits(%q, %q) = %d, want %d", test.a, test.b, got, test.want)
		}
	}
}
