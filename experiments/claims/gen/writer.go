package main

import (
	"math/rand/v2"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// writer writes the text of one note, clause or question.
type writer struct {
	*rand.Rand
	split          Split
	text           strings.Builder
	length         int // of text, in characters
	entities       []entity
	capitalizeNext bool                 // the next letter is a capital
	lowercase      bool                 // the text has no capital letters
	withoutTypos   bool                 // the text has no typos
	expenses       map[string]expense   // by slot: claimed, other and third
	slotValues     map[string]slotValue // of slots that have the same value wherever they occur
	positions      map[string]span      // of the expenses and entities written so far, by slot
}

// slotValue is what a slot is replaced by. Without a label it is not an entity.
type slotValue struct{ label, text string }

// span is a part of a text, in characters, end exclusive.
type span struct{ start, end int }

func newWriter(r *rand.Rand, split Split) *writer {
	return &writer{
		Rand:       r,
		split:      split,
		entities:   []entity{},
		slotValues: map[string]slotValue{},
		positions:  map[string]span{},
	}
}

// writeSentences writes sentence patterns, separated by blanks.
func (w *writer) writeSentences(patterns []string) {
	for i, pattern := range patterns {
		if i > 0 {
			w.writeText(" ")
		}
		w.writeSentence(pattern)
	}
}

// writeSentence writes a sentence pattern. Its first letter becomes a capital.
func (w *writer) writeSentence(pattern string) {
	w.capitalizeNext = true
	w.writePattern(w.chooseAlternatives(pattern), "")
}

// chooseAlternatives returns a pattern with one of its alternatives drawn at each place.
func (w *writer) chooseAlternatives(pattern string) string {
	pattern = alternativesPattern.ReplaceAllStringFunc(pattern, func(alternatives string) string {
		return pick(w.Rand, strings.Split(alternatives[1:len(alternatives)-1], "|"))
	})
	return strings.Join(strings.Fields(pattern), " ")
}

// writePattern writes a pattern without alternatives. procedure is the value of its slot {procedure}.
func (w *writer) writePattern(pattern, procedure string) {
	for {
		at := slotPattern.FindStringSubmatchIndex(pattern)
		if at == nil {
			w.writeText(w.addTypos(pattern))
			return
		}
		w.writeText(w.addTypos(pattern[:at[0]]))

		verb := ""
		if at[4] >= 0 {
			verb = pattern[at[4]:at[5]]
		}
		w.writeSlot(pattern[at[2]:at[3]], verb, procedure)
		pattern = pattern[at[1]:]
	}
}

// writeSlot writes the value of a slot, or the verb that agrees with it if verb is not empty.
func (w *writer) writeSlot(slot, verb, procedure string) {
	start := w.length
	if e, ok := w.expenses[slot]; ok {
		if verb != "" {
			w.writeText(e.verbForm(verb))
			return
		}
		w.writePattern(e.pattern, e.procedure)
		w.positions[slot] = span{start, w.length}
		return
	}
	if value, ok := w.slotValues[slot]; ok {
		if value.label == "" {
			w.writeText(value.text)
			return
		}
		w.writeEntity(value.label, value.text)
		w.positions[slot] = span{start, w.length}
		return
	}

	switch slot {
	case "number":
		w.writeText(pick(w.Rand, numbersWithoutLabel))
	case "procedure":
		w.writeEntity(slot, procedure)
	default:
		w.writeEntity(slot, entityGenerators[slot](w.Rand, w.split.index))
	}
}

// writeEntity writes a value and appends it to the entities.
func (w *writer) writeEntity(label, value string) {
	start := w.length
	w.writeText(value)
	w.entities = append(w.entities, entity{start, w.length, label})
}

// writeText writes s with the capital and lowercase letters that it needs.
func (w *writer) writeText(s string) {
	if s == "" {
		return
	}
	if w.capitalizeNext {
		first, size := utf8.DecodeRuneInString(s)
		s = string(unicode.ToUpper(first)) + s[size:]
		w.capitalizeNext = false
	}
	if w.lowercase {
		s = strings.ToLower(s)
	}
	w.text.WriteString(s)
	w.length += utf8.RuneCountInString(s)
}

// typoRate is the fraction of words of five letters or more that have a typo. Entities have none: members copy them
// from their papers.
const typoRate = 0.03

// longWordPattern matches a word long enough for a typo.
var longWordPattern = regexp.MustCompile(`[a-z]{5,}`)

// addTypos returns s with typos at random.
func (w *writer) addTypos(s string) string {
	if w.withoutTypos {
		return s
	}
	return longWordPattern.ReplaceAllStringFunc(s, func(word string) string {
		if w.Float64() >= typoRate {
			return word
		}
		i := 1 + w.IntN(len(word)-2)
		switch w.IntN(3) {
		case 0: // two letters swapped
			return word[:i] + word[i+1:i+2] + word[i:i+1] + word[i+2:]
		case 1: // a letter omitted
			return word[:i] + word[i+1:]
		default: // a letter doubled
			return word[:i] + word[i:i+1] + word[i:]
		}
	})
}

// pick draws an element of list.
func pick[E any](r *rand.Rand, list []E) E { return list[r.IntN(len(list))] }

// disorder returns the sentences in an order that no member writes: another one is first, another one is last, and at
// most one follows the sentence that it followed before. In half of the notes the halves of each sentence are swapped,
// too. The words of the note and the content of each sentence stay the same.
func (w *writer) disorder(sentences []string) []string {
	last := len(sentences) - 1
	order := w.Perm(len(sentences))
	for order[0] == 0 || order[last] == last || countSuccessors(order) > 1 {
		order = w.Perm(len(sentences))
	}
	swap := w.IntN(2) == 0
	var disordered []string
	for _, i := range order {
		s := sentences[i]
		if swap {
			s = swapHalves(w.chooseAlternatives(s))
		}
		disordered = append(disordered, s)
	}
	return disordered
}

// countSuccessors counts the numbers that follow the number one below them.
func countSuccessors(order []int) int {
	n := 0
	for i := range order[1:] {
		if order[i+1] == order[i]+1 {
			n++
		}
	}
	return n
}

// wordPattern matches a word, or a slot with the characters attached to it.
var wordPattern = regexp.MustCompile(`(?:\{[^}]*\}|[^\s{])+`)

// swapHalves returns a sentence pattern with its second half before the first. Punctuation at the end stays there.
func swapHalves(pattern string) string {
	text := strings.TrimRight(pattern, ".?!:,")
	words := wordPattern.FindAllString(text, -1)
	half := len(words) / 2
	first, second := strings.Join(words[:half], " "), strings.Join(words[half:], " ")
	if before, comma := strings.CutSuffix(first, ","); comma {
		first, second = before, second+","
	}
	return strings.TrimSpace(second+" "+first) + pattern[len(text):]
}
