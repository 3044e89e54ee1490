package plugin

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
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

// unknown describes a part that is not registered.
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

// Defaults returns the default options of a part, a struct. ok is false for an unknown name.
func (r *Registry[S, P]) Defaults(name string) (options any, ok bool) {
	p, ok := r.parts[name]
	return p.defaults, ok
}

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
	if err := checkOptions(options, p.defaults); err != nil {
		var none P
		return none, err
	}
	return p.build(options, env)
}

// Warner is a part with warnings about its options or environment: they are valid, but maybe not intended.
type Warner interface {
	Warnings() []string
}

// WarningsOf returns the warnings of a part; nil if it is not a Warner.
func WarningsOf(part any) []string {
	if r, ok := part.(Warner); ok {
		return r.Warnings()
	}
	return nil
}
