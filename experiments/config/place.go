package config

import (
	"strings"

	"github.com/jenga-nlp/jenga/plugin"
)

// Place returns where the experiment says the value of a key, a path as --set takes it: training.batch_size,
// tasks.intent.data.split. For a key that is not there it is the place of the nearest section around it, and for one
// that --set gave, the argument.
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
