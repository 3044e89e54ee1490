package claims

import (
	"regexp"
	"strings"
)

// sign is a kind of contradiction within a note. Genuine notes have the same sentences and the same values of slots:
// only their combination distinguishes fraud.
type sign struct {
	sentences [3][]string
	fill      func(w *writer, fraud bool)
}

var signs = []sign{
	{ // a clinic treats while it is closed
		[3][]string{
			{
				"{clinic} closed {late}, I was treated there {early}.",
				"I was treated at {clinic} {early}, it closed {late}.",
				"{clinic} opened {early}, I was treated there {late}.",
				"They treated me at {clinic} {late}, it opened {early}.",
				"{early} {clinic} opened and {late} they treated me.",
				"{early} they treated me and {late} {clinic} closed.",
			}, {
				"{late} {clinic} closed, {early} I was treated there.",
				"They treated me there {late}, {clinic} opened {early}.",
			}, {
				"{clinic} treated me {early} and closed {late}.",
				"It was {late} that {clinic} treated me, it opened {early}.",
				"{early} I was treated at {clinic}, {late} it closed.",
			},
		},
		func(w *writer, fraud bool) {
			times := pick(w.Rand, [][2]string{{"last year", "this year"}, {"in January", "in June"},
				{"in spring", "in autumn"}})
			w.swap(fraud, "early", "late", times)
		},
	},
	{ // papers come before what they are about
		[3][]string{
			{
				"The invoice was written [a day|two days|a week] {after} the treatment.",
				"The receipt is dated [a day|two days|a week] {after} the visit.",
				"The estimate was written [a day|two days|a week] {before} the treatment.",
				"The estimate is dated [a day|two days|a week] {before} the visit.",
				"I was admitted [two days|a week] {before} they sent me home.",
				"They sent me home [a day|two days] {after} I was admitted.",
			}, {
				"[A day|Two days|A week] {after} the treatment the receipt was written.",
				"The estimate was dated [a day|a week] {before} the treatment.",
			}, {
				"[Two days|A week] {before} the visit the estimate was written.",
				"The invoice is dated [a day|two days] {after} the treatment.",
				"It was [a day|a week] {after} I was admitted that they sent me home.",
			},
		},
		func(w *writer, fraud bool) { w.swap(fraud, "before", "after", [2]string{"before", "after"}) },
	},
	{ // the unconscious walk
		[3][]string{
			{
				"I was {awake} and {came}.",
				"I {came}, I was {awake} at the time.",
				"When they saw me I was {awake}, I {came}.",
				"I {came} and was {awake}.",
			}, {
				"I was {awake} when they saw me and I {came}.",
				"I was {awake}, I {came}.",
			}, {
				"At the time I was {awake} and {came}.",
				"I {came}, and they saw me {awake}.",
				"I {came} when I was {awake}.",
			},
		},
		func(w *writer, fraud bool) {
			awake, walked := w.IntN(3) > 0, w.IntN(2) == 0
			if fraud {
				awake, walked = false, true
			} else if !awake {
				walked = false
			}
			states, ways := []string{"unconscious", "not awake", "not conscious"},
				[]string{"was carried in", "was brought there", "had to be carried"}
			if awake {
				states = []string{"awake", "conscious", "wide awake"}
			}
			if walked {
				ways = []string{"walked in by myself", "drove there myself", "went there on foot"}
			}
			w.facts["awake"], w.facts["came"] = fact{"", pick(w.Rand, states)}, fact{"", pick(w.Rand, ways)}
		},
	},
}

// swap fills two slots, in reverse order in fraud.
func (w *writer) swap(fraud bool, first, second string, with [2]string) {
	if fraud {
		first, second = second, first
	}
	w.facts[first], w.facts[second] = fact{"", with[0]}, fact{"", with[1]}
}

// sign returns a sentence of one of the signs, and fills its slots.
func (w *writer) sign(fraud bool) string {
	s := pick(w.Rand, signs)
	s.fill(w, fraud)
	return pick(w.Rand, s.sentences[w.split.part])
}

// disorder puts sentences into an unnatural order: neither the first nor the last sentence keeps its position, and at
// most one sentence follows the one that it followed. In half of the notes the halves of each sentence are swapped,
// too. The words stay the same.
func (w *writer) disorder(sentences []string) []string {
	last := len(sentences) - 1
	order := w.Perm(len(sentences))
	for order[0] == 0 || order[last] == last || followers(order) > 1 {
		order = w.Perm(len(sentences))
	}
	turn := w.IntN(2) == 0
	var disordered []string
	for _, i := range order {
		s := sentences[i]
		if turn {
			s = turned(w.choose(s))
		}
		disordered = append(disordered, s)
	}
	return disordered
}

// followers counts the numbers that follow their predecessor.
func followers(order []int) int {
	n := 0
	for i := range order[1:] {
		if order[i+1] == order[i]+1 {
			n++
		}
	}
	return n
}

// unit is a word or a slot, with adjacent punctuation.
var unit = regexp.MustCompile(`(?:\{[^}]*\}|[^\s{])+`)

// turned returns a pattern with its second half before the first; final punctuation stays at the end.
func turned(pattern string) string {
	text := strings.TrimRight(pattern, ".?!:,")
	units := unit.FindAllString(text, -1)
	half := len(units) / 2
	first, second := strings.Join(units[:half], " "), strings.Join(units[half:], " ")
	if before, comma := strings.CutSuffix(first, ","); comma {
		first, second = before, second+","
	}
	return strings.TrimSpace(second+" "+first) + pattern[len(text):]
}
