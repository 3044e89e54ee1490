package plugin

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"
)

// option is a field of a struct that a file may set. Its tags define it, see the package comment.
type option struct {
	key    string
	index  []int // of the field, for reflect.Value.FieldByIndex
	omit   bool  // the zero value is not written
	limits limits
	listed listed
}

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
			checkType(f.Type, t.String()+"."+f.Name)
			found = []option{{key, []int{i}, rest == "omitempty", limitsOf(f.Tag), listedOf(f.Tag)}}
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
	case t == sectionType, t == factorsType:
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

// limits are the valid values of an option.
type limits struct {
	choices             []string // of text; nil: any
	low, high           string   // of numbers, as the tag writes them; "" for infinite
	openLow, openHigh   bool     // the end itself is excluded
	lowValue, highValue float64
	noOne               bool // for Factors: no single number for all
}

var interval = regexp.MustCompile(`^([\[(])([^,]*),([^,]*)([\])])$`)

func limitsOf(tag reflect.StructTag) limits {
	var l limits
	if choices := tag.Get("choice"); choices != "" {
		l.choices = strings.Split(choices, "|")
	}
	l.noOne = tag.Get("one") == "no"
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

// hold reports whether v is within the range.
func (l limits) hold(v float64) bool {
	switch {
	case l.low != "" && (v < l.lowValue || l.openLow && v == l.lowValue):
		return false
	case l.high != "" && (v > l.highValue || l.openHigh && v == l.highValue):
		return false
	}
	return true
}

// String describes the limits as they follow "a number": "above 0", "in [0, 1)", "cls, mean or max".
func (l limits) String() string {
	switch {
	case l.choices != nil:
		return oneOf(l.choices)
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

// wants describes the valid values of type t: "a number in [0, 1)".
func wants(t reflect.Type, l limits) string {
	if t == factorsType {
		return wantsFactors(l)
	}
	if l.choices != nil {
		return l.String()
	}
	return strings.TrimSpace(typeWords(t) + " " + l.String())
}

// oneOf joins words with commas and "or": cls, mean or max.
func oneOf(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// typeWords describes the values of a type for errors and lists of options.
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
	case t.Kind() == reflect.Slice:
		return "a list"
	}
	return "a mapping"
}
