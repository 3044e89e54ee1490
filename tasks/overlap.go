package tasks

import (
	"slices"
	"sort"

	"github.com/jenga-nlp/jenga/corpus"
)

// withoutOverlap returns the entities, which are in order, without those that have a word in common with one that the
// option overlap keeps.
func (n ner) withoutOverlap(entities []corpus.Entity, e corpus.Example) []corpus.Entity {
	order := make([]int, len(entities)) // in which entities are kept
	for i := range entities {
		order[i] = i
	}
	if n.Overlap == "longest" {
		before := runesBefore(e.Text)
		length := func(i int) int { return before[entities[i].Span.End] - before[entities[i].Span.Start] }
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

// runesBefore counts for each byte of a text, and its end, the characters that begin before it.
func runesBefore(text string) []int {
	before, last := make([]int, len(text)+1), 0
	n := 0
	for at := range text {
		for ; last <= at; last++ {
			before[last] = n
		}
		n++
	}
	for ; last <= len(text); last++ {
		before[last] = n
	}
	return before
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
