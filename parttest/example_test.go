package parttest_test

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

// rated is a classification with one more metric: how often an urgent text is found.
type rated struct{ tasks.Task }

// Describe returns the description of the classification, which has its tables.
func (r rated) Describe() tasks.Description { return tasks.DescriptionOf(r.Task) }

func (r rated) Evaluate(gold []corpus.Target, predicted []corpus.Prediction) []tasks.Metric {
	urgent, found := 0, 0
	answers := outputs.AllAs[outputs.LabelPrediction](predicted)
	for i, target := range outputs.AllAs[outputs.LabelTarget](gold) {
		if target.Label == "urgent" {
			urgent++
			if answers[i].Label == "urgent" {
				found++
			}
		}
	}
	return append(r.Task.Evaluate(gold, predicted),
		tasks.Metric{Name: "urgent_recall", Value: float64(found) / float64(max(1, urgent))})
}

func init() {
	tasks.Register("rated", struct{}{}, func(_ struct{}, env tasks.Env) (tasks.Task, error) {
		return rated{tasks.NewClassification(env)}, nil
	})
}

// A metric of one's own: a task that embeds another one.
func Example_metric() {
	task := rated{tasks.NewClassification(tasks.Env{Name: "mail", Heads: []string{"mail"}})}
	gold := []corpus.Target{&outputs.LabelTarget{Label: "urgent"}, &outputs.LabelTarget{Label: "urgent"},
		&outputs.LabelTarget{Label: "normal"}}
	predicted := []corpus.Prediction{&outputs.LabelPrediction{Label: "urgent"},
		&outputs.LabelPrediction{Label: "normal"}, &outputs.LabelPrediction{Label: "normal"}}
	metrics := task.Evaluate(gold, predicted)
	last := metrics[len(metrics)-1]
	fmt.Println(last.Name, last.Value, tasks.DescriptionOf(task).Tables != nil)
	// Output: urgent_recall 0.5 true
}
