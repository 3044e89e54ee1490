package corpus

import (
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"
)

// Entity is a labelled span of a record's text.
type Entity struct {
	Label string
	Span  Span // bytes of its text
}

// Entities returns AllEntities, of which two that overlap are an error.
func (r Record) Entities(text string) (entities []Entity, ok bool, err error) {
	entities, ok, err = r.AllEntities(text)
	for i := 1; i < len(entities); i++ {
		if a, b := entities[i-1], entities[i]; b.Span.Start < a.Span.End {
			return nil, false, fmt.Errorf("%s: entities %s %q and %s %q overlap; a character belongs to one entity "+
				"at most, or overlap: longest or first beside the task's type keeps one of them",
				r.Place, start(a.Label), start(text[a.Span.Start:a.Span.End]), start(b.Label),
				start(text[b.Span.Start:b.Span.End]))
		}
	}
	return entities, ok, err
}

// AllEntities returns the field entities, a list of {"start": 13, "end": 21, "label": "PER"} with offsets in characters
// (code points) of text. They are sorted by start, and may overlap; an empty entity is an error. ok is false if the
// field is absent or null.
func (r Record) AllEntities(text string) (entities []Entity, ok bool, err error) {
	field := r.Fields["entities"]
	if field == nil {
		return nil, false, nil
	}
	list, ok := field.([]any)
	if !ok {
		return nil, false, fmt.Errorf(`%s: field "entities" is %s; it takes a list of {"start", "end", "label"}`,
			r.Place, kind(field))
	}
	at := characterOffsets(text)
	entities = make([]Entity, len(list))
	for i, item := range list {
		if entities[i], err = entity(item, at); err != nil {
			return nil, false, fmt.Errorf("%s: entity %d: %w", r.Place, i+1, err)
		}
	}
	slices.SortStableFunc(entities, func(a, b Entity) int { return a.Span.Start - b.Span.Start })
	return entities, true, nil
}

// entity reads one entity of a text. at holds the byte offset of each character, and last the text's length.
func entity(item any, at []int) (Entity, error) {
	fields, ok := item.(map[string]any)
	if !ok {
		return Entity{}, fmt.Errorf("it is %s; want {\"start\", \"end\", \"label\"}", kind(item))
	}
	var offsets [2]int
	for i, name := range []string{"start", "end"} {
		number, _ := scalar(fields[name])
		n, err := strconv.Atoi(number)
		if err != nil {
			return Entity{}, fmt.Errorf("%q is %s; want a whole number", name, shown(fields[name]))
		}
		offsets[i] = n
	}
	start, end := offsets[0], offsets[1]
	if start < 0 || start >= end || end >= len(at) {
		return Entity{}, fmt.Errorf("characters %d to %d of a text of %d; want 0 <= start < end <= %[3]d", start, end,
			len(at)-1)
	}
	label, ok := scalar(fields["label"])
	if !ok || label == "" {
		return Entity{}, fmt.Errorf("\"label\" is %s; want a name", shown(fields["label"]))
	}
	return Entity{label, Span{at[start], at[end]}}, nil
}

// characterOffsets returns the byte at which each character of text begins, and the text's length.
func characterOffsets(text string) []int {
	at := make([]int, 0, utf8.RuneCountInString(text)+1)
	for i := range text {
		at = append(at, i)
	}
	return append(at, len(text))
}
