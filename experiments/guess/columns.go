package guess

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/plugin"
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

// hints are the roles that columns have by their names, in lower case without blanks, _, - and #.
var hints = map[string]string{}

func init() {
	for role, names := range map[string]string{
		"text": "text sentence body content message review comment utterance title tweet document description " +
			"abstract query premise hypothesis headline note notes mail email post request string " +
			"article summary transcript",
		"question": "question",
		"context":  "context passage paragraph",
		"answers":  "answers",
		"words":    "words tokens",
		"tags":     "tags nertags postags slots upos bio",
		"entities": "entities spans",
		"label": "label labels category categories class intent topic sentiment emotion emotions target genre type " +
			"polarity quality stance domain",
		"number": "score scores value rating similarity relatedness price amount count length age grade stars",
		"id": "id idx index uid uuid guid key url link date time timestamp created author user username file " +
			"filename path source split page year number",
	} {
		for name := range strings.FieldsSeq(names) {
			hints[name] = role
		}
	}
}

var (
	notLetters = regexp.MustCompile(`[^\pL\pN]+`)
	numbered   = regexp.MustCompile(`^(.*?)[\s_#-]*([12AaBb])$`)
	idAtEnd    = regexp.MustCompile(`(^|[\s_#-])(id|ID|Id|idx|uid|date|time)$|[a-z](Id|ID|Date|Time)$|_at$`)
)

// hint returns the role that a column has by its name, "" for none.
func hint(name string) string {
	if idAtEnd.MatchString(name) {
		return "id"
	}
	plain := strings.ToLower(notLetters.ReplaceAllString(name, ""))
	if role := hints[plain]; role != "" {
		return role
	}
	if m := numbered.FindStringSubmatch(name); m != nil && m[1] != "" {
		return hints[strings.ToLower(notLetters.ReplaceAllString(m[1], ""))]
	}
	if strings.HasPrefix(name, "#") { // as "#1 String" of MRPC
		last := plain[strings.LastIndexAny(plain, "0123456789")+1:]
		return hints[last]
	}
	parts := notLetters.Split(strings.ToLower(name), -1)
	if len(parts) > 3 {
		return "" // a sentence rather than a name
	}
	for _, part := range slices.Backward(parts) {
		if role := hints[part]; role != "" {
			return role
		}
	}
	return ""
}

// pairs are names of columns that hold the two texts of a pair.
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
	// names that differ in 1 and 2, or in A and B
	for _, marks := range [][2]string{{"1", "2"}, {"A", "B"}, {"a", "b"}} {
		if i := strings.LastIndex(first, marks[0]); i >= 0 && first[:i]+marks[1]+first[i+1:] == second {
			return true
		}
		if i := strings.Index(first, marks[0]); i >= 0 && first[:i]+marks[1]+first[i+1:] == second {
			return true
		}
	}
	return false
}

// named reports whether a column has one of the roles by its name.
func named(name string, roles ...string) bool { return slices.Contains(roles, hint(name)) }

// assigner finds the texts and the labels among the columns of a set.
type assigner struct {
	*Set
	records []corpus.Record
	columns []*column
	used    map[string]bool
	texts   []string // names of the columns with text and pair, or words
}

// assign fills in the fields and tasks of s.
func (s *Set) assign(d *sample) {
	a := &assigner{Set: s, records: d.records, used: map[string]bool{}}
	a.columns = columnsOf(d.records, d.columns)
	switch {
	case a.sentences():
	case a.questions():
	default:
		a.plainTexts()
	}
	if len(a.texts) == 0 {
		return // an error of the caller
	}
	a.Words = a.length()
	if a.Fields[0].Name == "question" {
		a.Words = min(a.Words, 150) // longer contexts are divided into windows
	}
	a.targets()
	a.unread()
	if d.format.NoHeader && d.format.Columns != nil && d.format.Delimiter != " " {
		a.nameColumns()
	}
	if len(a.Tasks) == 0 {
		a.Tasks = []Task{{Name: a.Name, Type: "mlm", Reason: "no column holds labels: masked tokens are predicted"}}
	}
}

// column returns the column of a name, nil if there is none.
func (a *assigner) column(name string) *column {
	i := slices.IndexFunc(a.columns, func(c *column) bool { return c.name == name })
	if i < 0 {
		return nil
	}
	return a.columns[i]
}

