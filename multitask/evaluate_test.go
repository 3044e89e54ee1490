package multitask

import (
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/tasks"
)

// kindOf is a task of one kind of answers, which are not judged here.
type kindOf struct{ answer corpus.Answer }

func (k kindOf) Answer() corpus.Answer { return k.answer }

func (kindOf) Example(corpus.Record) (corpus.Example, error) { return corpus.Example{}, nil }

func (kindOf) Judge([]corpus.Target, []corpus.Prediction) []tasks.Metric { return nil }

func groupOf(answers ...corpus.Answer) *Group {
	g := &Group{}
	for _, a := range answers {
		g.Tasks = append(g.Tasks, Task{Kind: kindOf{a}, Heads: []Head{{}}})
	}
	return g
}

func TestAllRightCountsAnswersThatCanBeRight(t *testing.T) {
	number := func(v float64) corpus.Target { return corpus.Target{Value: &v} }
	examples := []*corpus.Example{
		{Targets: []corpus.Target{{Label: "a"}, number(1), {Tags: []string{"O", "B-x"}}}},
		{Targets: []corpus.Target{{Label: "b"}, number(2), {Tags: []string{"O"}}}},
		{Targets: []corpus.Target{{Label: "b"}, {}, {Tags: []string{"O"}}}}, // whose number is not known
		{Targets: []corpus.Target{{}, number(3), {Tags: []string{"O"}}}},    // not labelled for all
	}
	predicted := [][]corpus.Prediction{
		{{Label: "a"}, {Label: "b"}, {Label: "b"}, {Label: "b"}},
		{{Value: 9}, {Value: 2}, {Value: 0}, {Value: 3}},
		{{Tags: []string{"O", "B-x"}}, {Tags: []string{"B-x"}}, {Tags: []string{"O"}}, {Tags: []string{"O"}}},
	}
	losses := make([]Loss, 3)
	score := groupOf(corpus.OneLabel, corpus.Number, corpus.TagPerWord).judge(examples, predicted, losses)
	for h, want := range []int{3, 3, 4} {
		if got := score.Tasks[h].Heads[0].Examples; got != want {
			t.Errorf("head %d is judged by %d examples, want %d", h+1, got, want)
		}
	}
	if got := groupOf(corpus.OneLabel, corpus.Number, corpus.TagPerWord).judge(examples, predicted, losses).AllRight; got == nil || *got != 2./3 {
		t.Errorf("of a label, a number and tags all are right of %v, want 2/3: the second text has a wrong tag", got)
	}
	for _, answers := range [][]corpus.Answer{{corpus.Number, corpus.Number, corpus.Number}, {corpus.OneLabel, corpus.Number, corpus.Anomaly}} {
		if got := groupOf(answers...).judge(examples, predicted, losses).AllRight; got != nil {
			t.Errorf("of %v all are right of %v, want no share: there are no two that can be right", answers, *got)
		}
	}
	quoted := groupOf(corpus.OneLabel, corpus.Quoted)
	quoted.Tasks[1].Kind = tasks.NewQuestionAnswering(tasks.Site{Heads: []string{"answer"}})
	examples = []*corpus.Example{{Targets: []corpus.Target{{Label: "a"}, {Quotes: []corpus.Quote{{Text: "The cat."}}}}}}
	predicted = [][]corpus.Prediction{{{Label: "a"}}, {{Quote: corpus.Quote{Text: "cat"}}}}
	if got := quoted.judge(examples, predicted, losses).AllRight; got == nil || *got != 1 {
		t.Errorf("all are right of %v, want 1: what SQuAD's metric takes for a match is right", got)
	}
}
