package corpus

import (
	"fmt"
	"testing"
)

func TestMarksOfRecords(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []string
		want   string // use, leave, open, other, named
	}{
		{"status", []string{"submitted", "discarded", "draft"}, "[submitted] [discarded] [draft] [] true"},
		{"review", []string{"Approved", "declined", "?"}, "[Approved] [declined] [] [?] true"},
		{"meta.state", []string{"done", "skipped", "todo", ""}, "[done] [skipped] [ todo] [] true"},
		{"deleted", []string{"0.0", "1.0", ""}, "[ 0.0] [1.0] [] [] true"},
		{"is_valid", []string{"yes", "no", ""}, "[yes] [no] [] [] true"},
		{"answer", []string{"yes", "no", "skip"}, "[no yes] [skip] [] [] true"},
		{"mood", []string{"good", "bad", "accepted", "rejected"}, "[accepted good] [rejected] [] [bad] false"},
	} {
		values := map[string]int{}
		for _, value := range test.values {
			values[value]++
		}
		m := MarksOf(test.name, values)
		if got := fmt.Sprint(m.Use, " ", m.Leave, " ", m.Open, " ", m.Other, " ", m.Named); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}
