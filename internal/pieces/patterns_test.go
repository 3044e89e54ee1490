package pieces

import (
	"errors"
	"regexp/syntax"
	"strings"
	"testing"
	"time"
)

func TestPatternsWhoseSearchReadsOn(t *testing.T) {
	for pattern, want := range map[string]bool{
		`a[^b]*x|a`:            true,
		`\s*[\r\n]+`:           true,
		`(?:ab*){2,}`:          true,
		`(?:a|b+c)+`:           true,
		`a+b*c?d`:              true,
		`(?:a+|b)(?:c?|d)e`:    true,
		`a+`:                   false,
		` ?[^\s\pL]+[\r\n]*`:   false,
		`(?:ab*)+|c`:           false,
		`[\s\d]{1,40}-|!`:      false,
		`(?:ab*){0,9}`:         false,
		`a+(?:b?|c*)(?:d?e*)?`: false,
	} {
		re, err := syntax.Parse(pattern, syntax.Perl)
		if err != nil {
			t.Fatal(err)
		}
		if got := waits(re); got != want {
			t.Errorf("%s waits: %v, want %v", pattern, got, want)
		}
	}
}

// A megabyte takes some 100 ms; a search that read the whole text for each match would take minutes.
func TestPatternsFindAllMatchesInLinearTime(t *testing.T) {
	text := []byte(strings.Repeat("a", 1<<20))
	for _, regex := range []string{`a`, `ab?c*|a`, `[^b]{1,3}|b+`} {
		f, err := (&pattern{Regex: &regex}).finder("key")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		for done := 0; done < len(text); {
			_, done = f.find(text, done)
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("%s: %v", regex, took)
		}
	}
}

// In Oniguruma these have other meanings than in Go.
func TestPatternsOfOtherMeaningAreRefused(t *testing.T) {
	for regex, why := range map[string]string{
		`\w+`: `\w`, `[\W]`: `\W`, `[]a]+`: "begins with ]", `[^]a]+`: "begins with ]", `a{2}?b`: "with ?",
	} {
		_, err := (&pattern{Regex: &regex}).finder("key")
		if refusal := (*Unsupported)(nil); !errors.As(err, &refusal) || !strings.HasSuffix(refusal.Form, why) {
			t.Errorf("%s: %v, want that it is refused for %s", regex, err, why)
		}
	}
}
