package corpus

import (
	"errors"
	"fmt"
	"slices"
)

// Labels is the ordered set of a head's labels: a label's number is its index.
type Labels struct {
	names   []string
	numbers map[string]int
}

// NewLabels returns the set of names. It panics on duplicates.
func NewLabels(names []string) *Labels {
	l := &Labels{names: slices.Clone(names), numbers: make(map[string]int, len(names))}
	for i, n := range names {
		if _, twice := l.numbers[n]; twice {
			panic(fmt.Sprintf("corpus: duplicate label %q", n))
		}
		l.numbers[n] = i
	}
	return l
}

// ParseLabels returns the set of names that a file holds: empty and duplicate names are errors.
func ParseLabels(names []string) (*Labels, error) {
	seen := map[string]bool{}
	for _, n := range names {
		switch {
		case n == "":
			return nil, errors.New("a label is empty")
		case seen[n]:
			return nil, fmt.Errorf("duplicate label %q", n)
		}
		seen[n] = true
	}
	return NewLabels(names), nil
}

// Names returns the labels in order.
func (l *Labels) Names() []string { return l.names }

// Numbers for labels outside a set.
const (
	Unlabelled = -1 // no label
	Unknown    = -2 // a label outside the set, which the training split does not have
)

// ID returns the number of a label, Unknown if the set does not have it, Unlabelled for "".
func (l *Labels) ID(name string) int {
	if name == "" {
		return Unlabelled
	}
	if n, ok := l.numbers[name]; ok {
		return n
	}
	return Unknown
}

// IDs returns the number of each label, nil for nil.
func (l *Labels) IDs(names []string) []int {
	if names == nil {
		return nil
	}
	ids := make([]int, len(names))
	for i, name := range names {
		ids[i] = l.ID(name)
	}
	return ids
}

// Name returns the label with a number of the set.
func (l *Labels) Name(id int) string { return l.names[id] }
