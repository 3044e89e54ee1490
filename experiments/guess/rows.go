package guess

import (
	"context"
	"slices"
	"strings"
	"unicode"

	"github.com/jenga-nlp/jenga/corpus"
)

// acceptedRows reads a file of Prodigy's, whose field answer says what was accepted, rejected and ignored, again
// without the others. Where all records have one label, or none, the answers are the labels.
func (s *Set) acceptedRows(ctx context.Context) error {
	const field, accepted = "answer", "accept"
	counts, lists, labels := map[string]int{}, false, map[string]bool{}
	for _, r := range s.records {
		value, _, err := r.String(field)
		if err != nil || !slices.Contains([]string{accepted, "reject", "ignore"}, value) {
			return nil
		}
		counts[value]++
		for _, name := range []string{"spans", "accept"} {
			_, isList := r.Fields[name].([]any)
			lists = lists || isList
		}
		if label, has, _ := r.String("label"); has && value == accepted {
			labels[label] = true
		}
	}
	if counts[accepted] == 0 || len(counts) == 1 || !lists && len(labels) < 2 {
		return nil
	}
	f, all := s.Format, len(s.records)
	f.Where = map[string][]string{field: {accepted}}
	if err := s.read(ctx, f); err != nil {
		return err
	}
	s.note("where: %s of %d have the %s %s", records(counts[accepted]), all, field, accepted)
	return nil
}

// joinRows reads a file that has a word a row again, with its sentences as records.
func (s *Set) joinRows(ctx context.Context) error {
	field := corpus.SentenceField(s.records)
	if field == "" {
		return nil
	}
	columns := columnsOf(s.records, s.header)
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

// isSpanTags reports whether all values of a column are span tags, some of them other than O.
func isSpanTags(c *column) bool {
	for value := range c.values {
		if !spanTag.MatchString(value) {
			return false
		}
	}
	return len(c.values) > 1
}
