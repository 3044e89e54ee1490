package plugin

import (
	"bytes"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// option is a field of a struct that a file may set. Its tags define it, see the package comment.
type option struct {
	key    string
	index  []int // of the field, for reflect.Value.FieldByIndex
	omit   bool  // the zero value is not written
	limits limits
	tag    reflect.StructTag
	source string // path of the package, type and field
}

func (o option) listed() bool { return o.tag.Get("listed") != "no" }

// optionsOf returns the options of a struct in their order. It panics on a field that no file could set.
func optionsOf(t reflect.Type) []option {
	if t.Kind() != reflect.Struct {
		panic(fmt.Sprintf("plugin: options of type %s, want a struct", t))
	}
	var all []option
	taken := map[string]bool{}
	for i := range t.NumField() {
		f := t.Field(i)
		tag, tagged := f.Tag.Lookup("yaml")
		key, rest, _ := strings.Cut(tag, ",")
		var found []option
		switch {
		case key == "-":
			continue
		case rest == "inline":
			for _, o := range optionsOf(f.Type) {
				o.index = append([]int{i}, o.index...)
				found = append(found, o)
			}
		case !tagged || !f.IsExported() || !isKey.MatchString(key):
			panic(fmt.Sprintf("plugin: option %s.%s must be exported and have a yaml tag in snake_case", t,
				f.Name))
		default:
			source := t.PkgPath() + "." + t.Name() + "." + f.Name
			checkType(f.Type, t.String()+"."+f.Name)
			found = []option{{key, []int{i}, rest == "omitempty", limitsOf(f.Tag, f.Type), f.Tag, source}}
		}
		for _, o := range found {
			if taken[o.key] {
				panic(fmt.Sprintf("plugin: two options of %s are named %q", t, o.key))
			}
			taken[o.key] = true
		}
		all = append(all, found...)
	}
	return all
}

var isKey = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)

var sectionType = reflect.TypeFor[*Section]()

func checkType(t reflect.Type, what string) {
	switch {
	case t == sectionType, t == factorsType, t.Implements(optionType):
	case t.Kind() == reflect.Slice:
		checkType(t.Elem(), what)
	case t.Kind() == reflect.Map && (t.Key().Kind() == reflect.String || t.Key().Kind() == reflect.Int):
		checkType(t.Elem(), what)
	case t.Kind() == reflect.Struct:
		optionsOf(t)
	case t.Kind() == reflect.String, t.Kind() == reflect.Bool, isNumber(t.Kind()):
	default:
		panic(fmt.Sprintf("plugin: option %s has type %s, which no file can set", what, t))
	}
}

func isNumber(k reflect.Kind) bool { return isWhole(k) || k == reflect.Float32 || k == reflect.Float64 }

func isWhole(k reflect.Kind) bool { return k >= reflect.Int && k <= reflect.Uint64 }

type limits struct {
	choices             []string // of text; nil: any
	low, high           string   // of numbers, as the tag writes them; "" for infinite
	openLow, openHigh   bool     // the end itself is excluded
	lowValue, highValue float64
	noOne               bool // for Factors: no single number for all
	one                 bool // of lists: a value stands for a list of it alone
	unnamed             bool // of mappings: a list stands for that of the key ""
	opposite            bool // of a bool: the key says the opposite of the field
}

var interval = regexp.MustCompile(`^([\[(])([^,]*),([^,]*)([\])])$`)

func limitsOf(tag reflect.StructTag, t reflect.Type) limits {
	var l limits
	if choices := tag.Get("choice"); choices != "" {
		l.choices = strings.Split(choices, "|")
	}
	if t.Kind() == reflect.Bool && l.choices != nil && len(l.choices) != 2 {
		panic(fmt.Sprintf("plugin: choice %q of true or false, want two words", l.choices))
	}
	l.one, l.unnamed = tag.Get("one") == "yes", tag.Get("unnamed") == "yes"
	l.noOne, l.opposite = tag.Get("one") == "no", tag.Get("opposite") == "yes"
	text := tag.Get("range")
	if text == "" {
		return l
	}
	parts := interval.FindStringSubmatch(text)
	if parts == nil {
		panic(fmt.Sprintf("plugin: range %q, want one like [0,1)", text))
	}
	end := func(text string) float64 {
		if text == "" {
			return 0
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			panic(fmt.Sprintf("plugin: range %q: %v", parts[0], err))
		}
		return v
	}
	l.openLow, l.low, l.high, l.openHigh = parts[1] == "(", parts[2], parts[3], parts[4] == ")"
	l.lowValue, l.highValue = end(l.low), end(l.high)
	return l
}

func (l limits) word(v bool) string {
	if v {
		return l.choices[1]
	}
	return l.choices[0]
}

func (l limits) hold(v float64) bool {
	switch {
	case l.low != "" && (v < l.lowValue || l.openLow && v == l.lowValue):
		return false
	case l.high != "" && (v > l.highValue || l.openHigh && v == l.highValue):
		return false
	}
	return true
}

// String describes the range as it follows "a number": "above 0", "in [0, 1)"; "" for none.
func (l limits) String() string {
	switch {
	case l.low == "" && l.high == "":
		return ""
	case l.high == "" && l.openLow:
		return "above " + l.low
	case l.high == "":
		return "of at least " + l.low
	case l.low == "" && l.openHigh:
		return "below " + l.high
	case l.low == "":
		return "of at most " + l.high
	}
	left, right := "[", "]"
	if l.openLow {
		left = "("
	}
	if l.openHigh {
		right = ")"
	}
	return "in " + left + l.low + ", " + l.high + right
}

