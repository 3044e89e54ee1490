package plugin

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Registry holds the parts of one kind by name. S is the type of a part's environment, which its constructor receives;
// P is the type of the parts.
type Registry[S, P any] struct {
	kind     string
	parts    map[string]part[S, P]
	aliases  map[string]string
	packages map[string]string // paths by part
	missing  string            // the default part; "" if there is none
}

type part[S, P any] struct {
	defaults any // the part's options, a struct, by value
	build    func(options any, env S) (P, error)
}

// NewRegistry returns an empty registry; kind is the name of its parts in errors.
func NewRegistry[S, P any](kind string) *Registry[S, P] {
	return &Registry[S, P]{kind: kind, parts: map[string]part[S, P]{}, aliases: map[string]string{},
		packages: map[string]string{}}
}

// Register adds a part. It panics if the name is taken or the options lack their tags: it is called from init.
func Register[O, S, P any](r *Registry[S, P], name string, defaults O, build func(O, S) (P, error)) {
	if _, taken := r.parts[name]; taken {
		panic(fmt.Sprintf("plugin: two parts of kind %s are named %q", r.kind, name))
	}
	optionsOf(reflect.TypeFor[O]()) // panics on a field that no file could set
	r.parts[name] = part[S, P]{defaults, func(options any, env S) (P, error) { return build(options.(O), env) }}
}

// Alias adds another name for a part, such as that of an older or foreign format. The part may be registered later.
func (r *Registry[S, P]) Alias(alias, name string) { r.aliases[alias] = name }

// SetPackage names the package that registers a part, for the error of a program that does not import it.
func (r *Registry[S, P]) SetPackage(name, path string) { r.packages[name] = path }

func (r *Registry[S, P]) unknown(name string) string {
	if path, ok := r.packages[name]; ok {
		return fmt.Sprintf("%s %q is not part of this program; add import _ %q to it", r.kind, name, path)
	}
	return Unknown(r.kind, name, r.Names())
}

// SetDefault sets the part of files that name none. It is called from init; the part may be registered later.
func (r *Registry[S, P]) SetDefault(name string) {
	if r.missing != "" {
		panic(fmt.Sprintf("plugin: two defaults of kind %s, %q and %q", r.kind, r.missing, name))
	}
	r.missing = name
}

// Default returns the name of the part of files that name none; "" if none was set.
func (r *Registry[S, P]) Default() string { return r.missing }

// Kind returns the name of the parts in errors.
func (r *Registry[S, P]) Kind() string { return r.kind }

// Names returns the names of all parts, sorted.
func (r *Registry[S, P]) Names() []string { return slices.Sorted(maps.Keys(r.parts)) }

// Build returns a part with options, which have the type of its defaults. An option that is neither the default nor
// within the range or choice of its tag is an error. It panics on an unknown name.
func (r *Registry[S, P]) Build(name string, options any, env S) (P, error) {
	p, ok := r.parts[name]
	if !ok {
		panic(fmt.Sprintf("plugin: no %s %q", r.kind, name))
	}
	if have, want := reflect.TypeOf(options), reflect.TypeOf(p.defaults); have != want {
		panic(fmt.Sprintf("plugin: %s %q with options of type %v, want %v", r.kind, name, have, want))
	}
	if err := check(options, SectionOf(options).without(SectionOf(p.defaults))); err != nil {
		var none P
		return none, err
	}
	return p.build(options, env)
}

// Choice is a part chosen by a file, with all of its options.
type Choice[S, P any] struct {
	Type    string
	Options any   // of the type of the part's defaults
	Place   Place // of the section that chose it; zero if the choice is a default

	registry *Registry[S, P]
	mistaken bool
}

// Option is an option that reads and writes itself; its field has a tag takes, and often default.
type Option interface {
	// Read returns a value of the same type from its section, which is nil if the key is absent or null.
	Read(s *Section, mistakes *Mistakes) any
	// Section returns the section from which Read reads the value.
	Section() *Section
}

type choice interface {
	Option
	byDefault() string
	registered() bool // not of a struct that is not the defaults
	schema(m Schemas) Schema
}

var optionType, choiceType = reflect.TypeFor[Option](), reflect.TypeFor[choice]()

// Unset returns the Choice for the defaults of a section that has it as a field: Decode chooses the part of its Type,
// by default that of the registry, or the one that the section's key names.
func (r *Registry[S, P]) Unset() Choice[S, P] { return Choice[S, P]{registry: r} }

func (c Choice[S, P]) byDefault() string {
	if c.registry == nil { // of a struct that is not the defaults
		return ""
	}
	return cmp.Or(c.Type, c.registry.missing)
}

// Read implements Option.
func (c Choice[S, P]) Read(s *Section, mistakes *Mistakes) any {
	return c.registry.Choose(s, c.byDefault(), nil, mistakes)
}

// Mistaken reports whether the section that made the choice has mistakes.
func (c Choice[S, P]) Mistaken() bool { return c.mistaken }

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
	if c.Options != nil { // after a mistake of the type
		s.Entries = append(s.Entries, SectionOf(c.Options).Entries...)
	}
	return s
}

// Choose reads the section of a part: a mapping with type and the part's options, or the type alone. Without a type it
// chooses the part named missing; if that is "", a section without a type is a mistake. Keys in beside are ignored: the
// caller reads them.
func (r *Registry[S, P]) Choose(s *Section, missing string, beside []string, mistakes *Mistakes) (c Choice[S, P]) {
	before := mistakes.Len()
	defer func() { c.mistaken = mistakes.Len() > before }()
	c = Choice[S, P]{Type: missing, registry: r}
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
		if place.Argument != "" { // an option of a file that this type lacks is the argument's mistake
			all := *s
			all.Entries = slices.Clone(s.Entries)
			for i, e := range all.Entries {
				if e.Value.Place.Argument == "" {
					all.Entries[i].Place = place
				}
			}
			s = &all
		}
		c.Options = part.decode(fmt.Sprintf("%s %q", r.kind, c.Type), s, append(slices.Clone(beside), "type"), mistakes)
	}
	return c
}

func (p part[S, P]) decode(owner string, s *Section, beside []string, mistakes *Mistakes) any {
	options := reflect.New(reflect.TypeOf(p.defaults)).Elem()
	options.Set(reflect.ValueOf(p.defaults))
	for _, o := range optionsOf(options.Type()) {
		if slices.Contains(beside, o.key) {
			panic(fmt.Sprintf("plugin: %s has an option %q, which is taken", owner, o.key))
		}
	}
	s.Decode(owner, options.Addr().Interface(), mistakes, beside...)
	return options.Interface()
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
