package tasks

import (
	"slices"
	"unicode/utf8"

	"github.com/jenga-nlp/jenga/corpus"
)

// withoutOverlap returns the entities, which are in order, without those that have a word in common with one that the
// option overlap keeps.
func (n ner) withoutOverlap(entities []corpus.Entity, e corpus.Example) []corpus.Entity {
	spans := make([]corpus.Span, len(entities)) // of whole words
	order := make([]int, len(entities))         // in which entities are kept
	for i, entity := range entities {
		spans[i], order[i] = wholeWords(entity.Span, e.Words), i
	}
	if n.Overlap == "longest" {
		length := func(i int) int { // in characters
			span := entities[i].Span
			return utf8.RuneCountInString(e.Text[span.Start:span.End])
		}
		slices.SortStableFunc(order, func(i, j int) int { return length(j) - length(i) })
	}

	kept := make([]bool, len(entities))
	for _, i := range order {
		other := slices.IndexFunc(order, func(j int) bool {
			return kept[j] && spans[i].Start < spans[j].End && spans[j].Start < spans[i].End
		})
		if kept[i] = other < 0; !kept[i] {
			in := entities[order[other]]
			n.found.dropped.add("%s, %s %q beside %s %q", e.Place, entities[i].Label, textOf(e, entities[i]), in.Label,
				textOf(e, in))
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

// wholeWords extends a span to the ends of the words that it overlaps.
func wholeWords(span corpus.Span, words []corpus.Span) corpus.Span {
	for _, w := range words {
		if w.Start < span.End && span.Start < w.End {
			span.Start, span.End = min(span.Start, w.Start), max(span.End, w.End)
		}
	}
	return span
}
