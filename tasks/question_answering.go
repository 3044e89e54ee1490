package tasks

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() {
	Register("question_answering", struct{}{},
		func(_ struct{}, env Env) (Task, error) { return NewQuestionAnswering(env), nil })
}

// questionAnswering extracts the span of a context that answers a question. Its metrics are those of SQuAD (Rajpurkar
// et al. 2016 and 2018): f1, the overlap of words with the best of the gold answers, and exact_match, both ignoring
// case, punctuation, articles and white space; the same over the questions that have an answer, _answered; and over
// those that have none exact_match_unanswered, which equals their f1: no answer is right.
type questionAnswering struct{ heads []string }

// NewQuestionAnswering makes a task whose heads extract answers from a context. A record has the fields question,
// context and answers, as in SQuAD 1.1 and 2.0: texts, or texts and the characters at which they begin; an empty list
// where the context has no answer.
func NewQuestionAnswering(env Env) Task { return questionAnswering{env.Heads} }

func (q questionAnswering) Output() *outputs.Kind { return outputs.Span }

func (q questionAnswering) Describe() Description { return Description{Undefined: q.undefined} }

func (q questionAnswering) Example(r corpus.Record) (corpus.Example, error) {
	return exampleOf(r, q.heads, nil, func(e corpus.Example, _ string) (corpus.Target, error) {
		switch {
		case !e.Paired && r.Fields["text"] != nil && r.Fields["question"] != nil && r.Fields["context"] != nil:
			return nil, fmt.Errorf("%s: field \"text\" is read before question and context; write data: "+
				"{question: question, context: context} to read these", r.Place)
		case !e.Paired:
			return nil, fmt.Errorf("%s: a question without a context; data: {context: FIELD} names the field that "+
				"holds it", r.Place)
		}
		answers, ok, err := r.Answers(e.Pair)
		if err != nil || !ok {
			return nil, err
		}
		return &outputs.SpanTarget{Answers: answers}, nil
	})
}

func (q questionAnswering) Evaluate(gold []corpus.Target, predicted []corpus.Prediction) []Metric {
	type sums struct{ exact, f1, n float64 }
	var all, with, without sums
	for g, p := range pairs[outputs.SpanTarget, outputs.SpanPrediction](gold, predicted) {
		exact, f1 := outputs.MatchAnswers(g.Answers, p.Answer.Text)
		part := &with
		if len(g.Answers) == 0 {
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
		{Name: "f1", F1: true, Value: of(all.f1, all)},
		{Name: "exact_match", Value: of(all.exact, all)},
		{Name: "f1_answered", Value: of(with.f1, with)},
		{Name: "exact_match_answered", Value: of(with.exact, with)},
		{Name: "exact_match_unanswered", Value: of(without.exact, without)},
	}
}

func (q questionAnswering) undefined(gold []corpus.Target, metric string) bool {
	answered := 0
	for _, g := range outputs.AllAs[outputs.SpanTarget](gold) {
		if len(g.Answers) > 0 {
			answered++
		}
	}
	switch metric {
	case "f1_answered", "exact_match_answered":
		return answered == 0
	case "exact_match_unanswered":
		return answered == len(gold)
	}
	return false
}
