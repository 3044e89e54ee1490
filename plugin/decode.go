package plugin

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/internal/suggest"
)

// Decode sets the fields of the struct that into points to from a mapping's keys, by their yaml tags; a field whose key
// is absent or null is unchanged. Wrong types, values out of range and unknown keys are added to mistakes; owner is the
// section's name in errors. Keys in beside are ignored: the caller reads them.
func (s *Section) Decode(owner string, into any, mistakes *Mistakes, beside ...string) {
	d := decoder{mistakes}
	d.fields(owner, s, reflect.ValueOf(into).Elem(), beside)
}

type decoder struct{ mistakes *Mistakes }

func (d decoder) fields(owner string, s *Section, v reflect.Value, beside []string) {
	options := optionsOf(v.Type())
	if s.Kind != Mapping {
		if s.Kind != Null {
			d.mistakes.Add(s.Place, "%s: want a mapping, have %s", owner, s)
		}
		d.absent(s, v, options)
		return
	}
	for _, e := range s.Entries {
		at := slices.IndexFunc(options, func(o option) bool { return o.key == e.Key })
		switch {
		case at >= 0:
			o := options[at]
			where := strings.TrimPrefix(owner+": "+o.key, ": ") // of Check, which has no owner
			d.value(where, e.Value, v.FieldByIndex(o.index), o.limits)
		case !slices.Contains(beside, e.Key):
			d.mistakes.Add(e.Place, "%s", d.unknownOption(owner, e.Key, options, beside))
		}
	}
	d.absent(s, v, options)
}

// absent sets the options that read themselves and whose keys are absent or null, such as the choice of a default part.
func (d decoder) absent(s *Section, v reflect.Value, options []option) {
	for _, o := range options {
		field := v.FieldByIndex(o.index)
		if own, is := field.Interface().(Option); is && !s.Has(o.key) {
			field.Set(reflect.ValueOf(own.Read(nil, d.mistakes)))
		}
	}
}

// Inherit sets the fields of the struct that into points to, and whose keys a mapping lacks, to those of from, a struct
// of the same type.
func (s *Section) Inherit(into, from any) {
	to := reflect.ValueOf(into).Elem()
	for _, o := range optionsOf(to.Type()) {
		if s.At(o.key) == nil {
			to.FieldByIndex(o.index).Set(reflect.ValueOf(from).FieldByIndex(o.index))
		}
	}
}

// unknownOption returns the error text for a key that owner does not have, with the keys that it has. It suggests a
// name if the list is long or does not contain the name.
func (d decoder) unknownOption(owner, key string, options []option, beside []string) string {
	const longList = 6
	var own, hidden []string
	for _, o := range options {
		if o.listed() {
			own = append(own, o.key)
		} else {
			hidden = append(hidden, o.key)
		}
	}
	slices.Sort(own)
	text := owner + " has no option " + quoted(key) + "; "
	all := slices.Concat(own, hidden, beside)
	near, ok := suggest.Nearest(key, all)
	switch meant := d.meant(owner, key, all); {
	case meant != "":
		text += "did you mean " + meant + "? "
	case ok && (len(own) >= longList || !slices.Contains(own, near)):
		text += "did you mean " + quoted(near) + "? "
	}
	switch {
	case len(own) > 0:
		return text + "it takes " + strings.Join(own, ", ")
	case len(beside) > 0:
		return text + "it takes none but " + strings.Join(slices.Sorted(slices.Values(beside)), ", ")
	}
	return text + "it takes none"
}

// meant returns the words for a key that a user knows by another name or from another section; "" for none. own are the
// keys of the section of owner, which lacks it.
func (d decoder) meant(owner, key string, own []string) string {
	if d.mistakes.Meant == nil {
		return ""
	}
	name := d.mistakes.Meant(owner, key, own)
	switch {
	case name == "":
		return ""
	case !strings.Contains(name, ".") && !slices.Contains(own, name):
		return quoted(name) + " at the top of the file"
	}
	return quoted(name)
}

// value sets v from s; where names the owner and the value for errors.
func (d decoder) value(where string, s *Section, v reflect.Value, l limits) {
	t := v.Type()
	valid := true
	switch {
	case t == sectionType:
		v.Set(reflect.ValueOf(s))
	case t == factorsType && s.Kind != Null:
		d.factors(where, s, v, l)
	case s.Kind == Null:
		// like an absent key
	case t.Implements(optionType):
		v.Set(reflect.ValueOf(v.Interface().(Option).Read(s, d.mistakes)))
	case t.Kind() == reflect.Bool && l.choices != nil:
		if valid = s.Kind < List && slices.Contains(l.choices, s.Text); valid {
			v.SetBool(s.Text == l.choices[1])
		}
	case t.Kind() == reflect.String: // of any scalar as written: a label may be 1, a delimiter may be ~
		if valid = s.Kind < List && (l.choices == nil || slices.Contains(l.choices, s.Text)); valid {
			v.SetString(s.Text)
		}
	case t.Kind() == reflect.Bool:
		var is bool
		if is, valid = boolOf(s); valid {
			v.SetBool(is != l.opposite)
		}
	case isNumber(t.Kind()):
		got := reflect.New(t).Elem()
		if valid = parseNumber(s, got) && l.hold(got.Convert(float64Type).Float()); valid {
			v.Set(got)
		}
	case t.Kind() == reflect.Slice:
		d.list(where, s, v, l)
	case t.Kind() == reflect.Map:
		d.mapping(where, s, v, l)
	default:
		d.fields(where, s, v, nil)
	}
	if !valid {
		d.wrong(where, s, t, l)
	}
}

