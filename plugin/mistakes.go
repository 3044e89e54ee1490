package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/internal/suggest"
)

// Place is a position in an experiment file.
type Place struct {
	File string // or the text of an argument, such as training.num_epochs=1
	Line int    // from 1; 0: no line of its own
	Col  int    // in characters from 1; 0: the whole line

	Argument Argument // whose text holds the value; "": a file does
}

// String formats the place like a compiler: exp.yaml:13:9.
func (p Place) String() string {
	switch {
	case p.Argument != "":
		return p.Argument.Error() + " " + p.File
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

// Argument names what the caller of a function has passed, or may pass, in an error that wraps it:
// fmt.Errorf("%s holds a run: %w replaces it", folder, Argument("force")). The command line has a flag of that name;
// docs/go.md says what the arguments of a training are in Go.
type Argument string

func (a Argument) Error() string { return "argument " + string(a) }

// Warning is what a user should know of a place, though it is no mistake.
type Warning struct {
	Place Place // zero: of none
	Text  string
}

// Warn returns the warning of a place.
func Warn(at Place, format string, args ...any) Warning {
	return Warning{at, fmt.Sprintf(format, args...)}
}

// String formats the warning as a mistake is: `exp.yaml:3:9: warning: …`.
func (w Warning) String() string {
	return (&Mistake{w.Place, errors.New("warning: " + w.Text)}).Error()
}

// Lines returns the texts of warnings with their places.
func Lines(warnings []Warning) []string {
	var all []string
	for _, w := range warnings {
		all = append(all, w.String())
	}
	return all
}

// CompareWarnings orders warnings by their texts with the places.
func CompareWarnings(a, b Warning) int { return strings.Compare(a.String(), b.String()) }

// Mistakes collects all mistakes in a file, to report them together. The zero value is empty.
type Mistakes struct {
	// Meant returns the name of the key that one stands for which the section of owner does not have: one that has
	// another name in other programs, or stands elsewhere in the file. own are the section's keys. The name begins at
	// the section if the key is in it, as learning_rate does in training, else at the top of the file, as
	// training.learning_rate. "": none, or the own key most similar to it. nil: never any
	Meant func(owner, key string, own []string) string

	found    []*Mistake
	reported map[string]bool
}

// maxMistakes is the number of mistakes that Err lists; the others are counted.
const maxMistakes = 50

// Add adds a mistake. Duplicates, such as those of a value that two aliases name, are added once.
func (m *Mistakes) Add(at Place, format string, args ...any) {
	m.Append(&Mistake{at, fmt.Errorf(format, args...)})
}

// Append adds an error; a Mistake keeps its place, and an error of Err is added mistake by mistake. nil adds
// nothing.
func (m *Mistakes) Append(err error) {
	if err == nil {
		return
	}
	if all, ok := err.(mistakesError); ok {
		for _, mistake := range all {
			m.Append(mistake)
		}
		return
	}
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

// Empty reports whether there are no mistakes.
func (m *Mistakes) Empty() bool { return len(m.found) == 0 }

// Len returns the number of mistakes.
func (m *Mistakes) Len() int { return len(m.found) }

// Err returns all mistakes as one error, one per line, in the order of the file; nil if there are none.
func (m *Mistakes) Err() error {
	if m.Empty() {
		return nil
	}
	return mistakesError(slices.SortedStableFunc(slices.Values(m.found), func(a, b *Mistake) int {
		return cmp.Or(
			cmp.Compare(min(b.Place.Line, 1), min(a.Place.Line, 1)), // mistakes in arguments are last
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

// Count returns a number of things, one of which has the given name: "1 label", "2 labels".
func Count(n int, name string) string {
	if n == 1 {
		return "1 " + name
	}
	return fmt.Sprintf("%d %ss", n, name)
}

// Agree returns the form of a verb for n things: one for 1, as "is", else more, as "are".
func Agree(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}

func quoted(s string) string { return fmt.Sprintf("%q", truncate(s)) }

func truncate(s string) string {
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

// Unknown returns the error text for a name that is not among names: `no head "max_pol"; did you mean "max_pool"?
// available: crf, linear, max_pool`.
func Unknown(kind, name string, names []string) string {
	names = slices.Sorted(slices.Values(names))
	near, _ := suggest.Nearest(name, names)
	return UnknownLike(kind, name, near, names)
}

// UnknownLike is Unknown with the name to suggest; "" suggests none.
func UnknownLike(kind, name, near string, names []string) string {
	names = slices.Sorted(slices.Values(names))
	text := "no " + kind + " " + quoted(name) + "; "
	if near != "" {
		text += "did you mean " + quoted(near) + "? "
	}
	if len(names) == 0 {
		return text + "available: none"
	}
	return text + "available: " + strings.Join(names, ", ")
}
