package tasks

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// scheme is how tags mark spans: bio, bioes or io.
type scheme string

// schemeOf is the scheme that the tags of some texts are in: bioes where a tag ends a span, bio where one begins one,
// io where tags are only inside.
func schemeOf(texts ...[]string) scheme {
	found := scheme("io")
	for _, tags := range texts {
		for _, tag := range tags {
			switch position, _, _ := cutTag(tag); position {
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

// tag is that of word i of a span.
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

// spans lists the spans that tags mark in the scheme to the letter, as seqeval's strict mode reads them: what does not
// begin, go on and end as the scheme says marks none.
func (s scheme) spans(tags []string) []outputs.TagSpan {
	if s == "io" {
		return spansOf(tags)
	}
	var spans []outputs.TagSpan
	for i := 0; i < len(tags); {
		position, label, _ := cutTag(tags[i])
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
			position, label, _ := cutTag(tags[i])
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

// mend makes tags that mark the same spans, as seqeval's default mode reads them, in the scheme to the letter. Words
// without a tag, "", stay.
func (s scheme) mend(tags []string) []string {
	mended := s.tags(spansOf(tags), len(tags))
	for i, tag := range tags {
		if tag == "" {
			mended[i] = ""
		}
	}
	return mended
}

// check refuses tags that do not begin, go on and end spans as the scheme says.
func (s scheme) check(at corpus.Place, tags []string) error {
	mended := s.mend(tags)
	for i, tag := range tags {
		if tag != mended[i] {
			behind := "as the first tag"
			if i > 0 {
				behind = fmt.Sprintf("behind %q", tags[i-1])
			}
			return fmt.Errorf("%s: tag %d is %q %s; broken_tags: repair makes it %q", at, i+1, tag, behind, mended[i])
		}
	}
	return nil
}

// judgeStrictly gives the figures of spans of seqeval's strict mode in the scheme.
func (s scheme) judgeStrictly(gold, predicted [][]string) []Metric {
	ts := tallies{}
	for i, tags := range gold {
		ts.addSpans(s.spans(tags), s.spans(judged(tags, predicted[i])))
	}
	micro := ts.sum().scores()
	return []Metric{
		{Name: "f1_strict", Value: micro.f1},
		{Name: "precision_strict", Value: micro.precision},
		{Name: "recall_strict", Value: micro.recall},
	}
}
