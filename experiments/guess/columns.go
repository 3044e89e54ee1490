package guess

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
)

type column struct {
	name                string
	used                bool           // it can be no label
	spans               bool           // its texts mark spans of the record's text
	n, missing          int            // values that are there; that are absent, null or empty
	values              map[string]int // how often each single value occurs, or item of a list
	lists, objects      int            // values that are
	alike               int            // lists whose items are all the same
	items, nested       int            // of all lists; of these, objects and lists
	length              int            // of each list; -1: they differ
	several             int            // lists of several items
	numbers, whole      int            // single values that are numbers; whole numbers
	least, most         float64        // of the numbers
	words               int            // of all single values
	characters, longest int            // of all single values; of one
	marks               []string       // values of the file that stand for a missing one, and are not among values
}

// namesSplits reports whether the values name splits, of which there are several, or one in a file that goes on.
func (c *column) namesSplits(more bool) bool {
	found := map[string]bool{}
	for value := range c.values {
		split, named := corpus.SplitNamed(value)
		if !named {
			return false
		}
		found[split] = true
	}
	return (c.isSingle() || c.n > 0 && c.alike == c.n) && found["train"] &&
		(len(found) > 1 || more && named(c.name, "id"))
}

// namesOtherSplits reports whether the values are what splits are called, of which split: {column: …} does not read
// some.
func (c *column) namesOtherSplits() bool {
	train := false
	for value := range c.values {
		split, like := corpus.LikeSplit(c.name, value)
		if !like {
			return false
		}
		train = train || split == "train"
	}
	return train && len(c.values) > 1
}

// What is decided on claims and orders, which is a label, has the names and some words of marks.
var (
	decisionName  = regexp.MustCompile(`(?i)(status|state|decision|verdict)$`)
	reviewName    = regexp.MustCompile(`(?i)(^|[._ ])(annotat(ion|or)|label|review(er)?|q[ac])[._ ]?[a-z]+$`)
	decisionWords = regexp.MustCompile(`(?i)^(accept|approv|reject|declin|cancel|valid|invalid)`)
)

// marksRecords reports whether the values say which records are to be used, as annotation tools and people write it.
func (c *column) marksRecords() bool {
	marks := corpus.MarksOf(c.name, c.values)
	decides := func(value string) bool { return decisionWords.MatchString(value) }
	if decisionName.MatchString(c.name) && !reviewName.MatchString(c.name) &&
		!slices.ContainsFunc(slices.Concat(marks.Use, marks.Leave),
			func(value string) bool { return !decides(value) }) {
		return false
	}
	return len(marks.Use) > 0 && len(marks.Leave) > 0 && len(marks.Other) == 0 && !named(c.name, "label")
}

// labelWords are labels of published data, as the undefined of a category that does not apply, where others write them
// for a missing value: jenga check warns of them, and people decide.
var labelWords = []string{"undefined", "nil", "TBD", "tbd"}

// dropMarks removes the values that stand for a missing one: of many numbers the few texts, of labels those that look
// like it.
func (c *column) dropMarks() {
	const most = 20 // different texts
	if !c.isSingle() || c.isText() || named(c.name, "id") {
		return
	}
	var texts []string
	for value := range c.values {
		if _, ok := floats.Parse(value); !ok {
			texts = append(texts, value)
		}
	}
	marks := slices.DeleteFunc(corpus.LooksMissing(c.values, c.values),
		func(mark string) bool { return slices.Contains(labelWords, strings.TrimSpace(mark)) })
	if of := corpus.MarksOf(c.name, c.values); of.Tool && len(of.Use) > 0 && len(of.Leave) > 1 &&
		c.values["ignore"] > 0 {
		marks = append(marks, "ignore") // of Prodigy's accept, reject and ignore, which are labels here
	}
	if classes := c.whole == c.numbers && len(c.values)-len(texts) <= most; !classes && c.numbers*5 >= c.n*4 {
		marks = texts
	}
	if len(marks) == 0 || len(marks) > most || len(marks) == len(c.values) {
		return
	}
	slices.Sort(marks)
	rest := &column{name: c.name, used: c.used, missing: c.missing, values: map[string]int{}, least: math.Inf(1),
		most: math.Inf(-1), marks: marks}
	for value, n := range c.values {
		if slices.Contains(marks, value) {
			rest.missing += n
			continue
		}
		for range n {
			rest.addSingle(value)
		}
	}
	*c = *rest
}

