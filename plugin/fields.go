package plugin

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
)

// Field describes one option of a part, for a list of parts.
type Field struct {
	Key     string // with the keys of the mappings around it: lora.r
	Type    string // the valid values: "a number in [0, 1)", "cls, mean or max", "a path"
	Default string // as written in a file; in parentheses if it depends on other values; "" if there is none
	Doc     string
}

// Fields returns the options of a part in the order of their declaration. It panics on an unknown name.
func (r *Registry[S, P]) Fields(name string) []Field {
	part, ok := r.parts[name]
	if !ok {
		panic(fmt.Sprintf("plugin: no %s %q", r.kind, name))
	}
	return FieldsOf("", part.defaults)
}

// KeysOf returns the keys of options, a struct.
func KeysOf(options any) []string {
	var keys []string
	for _, o := range optionsOf(reflect.TypeOf(options)) {
		keys = append(keys, o.key)
	}
	return keys
}

// FieldsOf returns the fields of options, a struct whose values are the defaults. prefix is put before each key, such
// as "lora.".
func FieldsOf(prefix string, options any) []Field { return fieldsOf(prefix, reflect.ValueOf(options)) }

func fieldsOf(prefix string, v reflect.Value) []Field {
	var all []Field
	for _, o := range optionsOf(v.Type()) {
		value := v.FieldByIndex(o.index)
		if value.Kind() == reflect.Struct && value.Type() != factorsType {
			all = append(all, fieldsOf(prefix+o.key+".", value)...)
			continue
		}
		f := Field{Key: prefix + o.key, Type: o.listed.takes, Doc: o.listed.doc}
		if f.Type == "" {
			f.Type = takes(value.Type(), o.limits)
		}
		if f.Default = defaultText(value); o.listed.hasDefault {
			f.Default = o.listed.defaultText
		}
		all = append(all, f)
	}
	return all
}

// listed is what an option's tags say for lists of options alone: reading a file does not depend on it.
type listed struct {
	doc         string
	takes       string // "" if the type and the limits describe the valid values
	defaultText string
	hasDefault  bool // defaultText is listed in place of the registered value, even if it is ""
}

func listedOf(tag reflect.StructTag) listed {
	l := listed{doc: tag.Get("doc"), takes: tag.Get("takes")}
	l.defaultText, l.hasDefault = tag.Lookup("default")
	return l
}

// takes describes the valid values of type t without a tag takes.
func takes(t reflect.Type, l limits) string {
	if t.Kind() != reflect.Slice {
		return wants(t, l)
	}
	switch e := t.Elem(); {
	case l.choices != nil:
		return "a list of " + oneOf(l.choices)
	case isWhole(e.Kind()):
		return strings.TrimSpace("a list of whole numbers " + l.String())
	case isNumber(e.Kind()):
		return strings.TrimSpace("a list of numbers " + l.String())
	}
	return "a list"
}

// defaultText returns a default as YAML on one line; "" for no value, an empty text, an empty list or mapping.
func defaultText(v reflect.Value) string {
	switch s := sectionOf(v); {
	case s.Kind == Null, s.Kind == Text && s.Text == "":
		return ""
	case s.Kind == List && len(s.Items) == 0, s.Kind == Mapping && len(s.Entries) == 0:
		return ""
	default:
		return inline(s)
	}
}

// inline returns a section as YAML on one line.
func inline(s *Section) string {
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		panic("plugin: " + err.Error())
	}
	return strings.TrimSpace(b.String())
}