// use makes a column the one of a field of the texts.
func (a *assigner) use(field, column string) {
	a.used[column] = true
	a.texts = append(a.texts, column)
	a.Fields = append(a.Fields, Field{field, column})
}

// plainTexts finds the column of the text, and of the second text of a pair.
func (a *assigner) plainTexts() {
	var texts []*column
	for _, c := range a.columns {
		if c.isText() && hint(c.name) != "id" {
			texts = append(texts, c)
		}
	}
	for _, first := range texts {
		for _, second := range texts {
			if first == second {
				continue
			}
			near := !first.headed() && len(texts) == 2 && first == texts[0] && similar(first, second)
			if near || arePair(first.name, second.name) {
				a.use("text", first.name)
				a.use("pair", second.name)
				a.note(fmt.Sprintf("text and pair: columns %s and %s, texts%s", first.name, second.name,
					map[bool]string{true: " of about the same length"}[near]))
				return
			}
		}
	}

	text := a.longest(texts)
	if text == nil {
		for _, c := range a.columns { // short texts, or texts that are often the same
			if c.isSingle() && !c.isNumeric() && named(c.name, "text", "question") {
				text = c
				break
			}
		}
	}
	if text == nil {
		return
	}
	a.use("text", text.name)
	reason := fmt.Sprintf("text: column %s, %.3g words on average", text.name,
		float64(text.words)/float64(max(1, text.n)))
	for _, c := range texts {
		if c != text {
			a.used[c.name] = true
			a.note(fmt.Sprintf("%s is left out: another text; pair: %[1]s would read both", c.name))
		}
	}
	a.note(reason)
}

// longest returns the longest text of those named as one, else of all.
func (a *assigner) longest(texts []*column) (best *column) {
	for _, c := range texts {
		ours, theirs := named(c.name, "text", "question"), best != nil && named(best.name, "text", "question")
		if best == nil || ours && !theirs || ours == theirs && c.characters*best.n > best.characters*c.n {
			best = c
		}
	}
	return best
}

// headed reports whether the column has a name, not only a number.
func (c *column) headed() bool { return strings.Trim(c.name, "0123456789") != "" }

// similar reports whether the texts of two columns have about the same length.
func similar(a, b *column) bool {
	first, second := float64(a.characters)/float64(a.n), float64(b.characters)/float64(b.n)
	return first < 1.6*second && second < 1.6*first
}

// length returns the number of words that 19 of 20 texts do not exceed.
func (a *assigner) length() int {
	lengths := make([]int, len(a.records))
	for i, r := range a.records {
		for _, name := range a.texts {
			words, _, _ := r.Strings(name)
			n := len(words)
			if text, ok := r.Fields[name].(string); ok {
				n = max(n, len([]rune(text))/8) // of texts without blanks
			}
			lengths[i] += n
		}
	}
	slices.Sort(lengths)
	return lengths[len(lengths)*19/20]
}

// unread excludes columns that have the name of a field of the texts and another role, or none.
func (a *assigner) unread() {
	for _, field := range []string{"text", "pair", "words"} {
		isField := slices.ContainsFunc(a.Fields, func(f Field) bool { return f.Name == field })
		if a.column(field) != nil && !isField && !slices.Contains(a.texts, field) {
			a.Fields = append(a.Fields, Field{field, ""})
		}
	}
}

// nameColumns names the columns of a table without a header after the fields that they hold.
func (a *assigner) nameColumns() {
	names := make([]string, len(a.Format.Columns))
	for i := range names {
		names[i] = "_"
	}
	rename := func(f *Field) {
		i, err := strconv.Atoi(f.Column)
		if err != nil || i < 1 || i > len(names) {
			return
		}
		name := f.Name
		if slices.Contains(names, name) {
			name += "_" + f.Column
		}
		names[i-1], f.Column = name, name
	}
	for i := range a.Fields {
		rename(&a.Fields[i])
	}
	for t := range a.Tasks {
		for i := range a.Tasks[t].Fields {
			rename(&a.Tasks[t].Fields[i])
		}
	}
	a.Format.Columns = names
}

// rows counts records for a note.
func (a *assigner) rows(n int) string {
	switch corpus.FileType(a.Train) {
	case "csv", "tsv":
		return plugin.Count(n, "row")
	case "conll", "conllu":
		return plugin.Count(n, "sentence")
	}
	return plugin.Count(n, "record")
}
