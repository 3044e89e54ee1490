package heads

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
)

// answers are what registered heads can answer, by their names; of one that is not here nothing was said.
var answers = map[string][]corpus.Answer{}

// CheckAnswer returns an error where the head registered as name is known not to give answers of a kind.
func CheckAnswer(name string, answer corpus.Answer) error {
	can, said := answers[name]
	if !said || slices.Contains(can, answer) {
		return nil
	}
	kinds := make([]string, len(can))
	for i, a := range can {
		kinds[i] = a.String()
	}
	var others []string
	for _, other := range slices.Sorted(maps.Keys(answers)) {
		if slices.Contains(answers[other], answer) {
			others = append(others, other)
		}
	}
	return fmt.Errorf("it answers %s, and the task asks for %s, as %s would answer", strings.Join(kinds, " or "), answer, strings.Join(others, ", "))
}

// defaults are the heads that a task has if its experiment names none.
var defaults = map[corpus.Answer]string{}

// DefaultFor makes the head registered as name the one that gives answers of a kind where an experiment names none. Of
// kinds without one it is linear.
func DefaultFor(answer corpus.Answer, name string) { defaults[answer] = name }

// Default returns the name of the head that gives answers of a kind where an experiment names none.
func Default(answer corpus.Answer) string {
	if name, ok := defaults[answer]; ok {
		return name
	}
	return "linear"
}
