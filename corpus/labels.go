package corpus

import (
	"errors"
	"fmt"
	"slices"
)

// Labels is the set of a head's labels, in order: a label's number is its place.
type Labels struct {
	names   []string
	numbers map[string]int
}

// NewLabels returns the set of names, which are all different.
func NewLabels(names []string) *Labels {
	l := &Labels{names: slices.Clone(names), numbers: make(map[string]int, len(names))}
	for i, n := range names {
		if _, twice := l.numbers[n]; twice {
			panic(fmt.Sprintf("corpus: label %q twice", n))
		}
		l.numbers[n] = i
	}
	return l
}

// LabelsOf returns the set of names that a file holds: empty ones and doubles are an error.
func LabelsOf(names []string) (*Labels, error) {
	seen := map[string]bool{}
	for _, n := range names {
		switch {
		case n == "":
			return nil, errors.New("a label is empty")
		case seen[n]:
			return nil, fmt.Errorf("label %q is there twice", n)
		}
		seen[n] = true
	}
	return NewLabels(names), nil
}

// Names returns the labels in order.
func (l *Labels) Names() []string { return l.names }

// Number sets the numbers of a target's names.
func (l *Labels) Number(t *Target) {
	t.LabelID = l.number(t.Label)
	t.TagIDs = l.all(t.Tags)
	t.LabelIDs = l.all(t.Labels)
}

// all returns the numbers of names, nil for nil.
func (l *Labels) all(names []string) []int {
	if names == nil {
		return nil
	}
	numbers := make([]int, len(names))
	for i, name := range names {
		numbers[i] = l.number(name)
	}
	return numbers
}

func (l *Labels) number(name string) int {
	if name == "" {
		return Unlabelled
	}
	if n, ok := l.numbers[name]; ok {
		return n
	}
	return Unknown
}

// Name sets the names of a prediction's numbers.
func (l *Labels) Name(p *Prediction) {
	switch {
	case p.TagIDs != nil:
		p.Tags = make([]string, len(p.TagIDs))
		for i, id := range p.TagIDs {
			p.Tags[i] = "O"
			if id >= 0 {
				p.Tags[i] = l.names[id]
			}
		}
	case p.LabelIDs != nil:
		p.Labels = make([]string, len(p.LabelIDs))
		for i, id := range p.LabelIDs {
			p.Labels[i] = l.names[id]
		}
	case len(l.names) > 0:
		p.Label = l.names[p.LabelID]
	}
}
