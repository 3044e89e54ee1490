package outputs

import (
	"strings"
	"unicode"

	"github.com/jenga-nlp/jenga/corpus"
)

// MatchAnswers returns the best exact match and F1 of an answer against the gold ones, as SQuAD's official script does:
// ignoring case, punctuation, articles and white space (Rajpurkar et al. 2016 and 2018). If the context has no answer,
// the empty answer is right.
func MatchAnswers(gold []corpus.TextSpan, answer string) (exact, f1 float64) {
	var texts []string
	for _, g := range gold {
		if words := normalWords(g.Text); len(words) > 0 {
			texts = append(texts, strings.Join(words, " "))
		}
	}
	if len(texts) == 0 {
		texts = []string{""} // no answer
	}
	words := normalWords(answer)
	for _, text := range texts {
		if text == strings.Join(words, " ") {
			exact = 1
		}
		f1 = max(f1, overlap(strings.Fields(text), words))
	}
	return exact, f1
}

// overlap is the F1 of the words of an answer against those of the gold one; if one is empty, 1 if both are, else 0.
func overlap(gold, answer []string) float64 {
	if len(gold) == 0 || len(answer) == 0 {
		if len(gold) == len(answer) {
			return 1
		}
		return 0
	}
	left := map[string]int{}
	for _, w := range gold {
		left[w]++
	}
	same := 0
	for _, w := range answer {
		if left[w] > 0 {
			left[w]--
			same++
		}
	}
	return float64(2*same) / float64(len(gold)+len(answer))
}

// normalWords are the words of an answer in lower case, without ASCII punctuation and the articles a, an, the.
func normalWords(text string) []string {
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", r) {
			return -1
		}
		return r
	}, strings.ToLower(text))
	return strings.Fields(withoutArticles(text))
}

// withoutArticles replaces each word a, an and the by a blank; words are runs of letters, digits and _.
func withoutArticles(text string) string {
	inWord := func(r rune) bool { return r == '_' || unicode.IsLetter(r) || unicode.IsNumber(r) }
	var b strings.Builder
	for len(text) > 0 {
		n := strings.IndexFunc(text, func(r rune) bool { return !inWord(r) })
		if n < 0 {
			n = len(text)
		}
		switch word := text[:n]; word {
		case "a", "an", "the":
			b.WriteByte(' ')
		default:
			b.WriteString(word)
		}
		text = text[n:]
		n = strings.IndexFunc(text, inWord)
		if n < 0 {
			n = len(text)
		}
		b.WriteString(text[:n])
		text = text[n:]
	}
	return b.String()
}
