package plugin

import (
	"cmp"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"gopkg.in/yaml.v3"
)

// Section is a value of an experiment file with its place. Aliases are followed and merge keys merged.
type Section struct {
	Place   Place
	Kind    Kind
	Text    string     // of a scalar, as written
	Items   []*Section // of a List
	Entries []Entry    // of a Mapping, in the order of the file, without duplicate keys
	Comment string     // lines that Write writes above it; Parse leaves comments out
}

// Entry is one key of a mapping and its value.
type Entry struct {
	Key   string
	Place Place // of the key
	Value *Section
}

// Kind is the kind of a value of an experiment file.
type Kind int

// The kinds. All before List are scalars.
const (
	Null Kind = iota
	Bool
	Int
	Float
	Text
	List
	Mapping
)

// At returns the value of a key of a mapping, nil if s is nil, not a mapping, or lacks the key.
func (s *Section) At(key string) *Section {
	if i := s.index(key); i >= 0 {
		return s.Entries[i].Value
	}
	return nil
}

// Has reports whether a mapping has a key whose value is not null.
func (s *Section) Has(key string) bool {
	v := s.At(key)
	return v != nil && v.Kind != Null
}

// PlaceAs gives a value and all values in it the places of those of another with the same keys and numbers, and the
// others made.
func (s *Section) PlaceAs(other *Section, made Place) {
	s.Place = made
	if other != nil {
		s.Place = other.Place
	}
	for i := range s.Entries {
		entry := &s.Entries[i]
		entry.Place = made
		if j := other.index(entry.Key); j >= 0 {
			entry.Place = other.Entries[j].Place
		}
		entry.Value.PlaceAs(other.At(entry.Key), made)
	}
	for i, item := range s.Items {
		var same *Section
		if other != nil && i < len(other.Items) {
			same = other.Items[i]
		}
		item.PlaceAs(same, made)
	}
}

// Put sets the value of a key of a mapping.
func (s *Section) Put(key string, value *Section) {
	if i := s.index(key); i >= 0 {
		s.Entries[i].Value = value
		return
	}
	s.Entries = append(s.Entries, Entry{key, value.Place, value})
}

// Remove removes keys and their values from a mapping.
func (s *Section) Remove(keys ...string) {
	s.Entries = slices.DeleteFunc(s.Entries, func(e Entry) bool { return slices.Contains(keys, e.Key) })
}

func (s *Section) index(key string) int {
	if s == nil {
		return -1
	}
	return slices.IndexFunc(s.Entries, func(e Entry) bool { return e.Key == key })
}

// String describes the value for errors.
func (s *Section) String() string {
	switch s.Kind {
	case Null:
		return "nothing"
	case Text:
		return "text " + quoted(s.Text)
	case List:
		return "a list"
	case Mapping:
		return "a mapping"
	case Bool, Int, Float:
		return truncate(s.Text)
	}
	panic(fmt.Sprintf("plugin: unknown kind %d", s.Kind))
}

// Value is a scalar in a section with its key, as --set names it: tasks.intent.data.limit.
type Value struct{ Key, Text string }

// Values lists the scalars in a section. A list of mappings with names is a value too, of these names in their order;
// the keys of what they hold have the names, those of an item of another list its number, from 1.
func (s *Section) Values() []Value { return s.appendValues(nil, "") }

func (s *Section) appendValues(all []Value, path string) []Value {
	join := func(key string) string { return strings.TrimPrefix(path+"."+key, ".") }
	unnamed := func(item *Section) bool { return !item.Has("name") }
	switch {
	case s.Kind == Mapping:
		for _, e := range s.Entries {
			all = e.Value.appendValues(all, join(e.Key))
		}
	case s.Kind == List && len(s.Items) > 0 && !slices.ContainsFunc(s.Items, unnamed):
		var names []string
		for _, item := range s.Items {
			names = append(names, item.At("name").Text)
			all = item.appendValues(all, join(item.At("name").Text))
		}
		all = append(all, Value{path, strings.Join(names, ", ")})
	case s.Kind == List:
		for i, item := range s.Items {
			all = item.appendValues(all, join(strconv.Itoa(i+1)))
		}
	default:
		all = append(all, Value{path, s.Text})
	}
	return all
}

// SectionOf returns the section from which Decode reads v: a scalar, a slice, a map, or a struct with yaml tags.
func SectionOf(v any) *Section { return sectionOf(reflect.ValueOf(v), limits{}) }

