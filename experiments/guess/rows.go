package guess

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/jenga-nlp/jenga/corpus"
)

// usedRows reads a file again without the records that an annotation tool has marked as not to be used, as Prodigy's
// answer does, where another field has labels: else the marks are the labels.
func (s *Set) usedRows(ctx context.Context) error {
	for _, c := range columnsOf(s.records, s.header) {
		marks := corpus.MarksOf(c.name, c.values)
		if !marks.Tool || !c.isSingle() || len(marks.Use) == 0 || len(marks.Leave)+len(marks.Open) == 0 {
			continue
		}
		used := slices.DeleteFunc(slices.Clone(s.records), func(r corpus.Record) bool {
			value, has, _ := r.String(c.name)
			return !has || !slices.Contains(marks.Use, value)
		})
		if !labelsBeside(columnsOf(used, s.header), c.name) {
			continue
		}
		f, all := s.Format, len(s.records)
		f.Where = map[string][]string{c.name: marks.Use}
		if err := s.read(ctx, f); err != nil {
			return err
		}
		s.note("where: %s of %d have the %s %s; the others are left out", records(len(used)), all, c.name,
			strings.Join(marks.Use, " or "))
		return nil
	}
	return nil
}

// labelsBeside reports whether another column than that of a name has labels, by its own name, which differ.
func labelsBeside(columns []*column, name string) bool {
	return slices.ContainsFunc(columns, func(c *column) bool {
		labels := named(c.name, "label", "tags", "entities", "number") || c.name == "accept" // Prodigy's choices
		return c.name != name && labels && (len(c.values) > 1 || c.lists+c.objects > 0)
	})
}

// joinRows reads a file that has a word a row again, with its sentences as records.
func (s *Set) joinRows(ctx context.Context) error {
	columns := columnsOf(s.records, s.header)
	var others []string // than that of the sentence
	for _, c := range columns {
		if named(c.name, "words", "tags") || isSpanTags(c) && c.values["O"] > 0 { // numbers such as S-1 have no O
			others = append(others, c.name)
		}
	}
	field := corpus.SentenceField(s.records, others...)
	if field == "" {
		return s.scattered(columns)
	}
	if slices.ContainsFunc(columns, func(c *column) bool { return c.name != field && c.isText() }) {
		return nil
	}
	words := slices.DeleteFunc(slices.Clone(columns), func(c *column) bool {
		return c.name == field || !areWords(s.records, c.name)
	})
	tagged := slices.ContainsFunc(words, func(c *column) bool { return isSpanTags(c) || named(c.name, "tags") })
	at := slices.IndexFunc(words, func(c *column) bool { return named(c.name, "words") })
	if at < 0 && tagged { // the one of most different words
		for i, c := range words {
			if !c.isNumeric() && (at < 0 || len(c.values) > len(words[at].values)) {
				at = i
			}
		}
	}
	if at < 0 || len(words) < 2 {
		return nil
	}
	s.word = words[at].name
	rows := len(s.records)
	f := s.Format
	f.Sentence = field
	if err := s.read(ctx, f); err != nil {
		return err
	}
	s.note("sentence: a row is a word: those with the same %s, or none of their own, are a sentence, %.3g words on "+
		"average", field, float64(rows)/float64(max(1, len(s.records))))
	return nil
}

// sentenceName matches names of columns that say which sentence a word is of.
var sentenceName = regexp.MustCompile(`(?i)(^|[_ .])(sent(ence)?|utt(erance)?)([_ .#]|id$|$)|^id$`)

// scattered returns an error for a file of a word a row, with tags, whose rows of a sentence do not follow one another.
func (s *Set) scattered(columns []*column) error {
	isWord := func(c *column) bool { return named(c.name, "words") && areWords(s.records, c.name) }
	isTag := func(c *column) bool { return isSpanTags(c) || named(c.name, "tags") }
	if !slices.ContainsFunc(columns, isWord) || !slices.ContainsFunc(columns, isTag) ||
		slices.ContainsFunc(columns, (*column).isText) {
		return nil
	}
	for _, c := range columns {
		if isWord(c) || isTag(c) || !sentenceName.MatchString(c.name) || c.n < len(s.records) || len(c.values) < 2 {
			continue
		}
		runs, before := 0, ""
		for _, r := range s.records {
			if value, _, _ := r.String(c.name); runs == 0 || value != before {
				runs, before = runs+1, value
			}
		}
		switch {
		case runs <= len(c.values):
		case runs*2 <= len(s.records): // as where the numbers begin again in each document
			return fmt.Errorf("%s: a row is a word, and the same %q, which names its sentence, is in rows that do "+
				"not follow one another; data: {sentence: %[2]q} makes each such group of rows a sentence, as where "+
				"the numbers begin again in each document", s.Train, c.name)
		default:
			return fmt.Errorf("%s: a row is a word, and the rows with the same %q, which are a sentence, do not "+
				"follow one another; sort them by it, in the order of the words", s.Train, c.name)
		}
	}
	return nil
}

// areWords reports whether nearly all records have one word in a field.
func areWords(records []corpus.Record, field string) bool {
	words := 0
	for _, r := range records {
		if text, ok, err := r.String(field); ok && err == nil && !strings.ContainsFunc(text, unicode.IsSpace) {
			words++
		}
	}
	return words*100 >= len(records)*99
}
