package guess

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
)

// column is what the values of a column have in common.
type column struct {
	name    string
	n       int            // values that are not missing
	missing int            // absent, null or empty
	values  map[string]int // how often each single value occurs
	lists   int            // values that are lists
	objects int            // values that are objects

	numbers, whole     int // single values that are numbers; whole numbers
	least, most        float64
	increasing         bool // each number is above the one before
	last               float64
	words, characters  int // of all single values
	mostCharacters     int
	items              map[string]int // how often each item of lists occurs, if it is a single value
	listItems, flags   int            // items of all lists; those that are numbers or true and false
	objectItems        int            // items that are objects
	decimals, separate int            // single values that are decimals with a comma; that have a separator
	separator          string         // between the labels of a cell
}

// columnsOf describes the columns of records, in the order of names, or sorted.
func columnsOf(records []corpus.Record, order []string) []*column {
	all, present := map[string]*column{}, map[string]int{}
	for _, r := range records {
		for name, value := range r.Fields {
			if all[name] == nil {
				all[name] = &column{name: name, values: map[string]int{}, items: map[string]int{}, increasing: true}
			}
			all[name].add(value)
			present[name]++
		}
	}
	names := slices.Sorted(maps.Keys(all))
	if order != nil {
		names = slices.DeleteFunc(slices.Clone(order), func(name string) bool { return all[name] == nil })
	}
	out := make([]*column, len(names))
	for i, name := range names {
		out[i] = all[name]
		out[i].missing += len(records) - present[name]
		out[i].findSeparator()
	}
	return out
}

// add counts one value.
func (c *column) add(value any) {
	if text, ok := value.(string); ok {
		if parsed, ok := corpus.ParseJSON(text); ok {
			value = parsed
		}
	}
	switch v := value.(type) {
	case nil:
		c.missing++
	case []string:
		c.n, c.lists, c.listItems = c.n+1, c.lists+1, c.listItems+len(v)
		for _, item := range v {
			c.items[item]++
		}
	case []any:
		c.n, c.lists, c.listItems = c.n+1, c.lists+1, c.listItems+len(v)
		for _, item := range v {
			c.addItem(item)
		}
	case map[string]any:
		c.n, c.objects = c.n+1, c.objects+1
	case string:
		c.addText(v)
	case bool:
		c.addText(strconv.FormatBool(v))
	case json.Number:
		c.addText(v.String())
	}
}

// addItem counts an item of a list.
func (c *column) addItem(item any) {
	switch v := item.(type) {
	case string:
		c.items[v]++
	case json.Number:
		c.items[v.String()]++
		c.flags++
	case bool:
		c.items[strconv.FormatBool(v)]++
		c.flags++
	case map[string]any:
		c.objectItems++
	}
}

// addText counts a single value.
func (c *column) addText(text string) {
	if strings.TrimSpace(text) == "" {
		c.missing++
		return
	}
	c.n++
	c.values[text]++
	characters := utf8.RuneCountInString(text)
	c.words += len(strings.Fields(text))
	c.characters += characters
	c.mostCharacters = max(c.mostCharacters, characters)
	if before, after, found := strings.Cut(text, ","); found && isNumber(before) && isNumber(after) &&
		!strings.Contains(after, ",") {
		c.decimals++
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !floats.IsFinite(v) {
		return
	}
	if v == math.Trunc(v) {
		c.whole++
	}
	if c.numbers == 0 {
		c.least, c.most = v, v
	} else if v <= c.last {
		c.increasing = false
	}
	c.numbers++
	c.least, c.most, c.last = min(c.least, v), max(c.most, v), v
}

// single returns the number of single values.
func (c *column) single() int { return c.n - c.lists - c.objects }

// isSingle reports whether all values are single.
func (c *column) isSingle() bool { return c.n > 0 && c.single() == c.n }

// isNumeric reports whether all values are numbers.
func (c *column) isNumeric() bool { return c.n > 0 && c.numbers == c.n }

// isText reports whether the values are texts: of several words, and hardly ever the same.
func (c *column) isText() bool {
	if !c.isSingle() || c.isNumeric() {
		return false
	}
	mean, different := float64(c.words)/float64(c.n), float64(len(c.values))/float64(c.n)
	spaceless := mean < 1.5 && c.characters > 8*c.n && !c.ascii() // as Chinese is
	texts := mean >= 2.5 || spaceless || mean >= 1.5 && named(c.name, "text", "question")
	return texts && different > 0.4 || mean >= 5 && different > 0.1
}

// ascii reports whether the values, or the first thousand of them, are ASCII.
func (c *column) ascii() bool {
	n := 0
	for value := range c.values {
		for _, r := range value {
			if r >= utf8.RuneSelf {
				return false
			}
		}
		if n++; n == 1000 {
			break
		}
	}
	return true
}

// findSeparator determines what separates the labels of a cell: there are fewer parts than combinations of them.
func (c *column) findSeparator() {
	if !c.isSingle() || c.decimals == c.n {
		return
	}
	for _, separator := range []string{",", ";", "|"} {
		parts, cells := map[string]int{}, 0
		for value, n := range c.values {
			split := strings.Split(value, separator)
			if len(split) > 1 {
				cells += n
			}
			for _, part := range split {
				part = strings.TrimSpace(part)
				if part == "" || len(strings.Fields(part)) > 4 || len(part) > 60 {
					cells, n = -1, 0
					break
				}
				parts[part] += n
			}
			if cells < 0 {
				break
			}
		}
		// a part is in several cells, alone or with others
		if cells*100 >= c.n && cells > 0 && len(parts)*2 <= c.n && (len(parts) < len(c.values) || cells == c.n) {
			c.separator, c.separate, c.items = separator, cells, parts
			return
		}
	}
}
