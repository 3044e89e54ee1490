package tasks

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
)

func init() {
	Register("ner", struct{}{}, func(_ struct{}, site Site) (Task, error) { return NewNER(site), nil })
}

// ner asks for spans of words, as tags.
type ner struct{ site Site }

var _ SpanFinder = ner{}

// NewNER makes a task whose heads find spans of words: names, slots, amounts. A record marks them with a tag for each
// word in the field tags (tags.HEAD for a head of its own), or with entities at offsets, which become BIO tags.
func NewNER(site Site) Task { return ner{site} }

func (n ner) Example(r corpus.Record) (corpus.Example, error) {
	e, err := wordsOf(r, n.site)
	if err != nil {
		return corpus.Example{}, err
	}
	for _, head := range n.site.Heads {
		target, err := n.target(r, fieldOf(r, head, "tags", "entities"), e)
		if err != nil {
			return corpus.Example{}, err
		}
		e.Targets = append(e.Targets, target)
	}
	return e, nil
}

func (n ner) target(r corpus.Record, field string, e corpus.Example) (corpus.Target, error) {
	if field != "entities" {
		target, err := tagsIn(r, field, len(e.Words))
		if err == nil {
			err = checkTags(r.Place, target.Tags)
		}
		return target, err
	}
	entities, ok, err := r.Entities()
	if err != nil || !ok {
		return corpus.Target{}, err
	}
	tags, err := entityTags(entities, e)
	return corpus.Target{Tags: tags}, err
}

// entityTags tags the words that entities touch with BIO. Entities are in order and do not overlap, but may share a
// word that is longer than they are.
func entityTags(entities []corpus.Entity, e corpus.Example) ([]string, error) {
	tags := make([]string, len(e.Words))
	for i := range tags {
		tags[i] = outside
	}
	next := 0 // first word behind all entities so far
	for i, entity := range entities {
		for next < len(e.Words) && e.Words[next].End <= entity.Span.Start {
			next++
		}
		first := next
		for ; next < len(e.Words) && e.Words[next].Start < entity.Span.End; next++ {
			tags[next] = "I-" + entity.Label
		}
		if first > 0 && e.Words[first-1].End > entity.Span.Start {
			before := entities[i-1]
			return nil, fmt.Errorf("%s: entities %s %q and %s %q share a word; a word has one tag",
				e.Place, before.Label, textOf(e, before), entity.Label, textOf(e, entity))
		}
		if next == first {
			return nil, fmt.Errorf("%s: entity %s %q has no word in it", e.Place, entity.Label, textOf(e, entity))
		}
		tags[first] = "B-" + entity.Label
	}
	return tags, nil
}

func textOf(e corpus.Example, entity corpus.Entity) string {
	return e.Text[entity.Span.Start:entity.Span.End]
}

func (n ner) Judge(gold []corpus.Target, predicted []corpus.Prediction) []Metric {
	return judgeSpans(tagsOf(gold, predicted))
}

func (n ner) Answer() corpus.Answer { return corpus.TagPerWord }

// Spans lists the spans that tags mark.
func (n ner) Spans(tags []string) []TagSpan { return spansOf(tags) }
