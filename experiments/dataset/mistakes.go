package dataset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/plugin"
)

// recordError is an error of one record.
type recordError struct {
	at  corpus.Place
	err error
}

// sameShown is how many errors of one kind are listed for a task's file; the others are counted.
const sameShown = 5

// values matches what differs between errors of one kind: quoted words and numbers.
var values = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|[0-9]+`)

// recordErrors are the errors of a task's records in a file: the first of each kind, and how many there are.
type recordErrors struct {
	shown  []recordError // at most sameShown of a kind
	counts map[string]int
}

func newRecordErrors() *recordErrors { return &recordErrors{counts: map[string]int{}} }

// add adds errors.
func (r *recordErrors) add(errs ...recordError) {
	for _, e := range errs {
		kind := e.kind()
		if r.counts[kind]++; r.counts[kind] <= sameShown {
			r.shown = append(r.shown, e)
		}
	}
}

// text returns the error without its place.
func (e recordError) text() string { return strings.TrimPrefix(e.err.Error(), e.at.String()+": ") }

// kind returns what errors of one kind have in common.
func (e recordError) kind() string { return values.ReplaceAllString(e.text(), "_") }

// recordMistakes reports the errors of a task's records in a file. If all records have one of the same kind, the task
// has a wrong type or the data wrong columns: one error at the task's type, or at split: by, has
// the first of them.
func (r *reader) recordMistakes(task config.Task, file string, errs *recordErrors, records int) {
	seen := map[string]int{}
	for _, e := range errs.shown {
		all := errs.counts[e.kind()]
		if all == records && all > sameShown {
			key, what := "type", "type "+task.Part.Type
			if _, byField := errors.AsType[splitByError](e.err); byField {
				key, what = "data.split.by", "data: split: by"
			}
			r.mistakes.Add(r.e.Place("tasks."+task.Name+"."+key),
				"task %q: %s: all %d records of %s have the same mistake; the first, %s: %s", task.Name, what, records,
				file, e.at, e.text())
			return
		}
		seen[e.kind()]++
		r.mistakes.Append(fmt.Errorf("%s: task %q: %s", e.at, task.Name, e.text()))
		if seen[e.kind()] == sameShown && all > sameShown {
			r.mistakes.Append(fmt.Errorf("%s: task %q: and %s like %s", file, task.Name,
				plugin.Count(all-sameShown, "more record"), e.at))
		}
	}
}

// fileMistakes reports the error of opening a task's file, or each of several that are joined.
func (r *reader) fileMistakes(task config.Task, file config.File, err error) {
	errs := []error{err}
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		errs = slices.Clone(joined.Unwrap())
	}
	if r.trained && r.data.Missing != nil && slices.ContainsFunc(file.Paths(), isMissing) {
		if hint := r.data.Missing(task, file); hint != "" {
			last := len(errs) - 1
			errs[last] = fmt.Errorf("%w; %s", errs[last], hint)
		}
	}
	for _, err := range errs {
		r.mistakes.Add(file.Place, "task %q: %w", task.Name, err)
	}
}

func isMissing(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, fs.ErrNotExist)
}
