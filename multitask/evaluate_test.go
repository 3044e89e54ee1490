package multitask

import (
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

// kindOf is a task of one kind of outputs, which are not judged here.
type kindOf struct{ kind *outputs.Kind }

func (k kindOf) Output() *outputs.Kind { return k.kind }

func (kindOf) Example(corpus.Record) (corpus.Example, error) { return corpus.Example{}, nil }

func (kindOf) Evaluate([]corpus.Target, []corpus.Prediction) []tasks.Metric { return nil }

func groupOf(kinds ...*outputs.Kind) *Group {
	g := &Group{}
	for _, k := range kinds {
		g.Tasks = append(g.Tasks, Task{Type: kindOf{k}, Heads: []Head{{}}})
	}
	return g
}

func TestAllRightCountsPredictionsThatCanBeRight(t *testing.T) {
	label := func(name string) corpus.Target { return &outputs.LabelTarget{Label: name} }
	number := func(v float64) corpus.Target { return &outputs.NumberTarget{Value: v} }
	tags := func(names ...string) corpus.Target { return &outputs.TagsTarget{Tags: names} }
	examples := []*corpus.Example{
		{Targets: []corpus.Target{label("a"), number(1), tags("O", "B-x")}},
		{Targets: []corpus.Target{label("b"), number(2), tags("O")}},
		{Targets: []corpus.Target{label("b"), nil, tags("O")}}, // whose number is not known
		{Targets: []corpus.Target{nil, number(3), tags("O")}},  // not labelled for all
	}
	predicted := [][]corpus.Prediction{
		outputs.Erase([]outputs.LabelPrediction{{Label: "a"}, {Label: "b"}, {Label: "b"}, {Label: "b"}}),
		outputs.Erase([]outputs.NumberPrediction{{Value: 9}, {Value: 2}, {Value: 0}, {Value: 3}}),
		outputs.Erase([]outputs.TagsPrediction{
			{Tags: []string{"O", "B-x"}}, {Tags: []string{"B-x"}}, {Tags: []string{"O"}}, {Tags: []string{"O"}},
		}),
	}
	losses := make([]Loss, 3)
	score := groupOf(outputs.Label, outputs.Number, outputs.Tags).judge(examples, predicted, losses)
	for h, want := range []int{3, 3, 4} {
		if got := score.Tasks[h].Heads[0].Examples; got != want {
			t.Errorf("head %d is judged by %d examples, want %d", h+1, got, want)
		}
	}
	if got := score.AllRight; got == nil || *got != 2./3 {
		t.Errorf("of a label, a number and tags all are right of %v, want 2/3: the second text has a wrong tag", got)
	}
	for _, kinds := range [][]*outputs.Kind{
		{outputs.Number, outputs.Number, outputs.Number}, {outputs.Label, outputs.Number, outputs.Anomaly},
	} {
		if got := groupOf(kinds...).judge(examples, predicted, losses).AllRight; got != nil {
			t.Errorf("of %v all are right of %v, want none: there are no two that can be right", kinds, *got)
		}
	}
	extracted := groupOf(outputs.Label, outputs.Span)
	extracted.Tasks[1].Type = tasks.NewQuestionAnswering(tasks.Env{Heads: []string{"answer"}})
	gold := &outputs.SpanTarget{Answers: []corpus.TextSpan{{Text: "The cat."}}}
	examples = []*corpus.Example{{Targets: []corpus.Target{label("a"), gold}}}
	predicted = [][]corpus.Prediction{
		{&outputs.LabelPrediction{Label: "a"}}, {&outputs.SpanPrediction{Answer: corpus.TextSpan{Text: "cat"}}},
	}
	if got := extracted.judge(examples, predicted, losses).AllRight; got == nil || *got != 1 {
		t.Errorf("all are right of %v, want 1: what SQuAD's metric takes for a match is right", got)
	}
}

// docs/formulas.md: by their tokens, shortest first, in batches of twice the size and twice the tokens of training.
func TestEvaluationBatchesAreOfSimilarLength(t *testing.T) {
	for _, c := range []struct {
		size, tokens int
		want         [][]int
	}{
		{1, 0, [][]int{{1, 4}, {2, 3}, {5, 0}}},
		{4, 3, [][]int{{1, 4, 2}, {3}, {5}, {0}}}, // the last is longer than a batch
	} {
		got := evaluationBatches([]int32{9, 1, 3, 3, 2, 4}, c.size, c.tokens)
		if !slices.EqualFunc(got, c.want, slices.Equal[[]int]) {
			t.Errorf("batch_size %d, batch_tokens %d: %v, want %v", c.size, c.tokens, got, c.want)
		}
	}
}
