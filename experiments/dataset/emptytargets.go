package dataset

import (
	"maps"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
)

// otherFile returns the examples of a file that is not a training file.
func (r *reader) otherFile(group *Group, file config.File) []*corpus.Example {
	r.other = true
	defer func() { r.other = false }()
	return r.file(group, file)
}

// textFields are the fields of a format that are not targets.
var textFields = []string{"text", "pair", "words", "question", "context"}

// withoutEmptyTargets returns the fields of a format for records of dev or test: where a target's field is null in all
// that have it, the target has no field. Such records are not labelled; in others a field without a value is a mistake.
func withoutEmptyTargets(fields map[string]string, records []corpus.Record) map[string]string {
	fields = maps.Clone(fields)
	for our, theirs := range fields {
		if slices.Contains(textFields, our) {
			continue
		}
		there, filled := false, false
		for _, record := range records {
			value, has := corpus.Field(record.Fields, theirs)
			there, filled = there || has, filled || value != nil
		}
		if there && !filled {
			fields[our] = ""
		}
	}
	return fields
}
