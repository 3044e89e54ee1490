package plugin

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Choice is a part chosen by a file, with all of its options.
type Choice[S, P any] struct {
	Type    string
	Options any   // of the type of the part's defaults
	Place   Place // of the section that chose it; zero if the choice is a default

	registry *Registry[S, P]
}

// Build returns the part. Its errors name the place and the part.
func (c Choice[S, P]) Build(env S) (P, error) {
	part, err := c.registry.Build(c.Type, c.Options, env)
	if err != nil {
		return part, &Mistake{c.Place, fmt.Errorf("%s %q: %w", c.registry.kind, c.Type, err)}
	}
	return part, nil
}

// Section returns the section of a file that makes the choice, with all options.
func (c Choice[S, P]) Section() *Section {
	s := &Section{Kind: Mapping}
	s.Put("type", SectionOf(c.Type))
	s.Entries = append(s.Entries, SectionOf(c.Options).Entries...)
	return s
}

// Choose reads the section of a part: a mapping with type and the part's options, or the type alone. Without a type it
// chooses the part named missing; if that is "", a section without a type is a mistake. Keys in beside are ignored: the
// caller reads them. The result is valid only if no mistakes were found.
func (r *Registry[S, P]) Choose(s *Section, missing string, beside []string, mistakes *Mistakes) Choice[S, P] {
	c := Choice[S, P]{Type: missing, registry: r}
	place := Place{} // of the type
	if s != nil && s.Kind != Null {
		c.Place, place = s.Place, s.Place
	}
	switch {
	case s == nil || s.Kind == Null:
	case s.Kind == Mapping && !s.Has("type"):
	case s.Kind == Mapping:
		t := s.At("type")
		if t.Kind >= List {
			mistakes.Add(t.Place, "type of %s: want a name, have %s", r.kind, t)
			return c
		}
		c.Type, place = t.Text, t.Place
	case s.Kind < List:
		c.Type = s.Text
	default:
		mistakes.Add(s.Place, "%s: want a type or a mapping, have %s", r.kind, s)
		return c
	}

	if c.Type == "" {
		mistakes.Add(place, "%s without a type; available: %s", r.kind, strings.Join(r.Names(), ", "))
		return c
	}
	if _, ok := r.parts[r.aliases[c.Type]]; ok {
		c.Type = r.aliases[c.Type]
	}
	part, ok := r.parts[c.Type]
	if !ok {
		mistakes.Add(place, "%s", r.unknown(c.Type))
		return c
	}
	c.Options = part.defaults
	if s != nil && s.Kind == Mapping {
		c.Options = decodeOptions(fmt.Sprintf("%s %q", r.kind, c.Type), s, part.defaults, beside, mistakes)
	}
	return c
}

// decodeOptions decodes a section over a copy of defaults.
func decodeOptions(owner string, s *Section, defaults any, beside []string, mistakes *Mistakes) any {
	options := reflect.New(reflect.TypeOf(defaults))
	options.Elem().Set(reflect.ValueOf(defaults))
	for _, o := range optionsOf(options.Elem().Type()) {
		if o.key == "type" || slices.Contains(beside, o.key) {
			panic(fmt.Sprintf("plugin: %s has an option %q, which is taken", owner, o.key))
		}
	}
	s.Decode(owner, options.Interface(), mistakes, append(slices.Clone(beside), "type")...)
	return options.Elem().Interface()
}

// FromString chooses the part named name with options written as YAML, such as "dropout: 0.2"; "" means no options.
func (r *Registry[S, P]) FromString(name, options string) (Choice[S, P], error) {
	var mistakes Mistakes
	s := &Section{Kind: Mapping}
	if strings.TrimSpace(options) != "" {
		if s = Parse("options", []byte(options), &mistakes); s == nil {
			return Choice[S, P]{}, mistakes.Err()
		}
	}
	if s.Kind != Mapping {
		mistakes.Add(s.Place, "want options as a mapping, have %s", s)
		return Choice[S, P]{}, mistakes.Err()
	}
	s.Put("type", SectionOf(name))
	return r.Choose(s, "", nil, &mistakes), mistakes.Err()
}
