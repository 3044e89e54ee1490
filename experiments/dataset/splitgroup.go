package dataset

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/plugin"
)

// splitByError is the error of a record without a value of split: by.
type splitByError struct{ error }

// splitGroup returns the value of a record's field, which may be a path, that split: by names. A record without one is
// an error: it may belong to any of the groups.
func splitGroup(record corpus.Record, by string) (string, error) {
	value, found := corpus.Field(record.Fields, by)
	if !found {
		return "", fmt.Errorf("%s: no field %q, which split: by names; available: %s", record.Place, by,
			record.FieldNames())
	}
	group, given, err := corpus.Record{Place: record.Place, Fields: map[string]any{by: value}}.String(by)
	if err == nil && !given {
		err = fmt.Errorf("%s: field %q, which split: by names, is empty; want a value of its own for a record that "+
			"belongs to no other", record.Place, by)
	}
	return group, err
}

// byGroups describes a division by groups, for the line that says what a split has taken.
func (v *division) byGroups(train, taken []uint32, wanted int) string {
	all, moved := map[uint32]bool{}, map[uint32]bool{}
	for _, group := range valuesOf(v.all.groups, train) {
		all[group] = true
	}
	for _, group := range valuesOf(v.all.groups, taken) {
		all[group], moved[group] = true, true
	}
	text := fmt.Sprintf(", in %d of %s by %s", len(moved), plugin.Count(len(all), "group"), v.task.Data.Split.By)
	if len(taken) != wanted {
		text += fmt.Sprintf(", for %d wanted", wanted)
	}
	if v.all.stratified() {
		text += ", not stratified by label"
	}
	return text
}
