package plugin

import (
	"fmt"
	"reflect"
	"slices"
)

// Factors is an option that is a word of the tag choice, one number for all, unless the tag one is "no", or a mapping
// of names to numbers. The tag range holds for each number.
type Factors struct {
	Word string
	One  float64            // if Word is "" and Each is nil
	Each map[string]float64 // nil: not a mapping
}

var factorsType = reflect.TypeFor[Factors]()

// factors sets v from s.
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

// ofNumbers returns l without its choices.
func (l limits) ofNumbers() limits { l.choices = nil; return l }

// ofOne returns the limits of One: ofNumbers without 0, since a factor of 0 for all would leave nothing.
func (l limits) ofOne() limits {
	l = l.ofNumbers()
	l.openLow = l.openLow || l.low != "" && l.lowValue == 0
	return l
}

// section returns the section of a file that gives f.
func (f Factors) section() *Section {
	switch {
	case f.Word != "":
		return SectionOf(f.Word)
	case f.Each != nil:
		return SectionOf(f.Each)
	}
	return SectionOf(f.One)
}

// wantsFactors describes the valid values of a Factors.
func wantsFactors(l limits) string {
	number := reflect.TypeFor[float64]()
	if l.noOne {
		return oneOf(append(slices.Clone(l.choices), fmt.Sprintf("{NAME: %s}", wants(number, l.ofNumbers()))))
	}
	return fmt.Sprintf("%s, %s or {NAME: %s}", oneOf(l.choices), wants(number, l.ofOne()), wants(number, l.ofNumbers()))
}