// maxColumns is how many columns are looked at: each may have to be compared with all texts. Tables of one column for
// each label have some hundred.
const maxColumns = 200

// columnsOf returns the columns of records in an order, or by their names. Of more than maxColumns they are texts and
// those with a role by their names, and of the others those with the most values.
func columnsOf(records []corpus.Record, order []string) []*column {
	all := map[string]*column{}
	for _, r := range records {
		for name, value := range r.Fields {
			if all[name] == nil {
				all[name] = &column{name: name, values: map[string]int{}, least: math.Inf(1), most: math.Inf(-1)}
			}
			all[name].add(value)
		}
	}
	if order == nil {
		order = slices.Sorted(maps.Keys(all))
	}
	var out []*column
	for _, name := range order {
		if c := all[name]; c != nil {
			c.missing = len(records) - c.n
			out = append(out, c)
		}
	}
	if len(out) <= maxColumns {
		return out
	}
	likely := map[*column]int{}
	for _, c := range out {
		if hint(c.name) != "" || c.isText() {
			likely[c] = 1
		}
	}
	best := slices.Clone(out)
	slices.SortStableFunc(best, func(a, b *column) int { return cmp.Or(likely[b]-likely[a], b.n-a.n) })
	kept := map[*column]bool{}
	for _, c := range best[:maxColumns] {
		kept[c] = true
	}
	return slices.DeleteFunc(out, func(c *column) bool { return !kept[c] })
}

func (c *column) add(value any) {
	if text, ok := value.(string); ok {
		if parsed, ok := corpus.ParseCell(text); ok {
			value = parsed
		}
	}
	switch v := value.(type) {
	case nil:
	case []string:
		c.addList(len(v))
		if len(v) > 0 && len(slices.Compact(slices.Clone(v))) == 1 {
			c.alike++
		}
		for _, item := range v {
			c.addItem(item)
		}
	case []any:
		c.addList(len(v))
		if len(v) > 0 && !slices.ContainsFunc(v, func(item any) bool { return !isText(item) || item != v[0] }) {
			c.alike++
		}
		for _, item := range v {
			switch item.(type) {
			case nil: // no tag of its word
			case map[string]any, []any:
				c.nested++
			default:
				c.addItem(fmt.Sprint(item))
			}
		}
	case map[string]any:
		c.n, c.objects = c.n+1, c.objects+1
	default:
		c.addSingle(fmt.Sprint(v))
	}
}

func (c *column) addList(length int) {
	if c.lists == 0 {
		c.length = length
	} else if length != c.length {
		c.length = -1
	}
	if length > 1 {
		c.several++
	}
	c.n, c.lists, c.items = c.n+1, c.lists+1, c.items+length
}

func isText(value any) bool {
	_, is := value.(string)
	return is
}

// addItem adds an item of a list; an empty one is none, as the tag of a word that has none.
func (c *column) addItem(item string) {
	if strings.TrimSpace(item) != "" {
		c.values[item]++
	}
}

// areFlags reports whether all values are lists of 0 and 1 of the same length: for each label, whether it holds.
func (c *column) areFlags() bool {
	for value := range c.values {
		if !slices.Contains([]string{"0", "1", "0.0", "1.0", "true", "false"}, value) {
			return false
		}
	}
	return c.lists == c.n && c.length > 1
}

func (c *column) addSingle(text string) {
	if strings.TrimSpace(text) == "" {
		return
	}
	c.n++
	c.values[text]++
	c.words += len(strings.Fields(text))
	characters := utf8.RuneCountInString(text)
	c.characters, c.longest = c.characters+characters, max(c.longest, characters)
	v, isNumber := floats.Parse(text)
	if !isNumber {
		return
	}
	c.numbers++
	if v == math.Trunc(v) {
		c.whole++
	}
	c.least, c.most = min(c.least, v), max(c.most, v)
}

func (c *column) isSingle() bool { return c.n > 0 && c.lists+c.objects == 0 }

func (c *column) isNumeric() bool { return c.n > 0 && c.numbers == c.n }