func wants(t reflect.Type, l limits) string {
	switch {
	case t == factorsType:
		return wantsFactors(l)
	case t.Implements(choiceType):
		return "a type or {type: …}"
	case t.Kind() == reflect.Slice && l.choices != nil:
		return "a list of " + oneOf(l.choices)
	case l.choices != nil:
		return oneOf(l.choices)
	}
	return strings.TrimSpace(typeWords(t) + " " + l.String())
}

func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

func typeWords(t reflect.Type) string {
	switch {
	case t == sectionType:
		return "a value"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case isWhole(t.Kind()):
		return "a whole number"
	case isNumber(t.Kind()):
		return "a number"
	case t.Kind() == reflect.Slice && isWhole(t.Elem().Kind()):
		return "a list of whole numbers"
	case t.Kind() == reflect.Slice && isNumber(t.Elem().Kind()):
		return "a list of numbers"
	case t.Kind() == reflect.Slice:
		return "a list"
	}
	return "a mapping"
}

// Field describes one option of a part, for a list of parts.
type Field struct {
	Key     string // with the keys of the mappings around it: lora.r
	Type    string // the valid values: "a number in [0, 1)", "cls, mean or max", "a path"
	Default string // as written in a file; in parentheses if it depends on other values; "" if there is none
	Doc     string // of the tag doc; "": docs/parts.md has the comment of the field
	Source  string // the package, the type and the field that declare it, such as path/of/plugin.Field.Key
}

// Fields returns the options of a part in the order of their declaration. It panics on an unknown name.
func (r *Registry[S, P]) Fields(name string) []Field {
	part, ok := r.parts[name]
	if !ok {
		panic(fmt.Sprintf("plugin: no %s %q", r.kind, name))
	}
	return FieldsOf("", part.defaults)
}

// KeysOf returns the keys of options, a struct, except those that are not listed.
func KeysOf(options any) []string {
	var keys []string
	for _, o := range optionsOf(reflect.TypeOf(options)) {
		if o.listed() {
			keys = append(keys, o.key)
		}
	}
	return keys
}

// ChoicesOf returns the keys of options, a struct, that choose a part.
func ChoicesOf(options any) []string {
	var keys []string
	for _, o := range optionsOf(reflect.TypeOf(options)) {
		if reflect.ValueOf(options).FieldByIndex(o.index).Type().Implements(choiceType) {
			keys = append(keys, o.key)
		}
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
		if value.Kind() == reflect.Struct && value.Type() != factorsType && !value.Type().Implements(optionType) {
			all = append(all, fieldsOf(prefix+o.key+".", value)...)
			continue
		}
		f := Field{Key: prefix + o.key, Type: o.tag.Get("takes"), Doc: o.tag.Get("doc"), Source: o.source}
		if f.Type == "" {
			f.Type = wants(value.Type(), o.limits)
		}
		part, is := value.Interface().(choice)
		text, given := o.tag.Lookup("default")
		switch {
		case given:
			f.Default = text
		case is:
			f.Default = part.byDefault()
		default:
			f.Default = defaultText(value, o.limits)
		}
		all = append(all, f)
	}
	return all
}

// defaultText returns a default as YAML on one line; "" for no value, an empty text, an empty list or mapping.
func defaultText(v reflect.Value, l limits) string {
	switch s := sectionOf(v, l); {
	case s.Kind == Null, s.Kind == Text && s.Text == "":
		return ""
	case s.Kind == List && len(s.Items) == 0, s.Kind == Mapping && len(s.Entries) == 0:
		return ""
	default:
		return inline(s)
	}
}

func inline(s *Section) string {
	var b bytes.Buffer
	if err := s.Write(&b); err != nil {
		panic("plugin: " + err.Error())
	}
	return strings.TrimSpace(b.String())
}

// Factors is an option that is a word of the tag choice, one number for all, unless the tag one is "no", or a mapping
// of names to numbers. The tag range holds for each number.
type Factors struct {
	Word string
	One  float64            // if Word is "" and Each is nil
	Each map[string]float64 // nil: not a mapping
}

var (
	factorsType = reflect.TypeFor[Factors]()
	float64Type = reflect.TypeFor[float64]()
)

func (d decoder) factors(where string, s *Section, v reflect.Value, l limits) {
	var f Factors
	number := reflect.ValueOf(&f.One).Elem()
	switch {
	case s.Kind == Mapping:
		d.mapping(where, s, reflect.ValueOf(&f.Each).Elem(), l.ofNumbers())
	case s.Kind < List && slices.Contains(l.choices, s.Text):
		f.Word = s.Text
	case !l.noOne && parseNumber(s, number) && l.ofOne().hold(f.One):
	default:
		d.wrong(where, s, v.Type(), l)
		return
	}
	v.Set(reflect.ValueOf(f))
}

func (l limits) ofNumbers() limits { l.choices = nil; return l }

// ofOne returns the limits of One: ofNumbers without 0, since a factor of 0 for all would leave nothing.
func (l limits) ofOne() limits {
	l = l.ofNumbers()
	l.openLow = l.openLow || l.low != "" && l.lowValue == 0
	return l
}

func (f Factors) section() *Section {
	switch {
	case f.Word != "":
		return SectionOf(f.Word)
	case f.Each != nil:
		return SectionOf(f.Each)
	}
	return SectionOf(f.One)
}

func wantsFactors(l limits) string {
	forms := slices.Clone(l.choices)
	if !l.noOne {
		forms = []string{oneOf(l.choices), wants(float64Type, l.ofOne())}
	}
	return oneOf(append(forms, fmt.Sprintf("{NAME: %s}", wants(float64Type, l.ofNumbers()))))
}
