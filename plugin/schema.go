package plugin

import (
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
)

// Schema is a JSON Schema of draft 2020-12, or a part of one.
type Schema map[string]any

// Schemas makes schemas of options.
type Schemas struct {
	// Describe returns the description of a key of a part, or of a section of kind "section", that has no tag doc.
	Describe func(kind, name, key string) string
	// Forms are the schemas of values that only their tag takes describes, by that text. A value of another text may be
	// anything.
	Forms map[string]Schema
}

// Options returns the schema of a mapping with the keys of options, a struct whose values are the defaults. kind and
// name are for Describe.
func (m Schemas) Options(kind, name string, options any) Schema {
	return m.mapping(kind, name, "", reflect.ValueOf(options))
}

func (m Schemas) mapping(kind, name, prefix string, v reflect.Value) Schema {
	properties := Schema{}
	for _, o := range optionsOf(v.Type()) {
		value := v.FieldByIndex(o.index)
		var of Schema
		if takes := o.tag.Get("takes"); m.Forms[takes] != nil {
			of = maps.Clone(m.Forms[takes])
		} else if isWords.MatchString(takes) {
			of = limits{choices: isBetween.Split(takes, -1)}.words()
		} else if isMapping(value) {
			of = m.mapping(kind, name, prefix+o.key+".", value)
		} else {
			of = m.value(value.Type(), value, o.limits)
		}
		doc := o.tag.Get("doc")
		if doc == "" && m.Describe != nil {
			doc = m.Describe(kind, name, prefix+o.key)
		}
		if doc != "" {
			of["description"] = doc
		}
		if _, depends := o.tag.Lookup("default"); !depends && !isMapping(value) && defaultText(value, o.limits) != "" {
			if _, part := value.Interface().(choice); !part {
				of["default"] = sectionOf(value, o.limits).json()
			}
		}
		properties[o.key] = of
	}
	return Schema{"type": []string{"object", "null"}, "properties": properties, "additionalProperties": false}
}

// isWords matches a tag takes that lists words: "csv, tsv or json".
var (
	isWords   = regexp.MustCompile(`^[a-z0-9_]+(, [a-z0-9_]+)* or [a-z0-9_]+$`)
	isBetween = regexp.MustCompile(`, | or `)
)

func isMapping(v reflect.Value) bool {
	return v.Kind() == reflect.Struct && v.Type() != factorsType && !v.Type().Implements(optionType)
}

// value returns the schema of a value of a type. v is the default, the zero Value if there is none. Null is like an
// absent key.
func (m Schemas) value(t reflect.Type, v reflect.Value, l limits) Schema {
	switch {
	case t == sectionType:
		return Schema{}
	case t.Implements(choiceType):
		if part := v.Interface().(choice); part.registered() {
			return part.schema(m)
		}
		return Schema{}
	case t.Implements(optionType):
		return Schema{}
	case t == factorsType:
		each := Schema{"type": "object", "additionalProperties": l.ofNumbers().number("number")}
		forms := []any{each}
		if len(l.choices) > 0 {
			forms = append(forms, l.words())
		}
		if !l.noOne {
			forms = append(forms, l.ofOne().number("number"))
		}
		return Schema{"anyOf": forms}
	case t.Kind() == reflect.Slice:
		item := m.value(t.Elem(), reflect.Zero(t.Elem()), l)
		return Schema{"type": []string{"array", "null"}, "items": item}
	case t.Kind() == reflect.Map:
		all := Schema{"type": []string{"object", "null"},
			"additionalProperties": m.value(t.Elem(), reflect.Zero(t.Elem()), l)}
		if isWhole(t.Key().Kind()) {
			all["propertyNames"] = Schema{"pattern": "^[+-]?[0-9]+$"}
		}
		return all
	case l.choices != nil:
		return l.words()
	case t.Kind() == reflect.String:
		return TextSchema()
	case t.Kind() == reflect.Bool: // YAML 1.1 has other words for true and false
		words := ""
		for _, word := range []string{"true", "false", "yes", "no", "on", "off"} {
			words += "|" + anyCase(word)
		}
		return Schema{"type": []string{"boolean", "string", "null"}, "pattern": "^(" + words[1:] + ")$"}
	case isWhole(t.Kind()):
		return l.number("integer")
	case isNumber(t.Kind()):
		return l.number("number")
	}
	return m.mapping("", "", "", v)
}

