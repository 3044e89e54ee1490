package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
)

// kept chooses the fields of the input that pass through to the output.
type kept struct {
	all   bool
	names []string
	found map[string]bool // of names
}

// newKept reads the flag --keep.
func newKept(flag string) kept {
	switch flag {
	case "all":
		return kept{all: true}
	case "none":
		return kept{}
	}
	return kept{names: strings.Split(flag, ","), found: map[string]bool{}}
}

// keeps reports whether the field with a name passes through.
func (k kept) keeps(name string) bool { return k.all || slices.Contains(k.names, name) }

// of returns the fields that pass through, under the names of --keep, which may be paths into JSON.
func (k kept) of(fields map[string]any) map[string]any {
	if k.all {
		return fields
	}
	chosen := map[string]any{}
	for _, name := range k.names {
		if value, ok := corpus.Field(fields, name); ok {
			chosen[name], k.found[name] = value, true
		}
	}
	return chosen
}

// warnings lists the names that no line had.
func (k kept) warnings() []string {
	var all []string
	for _, name := range k.names {
		if !k.found[name] {
			all = append(all, fmt.Sprintf("warning: --keep: no line has a field %q besides its text", name))
		}
	}
	return all
}
