package guess

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/plugin"
)

// assigner finds the texts and the labels among the columns of a set.
type assigner struct {
	*Set
	data    *data
	records []corpus.Record
	columns []*column
	used    map[string]bool
	texts   []string // names of the columns with text and pair, or words
}

// assign fills in the fields and tasks of s.
func (s *Set) assign(d *data) {
	a := &assigner{Set: s, data: d, records: d.records, used: map[string]bool{}}
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
