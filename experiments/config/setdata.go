package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/plugin"
)

// DataKeys lists the keys of data that say how a file is written and which columns it has.
func DataKeys() []string { return append(plugin.KeysOf(corpus.Format{}), fieldNames()...) }

// SetData returns a format with keys of data set, each by KEY=VALUE, and the columns among them by field. A name of a
// column and a text are as they are written; other values are YAML.
func SetData(sets []string, f corpus.Format) (corpus.Format, error) {
	var mistakes plugin.Mistakes
	s := &plugin.Section{Kind: plugin.Mapping}
	for _, set := range sets {
		place := plugin.Place{File: set, Argument: "set-data"}
		key, text, ok := strings.Cut(set, "=")
		value := &plugin.Section{Place: place, Kind: plugin.Text, Text: text}
		switch {
		case !ok || key == "" || text == "":
			mistakes.Add(place, "want KEY=VALUE, as encoding=cp1252")
			continue
		case !slices.Contains(DataKeys(), key):
			mistakes.Add(place, "%s", plugin.Unknown("key of data", key, DataKeys()))
			continue
		case key == "delimiter":
			value.Text = strings.ReplaceAll(text, `\t`, "\t")
		case slices.Contains(yamlKeys, key) || strings.ContainsAny(text[:1], `"[{`):
			if value = plugin.ParseValue(place, text, &mistakes); value == nil {
				continue
			}
		}
		s.Entries = slices.DeleteFunc(s.Entries, func(e plugin.Entry) bool { return e.Key == key })
		s.Entries = append(s.Entries, plugin.Entry{Key: key, Place: place, Value: value})
	}
	if !mistakes.Empty() {
		return f, mistakes.Err()
	}
	s.Decode("", &f, &mistakes, fieldNames()...)
	fields := map[string]string{}
	for our, theirs := range f.Fields {
		fields[our] = theirs
	}
	for _, name := range fieldNames() {
		switch column := s.At(name); {
		case column == nil:
		case column.Kind >= plugin.List:
			mistakes.Add(column.Place, "want a column's name, have %s", column)
		default:
			fields[name] = column.Text
		}
	}
	f.Fields = fields
	return f, mistakes.Err()
}

// yamlKeys are the keys of data that are neither texts nor names.
var yamlKeys = []string{"header", "columns"}

// SetData sets keys of data of the tasks, by KEY=VALUE, or by TASK.KEY=VALUE for a task alone: for other files than
// those of the experiment.
func (e *Experiment) SetData(sets []string) error {
	if len(sets) == 0 {
		return nil
	}
	var tasks []string
	for _, task := range e.Tasks {
		tasks = append(tasks, task.Name)
	}
	for _, set := range sets {
		field, _, _ := strings.Cut(set, "=")
		name, _, ofTask := strings.Cut(field, ".")
		if ofTask && !slices.Contains(tasks, name) && !slices.Contains(DataKeys(), name) {
			return fmt.Errorf("%w %s: %s", plugin.Argument("set-data"), set, plugin.Unknown("task", name, tasks))
		}
	}
	for i := range e.Tasks {
		task := &e.Tasks[i]
		var own []string
		for _, set := range sets {
			key, rest, _ := strings.Cut(set, ".")
			switch {
			case key == task.Name:
				own = append(own, rest)
			case !slices.Contains(tasks, key) || !strings.Contains(rest, "="):
				own = append(own, set)
			}
		}
		format, err := SetData(own, task.Data.Format)
		if err != nil {
			return err
		}
		var formats map[string]corpus.Format
		if task.Data.Formats != nil {
			formats = map[string]corpus.Format{}
		}
		for name, f := range task.Data.Formats {
			if formats[name], err = SetData(own, f); err != nil {
				return err
			}
		}
		task.Data.Format, task.Data.Formats = format, formats
	}
	return nil
}
