package heads

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/outputs"
)

// kindsOf are the kinds of outputs of registered heads, by their names; of one that is not here nothing was said.
var kindsOf = map[string][]*outputs.Kind{}

// CheckOutput returns an error where the head registered as name is known not to have outputs of a kind.
func CheckOutput(name string, kind *outputs.Kind) error {
	can, said := kindsOf[name]
	if !said || slices.Contains(can, kind) {
		return nil
	}
	kinds := make([]string, len(can))
	for i, k := range can {
		kinds[i] = k.String()
	}
	return fmt.Errorf("it answers %s, and the task asks for %s, as %s would answer",
		strings.Join(kinds, " or "), kind, strings.Join(outputting(kind), ", "))
}

// outputting lists the registered heads that say that they have outputs of a kind, sorted.
func outputting(kind *outputs.Kind) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(kindsOf)) {
		if slices.Contains(kindsOf[name], kind) {
			names = append(names, name)
		}
	}
	return names
}

// defaults are the heads that a task has if its experiment names none.
var defaults = map[*outputs.Kind]string{}

// DefaultFor makes the head registered as name the one that a task has where an experiment names none, if it asks for
// outputs of one of the kinds.
func DefaultFor(name string, kinds ...*outputs.Kind) {
	for _, k := range kinds {
		defaults[k] = name
	}
}

// Default returns the name of the head that a task which asks for outputs of a kind has where an experiment names none:
// the kind's default, else the first by name of the heads that have such outputs, else "". Where the kind is nil, as
// that of a task which cannot be made, it is the default of most kinds.
func Default(kind *outputs.Kind) string {
	if kind == nil {
		return common()
	}
	if name, ok := defaults[kind]; ok {
		return name
	}
	if names := outputting(kind); len(names) > 0 {
		return names[0]
	}
	return ""
}

// common returns the head that is the default of most kinds, of equals the first by name.
func common() string {
	counts := map[string]int{}
	for _, name := range defaults {
		counts[name]++
	}
	best := ""
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		if counts[name] > counts[best] {
			best = name
		}
	}
	return best
}
