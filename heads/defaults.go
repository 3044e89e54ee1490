package heads

import "github.com/jenga-nlp/jenga/corpus"

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
