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

// byGroups describes what a split has taken by groups, and the end of the line that says so. Both totals are of the
// whole file.
func (v *division) byGroups(taken []uint32, wanted int) (what, how string) {
	moved := map[uint32]bool{}
	for _, group := range valuesOf(v.all.groups, taken) {
		moved[group] = true
	}
	what = fmt.Sprintf(", in %d of its %s by %s", len(moved), plugin.Count(len(v.all.byGroup), "group"),
		v.task.Data.Split.By)
	if len(taken) != wanted {
		what += fmt.Sprintf(", where %s %s wanted", plugin.Count(wanted, "example"),
			plugin.Agree(wanted, "was", "were"))
	}
	if v.all.stratified() {
		how = ", not stratified by label"
	}
	return what, how
}
