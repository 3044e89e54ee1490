package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Place is where something stands in an experiment file.
type Place struct {
	File string // or the argument that a value comes from, as `--set training.num_epochs=1`
	Line int    // from 1; 0: no line of its own
	Col  int    // in characters from 1; 0: the whole line
}

// String writes the place as compilers do: exp.yaml:13:9.
func (p Place) String() string {
	switch {
	case p.Line == 0:
		return p.File
	case p.Col == 0:
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Col)
}

// Mistake is an error at a place.
type Mistake struct {
	Place Place
	Err   error
}

func (m *Mistake) Error() string {
	if m.Place == (Place{}) {
		return m.Err.Error()
	}
	return m.Place.String() + ": " + m.Err.Error()
}

// Unwrap returns the error without its place.
func (m *Mistake) Unwrap() error { return m.Err }

// Mistakes collects all that is wrong with a file, so that it is said at once. Its zero value holds none.
type Mistakes struct {
	found    []*Mistake
	reported map[string]bool
}

// maxMistakes is how many mistakes Err lists before it counts the others.
const maxMistakes = 50

// Add notes a mistake. What has been noted before, as of a value that two aliases name, is not noted again.
func (m *Mistakes) Add(at Place, format string, args ...any) {
	m.Append(&Mistake{at, fmt.Errorf(format, args...)})
}

// Append notes an error; a Mistake keeps its place.
func (m *Mistakes) Append(err error) {
	var mistake *Mistake
	if !errors.As(err, &mistake) {
		mistake = &Mistake{Err: err}
	}
	if text := mistake.Error(); !m.reported[text] {
		if m.reported == nil {
			m.reported = map[string]bool{}
		}
		m.reported[text] = true
		m.found = append(m.found, mistake)
	}
}

// None tells whether nothing is wrong.
func (m *Mistakes) None() bool { return len(m.found) == 0 }

// Err returns all mistakes as one error, one a line, in the order of the file; nil if there are none.
func (m *Mistakes) Err() error {
	if m.None() {
		return nil
	}
	return mistakesError(slices.SortedStableFunc(slices.Values(m.found), func(a, b *Mistake) int {
		return cmp.Or(
			cmp.Compare(min(b.Place.Line, 1), min(a.Place.Line, 1)), // what comes from arguments goes last
			cmp.Compare(a.Place.File, b.Place.File),
			cmp.Compare(a.Place.Line, b.Place.Line),
			cmp.Compare(a.Place.Col, b.Place.Col))
	}))
}

type mistakesError []*Mistake

func (e mistakesError) Error() string {
	var lines []string
	for i, m := range e {
		if i == maxMistakes {
			lines = append(lines, fmt.Sprintf("and %d more", len(e)-i))
			break
		}
		lines = append(lines, m.Error())
	}
	return strings.Join(lines, "\n")
}

func (e mistakesError) Unwrap() []error {
	errs := make([]error, len(e))
	for i, m := range e {
		errs[i] = m
	}
	return errs
}

// quoted is %q, cut where it gets too long for a message.
func quoted(s string) string { return fmt.Sprintf("%q", cut(s)) }

func cut(s string) string {
	const longest = 60 // bytes
	if len(s) <= longest {
		return s
	}
	end := longest
	for !utf8.RuneStart(s[end]) {
		end--
	}
	return s[:end] + "…"
}