func (d decoder) wrong(where string, s *Section, t reflect.Type, l limits) {
	have := s.String()
	switch {
	case s.Kind == Text && l.choices != nil:
		have = quoted(s.Text)
	case s.Place == (Place{}): // of Check: a number as Go writes it, not as YAML must have it
		have = strings.TrimSuffix(have, ".0")
	}
	d.mistakes.Add(s.Place, "%s: want %s, have %s", where, wants(t, l), have)
}

func boolOf(s *Section) (value, ok bool) {
	if s.Kind != Bool && s.Kind != Text {
		return false, false
	}
	switch strings.ToLower(s.Text) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

// parseNumber sets a number from a scalar and reports whether it is a finite number of the type.
func parseNumber(s *Section, into reflect.Value) bool {
	digits := strings.TrimPrefix(strings.ReplaceAll(s.Text, "_", ""), "+") // YAML 1.1 groups digits with _
	bits := into.Type().Bits()
	switch {
	case s.Kind != Int && (s.Kind != Float || isWhole(into.Kind())):
		return false
	case into.CanInt():
		n, err := strconv.ParseInt(digits, 0, bits)
		into.SetInt(n)
		return err == nil
	case into.CanUint():
		n, err := strconv.ParseUint(digits, 0, bits)
		into.SetUint(n)
		return err == nil
	}
	if n, err := strconv.ParseInt(digits, 0, 64); err == nil { // ParseFloat does not read 0x10
		into.SetFloat(float64(n))
		return true
	}
	f, err := strconv.ParseFloat(digits, bits)
	into.SetFloat(f)
	return err == nil && floats.IsFinite(f)
}

// list sets a slice; l holds for each item.
func (d decoder) list(where string, s *Section, v reflect.Value, l limits) {
	if l.one && s.Kind < List && s.Kind != Null {
		s = &Section{Place: s.Place, Kind: List, Items: []*Section{s}}
	}
	if s.Kind != List {
		d.wrong(where, s, v.Type(), limits{})
		return
	}
	items := reflect.MakeSlice(v.Type(), len(s.Items), len(s.Items))
	for i, item := range s.Items {
		if item.Kind == Null {
			d.wrong(where, item, v.Type().Elem(), l)
			continue
		}
		d.value(where, item, items.Index(i), l)
	}
	v.Set(items)
}

// mapping sets a map; l holds for each value.
func (d decoder) mapping(where string, s *Section, v reflect.Value, l limits) {
	if l.unnamed && s.Kind == List {
		s = &Section{Place: s.Place, Kind: Mapping, Entries: []Entry{{Place: s.Place, Value: s}}}
	}
	if s.Kind != Mapping {
		d.wrong(where, s, v.Type(), limits{})
		return
	}
	t := v.Type()
	all := reflect.MakeMap(t)
	for _, e := range s.Entries {
		key := reflect.New(t.Key()).Elem()
		if t.Key().Kind() == reflect.String {
			key.SetString(e.Key)
		} else if n, err := strconv.Atoi(e.Key); err == nil {
			key.SetInt(int64(n))
		} else {
			d.mistakes.Add(e.Place, "%s: want whole numbers as keys, have %s", where, quoted(e.Key))
			continue
		}
		value := reflect.New(t.Elem()).Elem()
		d.value(where+": "+truncate(e.Key), e.Value, value, l)
		all.SetMapIndex(key, value)
	}
	v.Set(all)
}

// Check returns an error for the options of a part, a struct: it lists each value outside the range or choice that its
// tag declares, such as "dropout: want a number in [0, 1), have 1". A registry checks the options of the parts it builds; this is for
// those that come in another way. Zero values are checked too: "" is an error for an option with a choice, unless the
// choice includes it.
func Check(options any) error { return check(options, SectionOf(options)) }

// check decodes values of options, as a file would have them. Others keep their zero values, unchecked.
func check(options any, values *Section) error {
	var mistakes Mistakes
	decoder{&mistakes}.fields("", values, reflect.New(reflect.TypeOf(options)).Elem(), nil)
	return mistakes.Err()
}

func (s *Section) without(other *Section) *Section {
	rest := &Section{Kind: Mapping}
	for _, e := range s.Entries {
		switch same := other.At(e.Key); {
		case reflect.DeepEqual(e.Value, same):
		case e.Value.Kind == Mapping && same != nil && same.Kind == Mapping:
			rest.Put(e.Key, e.Value.without(same))
		default:
			rest.Put(e.Key, e.Value)
		}
	}
	return rest
}