func sectionOf(v reflect.Value, l limits) *Section {
	t := v.Type()
	switch {
	case t == sectionType && v.IsNil():
		return &Section{Text: "null"}
	case t == sectionType:
		return v.Interface().(*Section)
	case t == factorsType:
		return v.Interface().(Factors).section()
	case t.Kind() == reflect.String:
		return &Section{Kind: Text, Text: v.String()}
	case t.Implements(optionType):
		return v.Interface().(Option).Section()
	case t.Kind() == reflect.Bool && l.choices != nil:
		return &Section{Kind: Text, Text: l.word(v.Bool())}
	case t.Kind() == reflect.Bool:
		return &Section{Kind: Bool, Text: strconv.FormatBool(v.Bool() != l.opposite)}
	case v.CanInt():
		return &Section{Kind: Int, Text: strconv.FormatInt(v.Int(), 10)}
	case v.CanUint():
		return &Section{Kind: Int, Text: strconv.FormatUint(v.Uint(), 10)}
	case v.CanFloat():
		return &Section{Kind: Float, Text: floatText(v.Float(), t.Bits())}
	case t.Kind() == reflect.Slice:
		s := &Section{Kind: List}
		for i := range v.Len() {
			s.Items = append(s.Items, itemOf(v.Index(i)))
		}
		return s
	case t.Kind() == reflect.Map:
		s := &Section{Kind: Mapping}
		for _, k := range slices.SortedFunc(slices.Values(v.MapKeys()), compareKeys) {
			s.Put(fmt.Sprint(k), itemOf(v.MapIndex(k)))
		}
		return s
	}
	s := &Section{Kind: Mapping}
	for _, o := range optionsOf(t) {
		if value := v.FieldByIndex(o.index); !o.omit || !value.IsZero() {
			s.Put(o.key, sectionOf(value, o.limits))
		}
	}
	return s
}

// itemOf returns the section of an item of a list or mapping. The fields of a struct there have no defaults but 0, and
// are left out where they are 0.
func itemOf(v reflect.Value) *Section {
	s := sectionOf(v, limits{})
	if s.Kind == Mapping && v.Kind() == reflect.Struct {
		return s.without(sectionOf(reflect.Zero(v.Type()), limits{}))
	}
	return s
}

func compareKeys(a, b reflect.Value) int {
	if a.CanInt() {
		return cmp.Compare(a.Int(), b.Int())
	}
	return cmp.Compare(a.String(), b.String())
}

// floatText formats a number with a dot, which YAML 1.1 requires.
func floatText(f float64, bits int) string {
	text := strconv.FormatFloat(f, 'g', -1, bits)
	if strings.Contains(text, ".") {
		return text
	}
	if digits, exponent, ok := strings.Cut(text, "e"); ok {
		return digits + ".0e" + exponent
	}
	return text + ".0"
}

// Write writes s as YAML that Parse reads back.
func (s *Section) Write(w io.Writer) error {
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(s.node()); err != nil {
		return err
	}
	return e.Close()
}

func (s *Section) node() *yaml.Node {
	switch s.Kind {
	case List:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, item := range s.Items {
			node := item.node()
			node.HeadComment = item.Comment
			n.Content = append(n.Content, node)
		}
		if !slices.ContainsFunc(s.Items, func(i *Section) bool { return i.Kind >= List }) {
			n.Style = yaml.FlowStyle
		}
		return n
	case Mapping:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, e := range s.Entries {
			key := textNode(e.Key)
			if n, err := strconv.Atoi(e.Key); err == nil && strconv.Itoa(n) == e.Key {
				key.Tag = "!!int" // label_maps have integer keys
			}
			key.HeadComment = e.Value.Comment
			n.Content = append(n.Content, key, e.Value.node())
		}
		if len(s.Entries) == 0 {
			n.Style = yaml.FlowStyle
		}
		return n
	case Text:
		return textNode(s.Text)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: s.Text}
}

// textNode returns a string node, quoted if YAML 1.1 would not read it as a string.
func textNode(text string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
	switch strings.ToLower(text) {
	case "yes", "no", "on", "off", "y", "n":
		n.Style = yaml.DoubleQuotedStyle
	}
	if strings.ContainsAny(text, "\n\r\t") {
		n.Style = yaml.DoubleQuotedStyle
	}
	return n
}
