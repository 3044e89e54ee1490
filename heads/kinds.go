package heads

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/outputs"
)

// kindsOf are the kinds of outputs of registered heads, by their names; a head registered without kinds has no entry.
var kindsOf = map[string][]*outputs.Kind{}

// CheckOutput returns an error if the head registered as name was registered without outputs of the kind.
func CheckOutput(name string, kind *outputs.Kind) error {
	can, found := kindsOf[name]
	if !found || slices.Contains(can, kind) {
		return nil
	}
	kinds := make([]string, len(can))
	for i, k := range can {
		kinds[i] = k.String()
	}
	return fmt.Errorf("its output is %s, but the task requires %s, the output of %s",
		strings.Join(kinds, " or "), kind, strings.Join(outputting(kind), ", "))
}

// outputting lists the heads that are registered with outputs of a kind, sorted.
func outputting(kind *outputs.Kind) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(kindsOf)) {
		if slices.Contains(kindsOf[name], kind) {
			names = append(names, name)
		}
	}
	return names
}

// defaults are the heads of tasks whose experiment names none.
var defaults = map[*outputs.Kind]string{}

// DefaultFor makes the head registered as name the default of tasks with outputs of one of the kinds.
func DefaultFor(name string, kinds ...*outputs.Kind) {
	for _, k := range kinds {
		defaults[k] = name
	}
}

// Default returns the name of the head of a task with outputs of a kind whose experiment names none: the kind's
// default, else the first by name of the heads that have such outputs, else "". If the kind is nil, as for a task that
// cannot be made, it is the head that is the default of most kinds.
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

// common returns the head that is the default of most kinds; ties go to the first by name.
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
