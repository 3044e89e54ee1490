package claims

import (
	"regexp"
	"strings"
)

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
