package config

import (
	"strings"

	"github.com/jenga-nlp/jenga/plugin"
)

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
