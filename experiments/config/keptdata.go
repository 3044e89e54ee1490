package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/plugin"
)

// dataOf returns data of a task of the base run. The task that same_as names may have another name now, or be dropped:
// the data then has the files of that task.
func (d *decoding) dataOf(data *plugin.Section, names map[string]string) *plugin.Section {
	done := *data
	done.Entries = slices.Clone(data.Entries)
	for range d.baseTasks() { // same_as may name a task with same_as
		if !done.Has("same_as") {
			break
		}
		name := done.At("same_as").Text
		if now, is := names[name]; is {
			done.Put("same_as", &plugin.Section{Place: done.At("same_as").Place, Kind: plugin.Text, Text: now})
			break
		}
		done.Remove("same_as")
		files := d.baseTask(name).At("data")
		if files == nil {
			break
		}
		for _, e := range files.Entries {
			other := sameText[e.Key]
			target := slices.Contains(fieldNames(), e.Key) && !slices.Contains(textFields, e.Key)
			if !target && done.At(e.Key) == nil && (other == "" || done.At(other) == nil) {
				done.Entries = append(done.Entries, e)
			}
		}
	}
	return &done
}

// contradicts has the keys of data that a key of this experiment replaces, beside its own.
var contradicts = map[string][]string{
	"path": {Train, Dev, Test}, Train: {"path"},
	"text": {"question"}, "question": {"text"}, "pair": {"context"}, "context": {"pair"},
}

// changedData returns data of a task of the base run with the keys that this experiment gives, in place of the run's.
// Where these are not columns alone, the data has files of its own: same_as of the run no longer holds.
func (d *decoding) changedData(data, given *plugin.Section, names map[string]string) *plugin.Section {
	switch {
	case given.Kind == plugin.Null:
		return d.dataOf(data, names)
	case given.Kind != plugin.Mapping:
		return given // data reports it
	}
	isColumn := func(e plugin.Entry) bool { return slices.Contains(fieldNames(), e.Key) }
	if slices.ContainsFunc(given.Entries, func(e plugin.Entry) bool { return !isColumn(e) }) {
		names = nil
	}
	done := d.dataOf(data, names)
	done.Place = given.Place
	if given.Has("same_as") { // the texts are those of another task
		done.Entries = slices.DeleteFunc(done.Entries, func(e plugin.Entry) bool {
			return !isColumn(e) || slices.Contains(textFields, e.Key)
		})
	}
	for _, e := range given.Entries {
		if e.Value.Kind != plugin.Null {
			done.Remove(contradicts[e.Key]...)
		}
		if e.Key == "split" {
			e.Value = changedSplit(done.At("split"), e.Value)
		}
		done.Remove(e.Key)
		done.Entries = append(done.Entries, e)
	}

	// a part of the training file takes the place of a file of the run
	for _, part := range []string{Dev, Test} {
		if divides(given.At("split"), part) && !given.Has(part) {
			done.Remove(part)
		}
	}

	// a file of the experiment takes the place of a part of the run's training file
	if split := done.At("split"); split != nil {
		split = changedSplit(split, &plugin.Section{Place: split.Place, Kind: plugin.Mapping})
		for _, part := range []string{Dev, Test} {
			if given.Has(part) && !given.At("split").Has(part) {
				split.Remove(part)
			}
		}
		done.Put("split", split)
		if !divides(split, Dev) && !divides(split, Test) && !given.Has("split") {
			done.Remove("split")
		}
	}
	return done
}

// unsetKeys returns the keys of the data of a kept task, s, that are null, or whose value is left out where it is
// written: else the file of the run would have the base run's again.
func unsetKeys(task *Task, s *plugin.Section) []string {
	var all []string
	if !task.Keep {
		return nil
	}
	for _, e := range s.Entries {
		zero := e.Key == "limit" && e.Value.Text == "0" || e.Key == "stream" && isFalse(e.Value) ||
			e.Key == "header" && e.Value.Kind == plugin.Bool && !isFalse(e.Value)
		if e.Value.Kind == plugin.Null || zero {
			all = append(all, e.Key)
		}
	}
	if by := s.At("split").At("by"); by != nil && by.Kind == plugin.Null {
		all = append(all, "split.by")
	}
	return all
}

// isFalse reports whether a value is false, or another word for it in YAML.
func isFalse(s *plugin.Section) bool {
	return slices.Contains([]string{"false", "no", "off"}, strings.ToLower(s.Text))
}

// divides reports whether a section split takes examples for a part.
func divides(split *plugin.Section, part string) bool {
	if !split.Has(part) {
		return false
	}
	v, err := strconv.ParseFloat(split.At(part).Text, 64)
	return err != nil || v != 0
}

// changedSplit returns the section split with the keys that given has in place of its own.
func changedSplit(split, given *plugin.Section) *plugin.Section {
	if split == nil || split.Kind != plugin.Mapping || given.Kind != plugin.Mapping {
		return given
	}
	done := &plugin.Section{Place: given.Place, Kind: plugin.Mapping, Entries: slices.Clone(split.Entries)}
	for _, e := range given.Entries {
		done.Remove(e.Key)
		done.Entries = append(done.Entries, e)
	}

	// where nothing is divided, the run's keys beside have no effect
	if done.Has(Dev) && !divides(done, Dev) && !divides(done, Test) {
		for _, key := range []string{"seed", "by"} {
			if !given.Has(key) {
				done.Remove(key)
			}
		}
	}
	return done
}
