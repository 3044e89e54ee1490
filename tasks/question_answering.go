package tasks

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/jenga-nlp/jenga/corpus"
)

func init() {
	Register("question_answering", struct{}{}, func(_ struct{}, site Site) (Task, error) { return NewQuestionAnswering(site), nil })
}

// questionAnswering asks for the part of a context that answers a question. Its metrics are those of SQuAD (Rajpurkar
// et al. 2016 and 2018): f1, the overlap of words with the best of the gold answers, and exact_match, both without
// case, punctuation, articles and white space; the same of the questions that have an answer, _answered; and of those
// that have none exact_match_unanswered, which is their f1, too.
type questionAnswering struct{ heads []string }

// NewQuestionAnswering makes a task whose heads find answers in a context. A record has the fields question, context and
// answers, as in SQuAD 1.1 and 2.0: texts, or texts and the characters at which they begin; an empty list where the
// context has no answer.
func NewQuestionAnswering(site Site) Task { return questionAnswering{site.Heads} }

func (q questionAnswering) Answer() corpus.Answer { return corpus.Quoted }

func (q questionAnswering) Example(r corpus.Record) (corpus.Example, error) {
	e, err := r.Example()
	if err != nil {
		return corpus.Example{}, err
	}
	switch {
	case !e.Paired && r.Fields["text"] != nil && r.Fields["question"] != nil && r.Fields["context"] != nil:
		return corpus.Example{}, fmt.Errorf("%s: field \"text\" stands before question and context; data: {question: question, context: context} says that these are meant", r.Place)
	case !e.Paired:
		return corpus.Example{}, fmt.Errorf("%s: a question without a context; data: {context: FIELD} names the field that holds it", r.Place)
	}
	quotes, ok, err := r.Quotes(e.Pair)
	if err != nil {
		return corpus.Example{}, err
	}
	for range q.heads {
		var target corpus.Target
		if ok {
			target.Quotes = quotes
		}
		e.Targets = append(e.Targets, target)
	}
	return e, nil
}

// Judge compares answers as SQuAD's official script does: by the best of the gold ones, without case, punctuation,
// articles and white space. A question without an answer is right where none is given.
func (q questionAnswering) Judge(gold []corpus.Target, predicted []corpus.Prediction) []Metric {
	alike(len(gold), len(predicted), "answers")
	type sums struct{ exact, f1, n float64 }
	var all, with, without sums
	for i, g := range gold {
		exact, f1 := quoteScores(g.Quotes, predicted[i].Quote.Text)
		part := &with
		if len(g.Quotes) == 0 {
			part = &without
		}
		for _, s := range []*sums{&all, part} {
			s.exact += exact
			s.f1 += f1
			s.n++
		}
	}
	of := func(sum float64, s sums) float64 { return sum / max(1, s.n) }
	return []Metric{
		{Name: "f1", Value: of(all.f1, all)},
		{Name: "exact_match", Value: of(all.exact, all)},
		{Name: "f1_answered", Value: of(with.f1, with)},
		{Name: "exact_match_answered", Value: of(with.exact, with)},
		{Name: "exact_match_unanswered", Value: of(without.exact, without)},
	}
}

// Right implements Righter: an exact match is.
func (q questionAnswering) Right(gold corpus.Target, predicted corpus.Prediction) bool {
	exact, _ := quoteScores(gold.Quotes, predicted.Quote.Text)
	return exact == 1
}

// quoteScores are the best exact match and F1 of an answer against the gold ones.
func quoteScores(gold []corpus.Quote, answer string) (exact, f1 float64) {
	var texts []string
	for _, g := range gold {
		if words := normalWords(g.Text); len(words) > 0 {
			texts = append(texts, strings.Join(words, " "))
		}
	}
	if len(texts) == 0 {
		texts = []string{""} // the right answer is none
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

// overlap is the F1 of the words of an answer against those of the gold one; where one has none, whether both have.
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
	return tally{same, len(gold), len(answer)}.scores().f1
}

// normalWords are the words of an answer in lower case, without the punctuation of ASCII and the articles a, an, the.
func normalWords(text string) []string {
	text = strings.Map(func(r rune) rune {
		if strings.ContainsRune("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~", r) {
			return -1
		}
		return r
	}, strings.ToLower(text))
	return strings.Fields(withoutArticles(text))
}

// withoutArticles puts a blank in the place of each a, an and the that stands between what are no letters, digits or _.
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