// TextSchema is the schema of a text: any scalar, as it is written.
func TextSchema() Schema { return Schema{"type": []string{"string", "number", "boolean", "null"}} }

// anyCase returns a pattern of a word in small and capital letters: ECMA 262 has no flag for it in a pattern.
func anyCase(word string) string {
	pattern := ""
	for _, r := range word {
		pattern += "[" + string(r) + string(r-'a'+'A') + "]"
	}
	return pattern
}

// number returns the schema of a number in the range.
func (l limits) number(kind string) Schema {
	s := Schema{"type": []string{kind, "null"}}
	for _, end := range []struct {
		text, closed, open string
		value              float64
		isOpen             bool
	}{
		{l.low, "minimum", "exclusiveMinimum", l.lowValue, l.openLow},
		{l.high, "maximum", "exclusiveMaximum", l.highValue, l.openHigh},
	} {
		switch {
		case end.text == "":
		case end.isOpen:
			s[end.open] = end.value
		default:
			s[end.closed] = end.value
		}
	}
	return s
}

// words returns the schema of one of the choices. A word is compared as it is written, so that one that YAML takes for
// a number or for true or false is that too.
func (l limits) words() Schema {
	all := []any{}
	for _, word := range l.choices {
		all = append(all, word)
		if n, err := strconv.Atoi(word); err == nil {
			all = append(all, n)
		} else if is, ok := boolOf(&Section{Kind: Text, Text: word}); ok {
			all = append(all, is)
		}
	}
	return Schema{"enum": append(all, nil)}
}

// json returns the value as JSON has it.
func (s *Section) json() any {
	switch s.Kind {
	case List:
		items := []any{}
		for _, item := range s.Items {
			items = append(items, item.json())
		}
		return items
	case Mapping:
		all := map[string]any{}
		for _, e := range s.Entries {
			all[e.Key] = e.Value.json()
		}
		return all
	case Null:
		return nil
	case Bool:
		is, _ := boolOf(s)
		return is
	case Int:
		if n, err := strconv.ParseInt(s.Text, 0, 64); err == nil {
			return n
		}
	case Float:
		if f, err := strconv.ParseFloat(s.Text, 64); err == nil {
			return f
		}
	}
	return s.Text
}

// Schema returns the schema of a mapping that chooses a part by the key type, with the part's options beside it, and
// the keys of beside, a schema of a mapping. Without a type the part is one of missing.
func (r *Registry[S, P]) Schema(m Schemas, beside Schema, missing ...string) Schema {
	own, _ := beside["properties"].(Schema)
	names, docs := []string{}, []string{}
	cases, untyped := []any{}, []any{}
	for _, name := range r.Names() {
		called := []string{name}
		for _, alias := range slices.Sorted(maps.Keys(r.aliases)) {
			if r.aliases[alias] == name {
				called = append(called, alias)
			}
		}
		part := m.Options(r.kind, name, r.parts[name].defaults)
		properties := part["properties"].(Schema)
		for key := range own {
			properties[key] = true // by the schema of beside
		}
		properties["type"] = true
		then := Schema{"properties": properties, "additionalProperties": false}
		is := Schema{"properties": Schema{"type": Schema{"enum": called}}, "required": []string{"type"}}
		cases = append(cases, Schema{"if": is, "then": then})
		if slices.Contains(missing, name) {
			untyped = append(untyped, then)
		}
		doc := ""
		if m.Describe != nil {
			doc = m.Describe(r.kind, name, "")
		}
		for _, c := range called {
			names, docs = append(names, c), append(docs, doc)
		}
	}
	if len(untyped) > 0 {
		typed := Schema{"required": []string{"type"}}
		cases = append(cases, Schema{"if": typed, "else": Schema{"anyOf": untyped}})
	}
	kind := Schema{"enum": names, "enumDescriptions": docs, "description": "the kind of " + r.kind}
	all := Schema{"type": "object", "allOf": cases}
	properties := maps.Clone(own)
	if properties == nil {
		properties = Schema{}
	}
	properties["type"] = kind
	all["properties"] = properties
	return all
}

// schema returns the schema of a choice: the name of a type, or a mapping with its options.
func (c Choice[S, P]) schema(m Schemas) Schema {
	mapping := c.registry.Schema(m, nil, c.byDefault())
	name := mapping["properties"].(Schema)["type"].(Schema)
	return Schema{"anyOf": []any{name, mapping, Schema{"type": "null"}}}
}

func (c Choice[S, P]) registered() bool { return c.registry != nil }
