package plugin

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"

	"github.com/jenga-nlp/jenga/internal/floats"
)

// Check returns an error for the options of a part, a struct: it lists each value outside the range or choice that its
// tag declares, such as "dropout: want a number in [0, 1), have 1". A constructor that Go code may call without a
// registry calls it first; a registry checks the options of the parts it builds. Zero values are checked too: "" is an
// error for an option with a choice, unless the choice includes it or the constructor sets it before.
func Check(options any) error {
	return checkOptions(options, nil)
}

// checkOptions is Check, except that an option equal to its value in defaults is valid: a file that omits it gives the
// same. defaults may be nil.
func checkOptions(options, defaults any) error {
	var c checker
	c.fields("", reflect.ValueOf(options), reflect.ValueOf(defaults))
	return errors.Join(c.found...)
}

// checker collects errors for the values of options outside their limits.
type checker struct{ found []error }

// fields checks a struct. prefix is the name of its mapping, such as "water: "; defaults may be the zero reflect.Value.
func (c *checker) fields(prefix string, v, defaults reflect.Value) {
	for _, o := range optionsOf(v.Type()) {
		var silent reflect.Value // the value if a file omits the option
		if defaults.IsValid() {
			silent = defaults.FieldByIndex(o.index)
		}
		c.value(prefix+o.key, v.FieldByIndex(o.index), silent, o.limits)
	}
}

// value checks one option or, in a list or mapping, one item.
func (c *checker) value(key string, v, silent reflect.Value, l limits) {
	t := v.Type()
	if silent.IsValid() && reflect.DeepEqual(v.Interface(), silent.Interface()) {
		return
	}
	switch {
	case t == sectionType:
		// every value is valid
	case t == factorsType:
		c.factors(key, v.Interface().(Factors), l)
	case t.Kind() == reflect.String:
		if l.choices != nil && !slices.Contains(l.choices, v.String()) {
			c.wrong(key, t, l, quoted(v.String()))
		}
	case isNumber(t.Kind()):
		if !floats.IsFinite(asFloat(v)) || !l.hold(asFloat(v)) {
			c.wrong(key, t, l, numberText(v))
		}
	case t.Kind() == reflect.Slice:
		for i := range v.Len() {
			c.value(key, v.Index(i), ofItem(t), l)
		}
	case t.Kind() == reflect.Map:
		for _, k := range slices.SortedFunc(slices.Values(v.MapKeys()), compareKeys) {
			c.value(key+": "+truncate(fmt.Sprint(k)), v.MapIndex(k), ofItem(t), l)
		}
	case t.Kind() == reflect.Struct:
		c.fields(key+": ", v, silent)
	}
}

// ofItem returns the default of the items of a list or mapping: the zero value for structs, whose fields a file may
// omit. Other items have none.
func ofItem(t reflect.Type) reflect.Value {
	if e := t.Elem(); e.Kind() == reflect.Struct && e != factorsType {
		return reflect.Zero(e)
	}
	return reflect.Value{}
}

// factors checks a Factors as decoder.factors does.
func (c *checker) factors(key string, f Factors, l limits) {
	switch {
	case f.Word != "":
		if !slices.Contains(l.choices, f.Word) {
			c.wrong(key, factorsType, l, quoted(f.Word))
		}
	case f.Each != nil:
		c.value(key, reflect.ValueOf(f.Each), reflect.Value{}, l.ofNumbers())
	default:
		if one := reflect.ValueOf(f.One); l.noOne || !floats.IsFinite(asFloat(one)) || !l.ofOne().hold(f.One) {
			c.wrong(key, factorsType, l, numberText(one))
		}
	}
}

func (c *checker) wrong(key string, t reflect.Type, l limits, have string) {
	c.found = append(c.found, fmt.Errorf("%s: want %s, have %s", key, wants(t, l), have))
}

// numberText formats a number as Go does, since files write both 1 and 1.0.
func numberText(v reflect.Value) string {
	if v.CanFloat() {
		return strconv.FormatFloat(v.Float(), 'g', -1, v.Type().Bits())
	}
	return fmt.Sprint(v.Interface())
}
