package config

import (
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/plugin"
)

// freezeOptions are the keys of `freeze` as a mapping.
type freezeOptions struct {
	Always   string          `yaml:"always" takes:"none, embeddings or a whole number"`
	Unfreeze *plugin.Section `yaml:"unfreeze"`
}

// unfreezeOptions are the keys of `unfreeze`.
type unfreezeOptions struct {
	Every float64 `yaml:"every" range:"(0,)"`
}

var (
	freezeDefaults   = freezeOptions{Always: encoders.FreezeNone}
	unfreezeDefaults = unfreezeOptions{Every: 1}
)

// freezeFields returns the keys of `freeze` as a mapping.
func freezeFields() []plugin.Field {
	return nested(plugin.FieldsOf("freeze.", freezeDefaults), "freeze.unfreeze", unfreezeDefaults)
}

// freeze reads freeze: what is frozen, or a mapping with layers that are unfrozen.
func (d *decoding) freeze(s *plugin.Section) {
	switch {
	case s == nil || s.Kind == plugin.Null:
		d.e.Model.Freeze = encoders.FreezeNone
		return
	case s.Kind != plugin.Mapping:
		d.frozen("model: freeze", s, encoders.FreezeWords())
		return
	}
	o := freezeDefaults
	s.Decode("model: freeze", &o, &d.mistakes)
	d.e.Model.Freeze = o.Always
	if s.Has("always") {
		d.frozen("model: freeze: always", s.At("always"), []string{encoders.FreezeNone, encoders.FreezeEmbeddings})
	}
	if o.Unfreeze == nil {
		d.mistakes.Add(s.Place, "model: freeze: want unfreeze: {every: 1}, or %s or a number of layers",
			strings.Join(encoders.FreezeWords(), ", "))
		return
	}
	u := unfreezeDefaults
	o.Unfreeze.Decode("model: freeze: unfreeze", &u, &d.mistakes)
	d.e.Model.Unfreeze = u.Every
}

// frozen reads what is frozen: one of words, or a number of layers.
func (d *decoding) frozen(what string, s *plugin.Section, words []string) {
	n, err := strconv.Atoi(s.Text)
	switch want := strings.Join(words, ", "); {
	case s.Kind >= plugin.List:
		d.mistakes.Add(s.Place, "%s: want %s or a number of layers, have %s", what, want, s)
	case (err != nil || n < 0) && !slices.Contains(words, s.Text):
		d.mistakes.Add(s.Place, "%s: want %s or a number of layers, have %q", what, want, s.Text)
	}
	d.e.Model.Freeze = s.Text
}

// freeze returns the value of freeze.
func (f *writing) freeze() *plugin.Section {
	m := f.e.Model
	if m.Unfreeze == 0 {
		return plugin.SectionOf(m.Freeze)
	}
	return plugin.SectionOf(freezeOptions{
		Always: m.Freeze, Unfreeze: plugin.SectionOf(unfreezeOptions{Every: m.Unfreeze}),
	})
}