// isText reports whether the values are texts: of several words, and hardly ever the same.
func (c *column) isText() bool {
	if !c.isSingle() || c.isNumeric() || c.spans || hint(c.name) == "id" {
		return false
	}
	mean, different := float64(c.words)/float64(c.n), float64(len(c.values))/float64(c.n)
	several := mean >= 2.5 || mean >= 1.5 && named(c.name, "text", "question")
	return several && different > 0.4 || mean >= 5 && different > 0.1
}

// isRepeatedText reports whether a column that is named as a text has several words a value, however often each: many
// records have the same second text of a pair.
func (c *column) isRepeatedText() bool {
	return c.isSingle() && !c.isNumeric() && !c.spans && named(c.name, "text", "question") &&
		float64(c.words) >= 2.5*float64(c.n)
}

// listed returns how many labels there are, with a separator between, and how many cells have several, none of each
// where cells are no lists of labels: of these there are fewer than combinations of them. Where cells have several,
// some may have a separator too many.
func (c *column) listed(separator string) (labels, several int) {
	parts, short := map[string]bool{}, true
	for value, n := range c.values {
		in := 0
		for i, part := range strings.Split(value, separator) {
			if part = strings.TrimSpace(part); part == "" {
				short = short && (i > 0 || separator != "#") // else words with # before each
				continue
			}
			short = short && len(strings.Fields(part)) <= 4 && len(part) <= 60
			parts[part] = true
			in++
		}
		if in > 1 {
			several += n
		}
	}
	fewer := len(parts)*2 <= c.n && (len(parts) < len(c.values) || several == c.n)
	if !short || !fewer || several*100 < c.n {
		return 0, 0
	}
	return len(parts), several
}

// hints are the roles that columns have by their names, in lower case and without what is no letter.
var hints = map[string]string{}

func init() {
	for role, names := range map[string]string{
		"text": "text sentence body content message review comment utterance title tweet document description utt " +
			"abstract query premise hypothesis headline note notes mail email post request string " +
			"article summary transcript",
		"question": "question",
		"context":  "context passage paragraph",
		"answers":  "answers answer",
		"words":    "words tokens tokenizedtext word token",
		"tags":     "tags nertags postags slots upos bio",
		"entities": "entities spans",
		"label": "label labels category categories class intent topic sentiment emotion emotions target genre type " +
			"polarity quality stance domain",
		"number": "score scores value rating similarity relatedness price amount count length age grade stars",
		"id": "id idx index uid uuid guid key url link date time timestamp created at author user username file " +
			"filename path source split partition page year month day weekday fold number",
	} {
		for name := range strings.FieldsSeq(names) {
			hints[name] = role
		}
	}
}

// namePart matches a word of a name: sentence_A, sentenceA and "#1 sentence" have sentence.
var namePart = regexp.MustCompile(`\p{Lu}?[\p{Ll}\p{Lt}\p{Lm}\p{Lo}]+|\p{Lu}+`)

// hint returns the role that a column has by its name, "" for none.
func hint(name string) string {
	parts := namePart.FindAllString(name, -1)
	if len(parts) > 3 {
		return "" // a sentence rather than a name
	}
	if role := hints[strings.ToLower(strings.Join(parts, ""))]; role != "" {
		return role
	}
	for _, part := range slices.Backward(parts) {
		if role := hints[strings.ToLower(part)]; role != "" {
			return role
		}
	}
	return ""
}

func named(name string, roles ...string) bool { return slices.Contains(roles, hint(name)) }

var pairs = [][2]string{
	{"premise", "hypothesis"}, {"text", "pair"}, {"query", "passage"}, {"query", "document"}, {"question", "sentence"},
	{"question", "passage"}, {"question", "context"}, {"question", "answer"}, {"anchor", "positive"},
	{"source", "target"}, {"claim", "evidence"}, {"headline", "body"},
}

// arePair reports whether two columns in this order hold the two texts of a pair, by their names.
func arePair(first, second string) bool {
	for _, p := range pairs {
		if strings.EqualFold(first, p[0]) && strings.EqualFold(second, p[1]) {
			return true
		}
	}
	for _, marks := range []string{"12", "AB", "ab"} { // names that differ in the mark
		if i := strings.LastIndexByte(first, marks[0]); i >= 0 && first[:i]+marks[1:]+first[i+1:] == second {
			return true
		}
	}
	return false
}
