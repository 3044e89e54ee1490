package tasks

import (
	"fmt"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// scheme is how tags mark spans: bio, bioes or io.
type scheme string

// schemeOf is the scheme of the tags of some texts: bioes if a tag is E or S, else bio if one is B, else io.
func schemeOf(texts ...[]string) scheme {
	found := scheme("io")
	for _, tags := range texts {
		for _, tag := range tags {
			switch position, _, _ := splitTag(tag); position {
			case 'E', 'S':
				return "bioes"
			case 'B':
				found = "bio"
			}
		}
	}
	return found
}

func (s scheme) tags(spans []outputs.TagSpan, n int) []string {
	tags := make([]string, n)
	for i := range tags {
		tags[i] = outside
	}
	for _, span := range spans {
		for i := span.Start; i < span.End; i++ {
			tags[i] = s.tag(span, i)
		}
	}
	return tags
}

func (s scheme) tag(span outputs.TagSpan, i int) string {
	first, last := i == span.Start, i == span.End-1
	position := "I-"
	switch {
	case s == "bioes" && first && last:
		position = "S-"
	case s == "bioes" && last:
		position = "E-"
	case s != "io" && first:
		position = "B-"
	}
	if span.Label == "_" {
		return position[:1] // a tag without a label
	}
	return position + span.Label
}

// spans lists the spans that tags mark under strict reading of the scheme, as in seqeval's strict mode: tags that do
// not begin, continue and end a span by the scheme mark none.
func (s scheme) spans(tags []string) []outputs.TagSpan {
	if s == "io" {
		return spansOf(tags)
	}
	var spans []outputs.TagSpan
	for i := 0; i < len(tags); {
		position, label, _ := splitTag(tags[i])
		span := outputs.TagSpan{Label: label, Start: i, End: i + 1}
		if i++; position == 'S' && s == "bioes" {
			spans = append(spans, span)
			continue
		}
		if position != 'B' {
			continue
		}
		ended := s == "bio"
		for i < len(tags) {
			position, label, _ := splitTag(tags[i])
			inner := position == 'I' || position == 'E' && s == "bioes"
			if !inner || label != span.Label || s == "bioes" && ended {
				break
			}
			i++
			span.End, ended = i, s == "bio" || position == 'E'
		}
		if ended {
			spans = append(spans, span)
		}
	}
	return spans
}

// repair returns tags of the scheme that mark the same spans as tags do in seqeval's default mode. Words without a tag,
// "", stay.
func (s scheme) repair(tags []string) []string {
	repaired := s.tags(spansOf(tags), len(tags))
	for i, tag := range tags {
		if tag == "" {
			repaired[i] = ""
		}
	}
	return repaired
}

func (s scheme) check(at corpus.Place, tags []string) error {
	repaired := s.repair(tags)
	for i, tag := range tags {
		if tag != repaired[i] {
			after := "as the first tag"
			if i > 0 {
				after = fmt.Sprintf("after %q", tags[i-1])
			}
			return fmt.Errorf("%s: tag %d is %q %s; broken_tags: repair makes it %q", at, i+1, tag, after, repaired[i])
		}
	}
	return nil
}

func (s scheme) judgeStrictly(gold, predicted [][]string) []Metric {
	ts := tallies{}
	for i, tags := range gold {
		ts.addSpans(s.spans(tags), s.spans(judged(tags, predicted[i])))
	}
	return ts.sum().rates().metrics("span_", "_strict")
}

// outside is the tag of a word that is in no span.
const outside = "O"

// splitTag splits a tag into the position of its word in a span and the span's label: B-city into B and city. ok is
// false if it is not a tag of BIO, BIOES or IO. As in seqeval, a bare B has the label "_".
func splitTag(tag string) (position byte, label string, ok bool) {
	if tag == "" || tag == outside {
		return 'O', "", true
	}
	if !strings.ContainsRune("BIES", rune(tag[0])) {
		return 0, "", false
	}
	label, dash := strings.CutPrefix(tag[1:], "-")
	if len(tag) == 1 {
		return tag[0], "_", true
	}
	return tag[0], label, dash && label != ""
}

// inBIOES changes tags of BILOU (last and unit) and BMES (middle) to those of BIOES that mean the same.
func inBIOES(tags []string) []string {
	same := map[byte]string{'L': "E", 'U': "S", 'M': "I"}
	for i, tag := range tags {
		if len(tag) == 1 || len(tag) > 2 && tag[1] == '-' {
			if letter := same[tag[0]]; letter != "" {
				tags[i] = letter + tag[1:]
			}
		}
	}
	return tags
}

// checkTags refuses tags that mark no spans.
func checkTags(at corpus.Place, tags []string) error {
	for i, tag := range tags {
		if _, _, ok := splitTag(tag); !ok {
			if _, err := strconv.Atoi(tag); err == nil {
				return fmt.Errorf("%s: tag %d is the number %q; label_maps: {HEAD: {0: O, 1: B-PER, …}} beside type "+
					"names the tags of numbers", at, i+1, tag)
			}
			return fmt.Errorf("%s: tag %d is %q; ner takes O, and B-, I-, E- or S- before a label, or L-, U- or M-, "+
				"tagging takes any tag%s", at, i+1, tag, otherTag(at, i, tag))
		}
	}
	return nil
}

// columnTag matches the name of a column.
var columnTag = regexp.MustCompile(`(?i)^(ner|bio|iob|slot|gold)?[-_ ]?(tags?|labels?|ner)$`)

// otherTag continues the error of tag number i of a record with the form that it is of, and a remedy; "" for none.
func otherTag(at corpus.Place, i int, tag string) string {
	switch form := corpus.OtherSpanTag(tag); {
	case form != "":
		return "; " + form
	case at.Line == 1 && i == 0 && columnTag.MatchString(tag):
		return "; if line 1 has the names of columns, data: {comments: LINE} skips it, where LINE is how it begins"
	}
	return ""
}

// spansOf lists the spans that tags mark in seqeval's default mode, which is conlleval's: I or E after B or I of the
// same label continues a span; any other tag but O begins one. A tag that is not a span tag marks its word alone.
func spansOf(tags []string) []outputs.TagSpan {
	var spans []outputs.TagSpan
	open := false // the last span may continue
	for i, tag := range tags {
		position, label, ok := splitTag(tag)
		if !ok {
			position, label = 'S', tag
		}
		if position == 'O' {
			open = false
			continue
		}
		inner := position == 'I' || position == 'E'
		if open && inner && spans[len(spans)-1].Label == label {
			spans[len(spans)-1].End = i + 1
		} else {
			spans = append(spans, outputs.TagSpan{Label: label, Start: i, End: i + 1})
		}
		open = position == 'B' || position == 'I'
	}
	return spans
}

// withoutOverlap returns the entities, which are in order, without those that have a word in common with one that the
// option overlap keeps.
func (n ner) withoutOverlap(entities []corpus.Entity, e corpus.Example) []corpus.Entity {
	order := make([]int, len(entities)) // in which entities are kept
	for i := range entities {
		order[i] = i
	}
	if n.Overlap == "longest" {
		characters := corpus.NewOffsets(e.Text, corpus.Characters)
		length := func(i int) int {
			span := characters.Span(entities[i].Span)
			return span.End - span.Start
		}
		slices.SortStableFunc(order, func(i, j int) int { return length(j) - length(i) })
	}

	// Those kept before an entity are at least as long (longest), or begin no later (first): one that overlaps it
	// contains its first byte or its last.
	keptAt := make([]int, len(e.Text)) // 1 + the rank of the kept entity at each byte; 0: none
	kept := make([]bool, len(entities))
	for rank, i := range order {
		span := wholeWords(entities[i].Span, e.Words)
		first, last := keptAt[span.Start], keptAt[span.End-1]
		if first == 0 || last > 0 && last < first {
			first = last
		}
		if first > 0 {
			in := entities[order[first-1]]
			n.found.dropped.add("%s, %s %q beside %s %q", e.Place, entities[i].Label, textOf(e, entities[i]), in.Label,
				textOf(e, in))
			continue
		}
		kept[i] = true
		for at := span.Start; at < span.End; at++ {
			keptAt[at] = rank + 1
		}
	}

	var all []corpus.Entity
	for i, entity := range entities {
		if kept[i] {
			all = append(all, entity)
		}
	}
	return all
}

// wholeWords extends a span to the ends of the words, in order, that it overlaps.
func wholeWords(span corpus.Span, words []corpus.Span) corpus.Span {
	first := sort.Search(len(words), func(i int) bool { return words[i].End > span.Start })
	next := sort.Search(len(words), func(i int) bool { return words[i].Start >= span.End })
	if first < next {
		span.Start, span.End = min(span.Start, words[first].Start), max(span.End, words[next-1].End)
	}
	return span
}
