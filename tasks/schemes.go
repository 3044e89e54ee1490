package tasks

import (
	"fmt"

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

// tags writes spans of n words, in order, as tags of the scheme.
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

// tag is the tag of word i of a span.
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

// check refuses tags that do not begin, continue and end spans by the scheme.
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

// judgeStrictly returns the metrics of spans in seqeval's strict mode for the scheme.
func (s scheme) judgeStrictly(gold, predicted [][]string) []Metric {
	ts := tallies{}
	for i, tags := range gold {
		ts.addSpans(s.spans(tags), s.spans(judged(tags, predicted[i])))
	}
	micro := ts.sum().rates()
	return []Metric{
		{Name: "span_f1_strict", Former: "f1_strict", Value: micro.f1},
		{Name: "span_precision_strict", Former: "precision_strict", Value: micro.precision},
		{Name: "span_recall_strict", Former: "recall_strict", Value: micro.recall},
	}
}
