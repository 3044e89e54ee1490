package config

import (
	"errors"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/plugin"
)

// CheckSet returns an error for a value to set that is not KEY=VALUE.
func CheckSet(set string) error {
	if path, _, ok := strings.Cut(set, "="); !ok || path == "" {
		return errors.New("want KEY=VALUE, as training.num_epochs=1")
	}
	return nil
}

// override sets one value of an experiment file: KEY=VALUE, where KEY is a path of keys and of names in lists, joined
// by dots, and VALUE is YAML.
func override(root *plugin.Section, set string, mistakes *plugin.Mistakes) {
	place := plugin.Place{File: set, Argument: "set"}
	if err := CheckSet(set); err != nil {
		mistakes.Add(place, "%w", err)
		return
	}
	path, text, _ := strings.Cut(set, "=")
	value := &plugin.Section{Place: place}
	if strings.TrimSpace(text) != "" {
		if value = plugin.ParseValue(place, text, mistakes); value == nil {
			return
		}
	}

	keys := strings.Split(path, ".")
	at, parent := root, "the experiment"
	for i, key := range keys {
		last := i == len(keys)-1
		if at.Kind == plugin.List {
			item := named(at, key)
			switch {
			case item == nil:
				mistakes.Add(place, "%s", plugin.Unknown(singular(parent), key, names(at)))
				return
			case last:
				mistakes.Add(place, "%s %q is a mapping; name one of its keys", singular(parent), key)
				return
			}
			at, parent = item, key
			continue
		}
		if !asMapping(at, i, keys) {
			mistakes.Add(place, "%s has no keys: it is %s", parent, at)
			return
		}
		if last {
			at.Put(key, value)
			return
		}
		next := at.At(key)
		if next == nil || next.Kind == plugin.Null {
			next = missing(at, keys[i:], place)
			at.Put(key, next)
		}
		at, parent = next, key
	}
}

// asMapping turns a part written as its type alone into a mapping: fusion: attention is {type: attention}. It reports
// whether s is a mapping now.
func asMapping(s *plugin.Section, depth int, keys []string) bool {
	switch {
	case s.Kind == plugin.Mapping:
		return true
	case s.Kind == plugin.Null:
		s.Kind = plugin.Mapping
		return true
	case s.Kind == plugin.Text && depth > 0 && slices.Contains(partKeys, keys[depth-1]):
		kind := &plugin.Section{Place: s.Place, Kind: plugin.Text, Text: s.Text}
		*s = plugin.Section{Place: s.Place, Kind: plugin.Mapping}
		s.Put("type", kind)
		return true
	}
	return false
}

var partKeys = slices.Concat(plugin.ChoicesOf(Model{}), plugin.ChoicesOf(Training{}))

// missing returns the value of keys[0] where the file has none: an empty mapping, or the default head of a task.
func missing(within *plugin.Section, keys []string, place plugin.Place) *plugin.Section {
	if keys[0] == "heads" && len(keys) > 1 && within.Has("name") {
		head := &plugin.Section{Place: place, Kind: plugin.Mapping}
		head.Put("name", within.At("name"))
		return &plugin.Section{Place: place, Kind: plugin.List, Items: []*plugin.Section{head}}
	}
	return &plugin.Section{Place: place, Kind: plugin.Mapping}
}

func named(list *plugin.Section, name string) *plugin.Section {
	for _, item := range list.Items {
		if item.Has("name") && item.At("name").Text == name {
			return item
		}
	}
	return nil
}

func names(list *plugin.Section) []string {
	var all []string
	for _, item := range list.Items {
		if item.Has("name") {
			all = append(all, item.At("name").Text)
		}
	}
	return all
}

func singular(key string) string { return strings.TrimSuffix(key, "s") }

// Place returns the place of a key's value in the experiment file. The key is a path as in --set: training.batch_size,
// tasks.intent.data.split. For a missing key it is the place of the nearest enclosing section, for a key set by --set
// the argument.
func (e *Experiment) Place(key string) plugin.Place {
	if e.root == nil {
		return plugin.Place{File: e.Path}
	}
	at := e.root
	for name := range strings.SplitSeq(key, ".") {
		next := at.At(name)
		if at.Kind == plugin.List {
			next = named(at, name)
		}
		if next == nil || next.Kind == plugin.Null {
			break
		}
		at = next
	}
	return at.Place
}
