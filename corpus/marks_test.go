package corpus

import (
	"fmt"
	"testing"
)

func TestMarksOfRecords(t *testing.T) {
	for _, test := range []struct {
		name   string
		values []string
		want   string // use, leave, open, other, whether a tool writes it
	}{
		{"status", []string{"submitted", "discarded", "draft"}, "[submitted] [discarded] [draft] [] true"},
		{"review", []string{"Approved", "declined", "?"}, "[Approved] [declined] [] [?] false"},
		{"review_status", []string{"approved", "rejected", "Needs review"},
			"[approved] [rejected] [Needs review] [] false"},
		{"meta.state", []string{"done", "skipped", "todo", ""}, "[done] [skipped] [ todo] [] false"},
		{"deleted", []string{"0.0", "1.0", ""}, "[ 0.0] [1.0] [] [] false"},
		{"is_valid", []string{"yes", "no", ""}, "[yes] [no] [] [] false"},
		{"answer", []string{"accept", "reject", "ignore"}, "[accept] [ignore reject] [] [] true"},
		{"answer", []string{"yes", "no", "skip"}, "[] [skip] [] [no yes] false"},
		{"verdict", []string{"true", "false", "invalid"}, "[] [invalid] [] [false true] false"},
		{"mood", []string{"good", "bad", "accepted", "rejected"}, "[accepted good] [rejected] [] [bad] false"},
	} {
		values := map[string]int{}
		for _, value := range test.values {
			values[value]++
		}
		m := MarksOf(test.name, values)
		if got := fmt.Sprint(m.Use, " ", m.Leave, " ", m.Open, " ", m.Other, " ", m.Tool); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestValuesThatSplitsMayBeCalled(t *testing.T) {
	for _, test := range []struct{ name, value, want string }{
		{"part", "train", "train"}, {"part", "Val", "dev"}, {"part", "eval", "dev"}, {"part", "held-out", "test"},
		{"part", "holdout", "test"},
		{"part", "validation_matched", "dev"}, {"part", "test2", "test"}, {"part", "PublicTest", "test"},
		{"part", "en.train", "train"}, {"part", "trains", "none"}, {"part", "bus", "none"}, {"part", "latest", "none"},
		{"part", "", "none"}, {"meta.split", "extra", ""}, {"Split", "", ""}, {"splitting", "extra", "none"},
	} {
		got, ok := LikeSplit(test.name, test.value)
		if !ok {
			got = "none"
		}
		if got != test.want {
			t.Errorf("%s: %q: %q, want %q", test.name, test.value, got, test.want)
		}
	}
}
