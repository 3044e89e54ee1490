package config

import (
	"strings"

	"github.com/jenga-nlp/jenga/plugin"
)

// override sets one value of an experiment file: KEY=VALUE, where KEY is a path of keys, and of names in lists, with
// dots between, and VALUE is YAML.
func override(root *plugin.Section, set string, mistakes *plugin.Mistakes) {
	place := plugin.Place{File: "--set " + set}
	path, text, ok := strings.Cut(set, "=")
	if !ok || path == "" {
		mistakes.Add(place, "want KEY=VALUE, as training.num_epochs=1")
		return
	}
	value := &plugin.Section{Place: place}
	if strings.TrimSpace(text) != "" {
		if value = plugin.ParseValue(place, text, mistakes); value == nil {
			return
		}
	}

	keys := strings.Split(path, ".")
	at, of := root, "the experiment"
	for i, key := range keys {
		last := i == len(keys)-1
		if at.Kind == plugin.List {
			item := named(at, key)
			switch {
			case item == nil:
				mistakes.Add(place, "%s", plugin.Unknown(singular(of), key, names(at)))
				return
			case last:
				mistakes.Add(place, "%s %q is a mapping; name one of its keys", singular(of), key)
				return
			}
			at, of = item, key
			continue
		}
		if !asMapping(at, i, keys) {
			mistakes.Add(place, "%s has no keys: it is %s", of, at)
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
		at, of = next, key
	}
}

// asMapping makes a mapping of a part that is written as its type alone: fusion: attention is {type: attention}.
func asMapping(s *plugin.Section, depth int, keys []string) bool {
	switch {
	case s.Kind == plugin.Mapping:
		return true
	case s.Kind == plugin.Null:
		s.Kind = plugin.Mapping
		return true
	case s.Kind == plugin.Text && depth > 0 && isPart(keys[depth-1]):
		kind := &plugin.Section{Place: s.Place, Kind: plugin.Text, Text: s.Text}
		*s = plugin.Section{Place: s.Place, Kind: plugin.Mapping}
		s.Put("type", kind)
		return true
	}
	return false
}

// isPart tells whether a key's value may be a part's type alone.
func isPart(key string) bool {
	switch key {
	case "encoder", "fusion", "sampling", "weighting":
		return true
	}
	return false
}

// missing is the value of keys[0] where the file has none: an empty mapping, or the one head that a task has by
// default.
func missing(within *plugin.Section, keys []string, place plugin.Place) *plugin.Section {
	if keys[0] == "heads" && len(keys) > 1 && within.Has("name") {
		head := &plugin.Section{Place: place, Kind: plugin.Mapping}
		head.Put("name", within.At("name"))
		return &plugin.Section{Place: place, Kind: plugin.List, Items: []*plugin.Section{head}}
	}
	return &plugin.Section{Place: place, Kind: plugin.Mapping}
}

// named returns the mapping in a list that has the name.
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

// singular names one of a list by the list's key.
func singular(key string) string { return strings.TrimSuffix(key, "s") }
