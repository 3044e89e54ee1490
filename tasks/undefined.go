package tasks

import (
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

// UndefinedReporter is a Task with metrics that some targets leave undefined, such as a correlation with equal numbers.
type UndefinedReporter interface {
	// Undefined returns the names of the metrics that have no meaning for gold, whatever is predicted; gold has no nil.
	Undefined(gold []corpus.Target) []string
}

var (
	_ UndefinedReporter = regression{}
	_ UndefinedReporter = similarity{}
	_ UndefinedReporter = anomaly{}
	_ UndefinedReporter = questionAnswering{}
	_ UndefinedReporter = multiLabel{}
	_ UndefinedReporter = ner{}
	_ UndefinedReporter = tagging{}
)

// MarkUndefined marks the metrics of t that are undefined for gold.
func MarkUndefined(t Task, gold []corpus.Target, metrics []Metric) {
	reporter, ok := t.(UndefinedReporter)
	if !ok {
		return
	}
	names := reporter.Undefined(gold)
	for i, m := range metrics {
		metrics[i].Undefined = slices.Contains(names, m.Name)
	}
}

// namesOf returns the names of metrics, without those of except.
func namesOf(metrics []Metric, except ...string) []string {
	var names []string
	for _, m := range metrics {
		if !slices.Contains(except, m.Name) {
			names = append(names, m.Name)
		}
	}
	return names
}

// Undefined implements UndefinedReporter: equal numbers correlate with nothing. Equal predictions of different numbers
// are a fault of the model, and their correlation is 0.
func (t regression) Undefined(gold []corpus.Target) []string {
	var numbers []float64
	for _, g := range outputs.Targets[outputs.NumberTarget](gold) {
		numbers = append(numbers, g.Value)
	}
	if allEqual(numbers) {
		return []string{"pearson", "spearman"}
	}
	return nil
}

// Undefined implements UndefinedReporter.
func (a anomaly) Undefined(gold []corpus.Target) []string {
	anomalies, normal := countAnomalies(gold)
	switch {
	case anomalies == 0 && normal == 0:
		return namesOf(a.Evaluate(nil, nil))
	case anomalies == 0:
		return []string{"auroc", "average_precision", "recall"}
	case normal == 0:
		return []string{"auroc", "specificity"}
	}
	return nil
}

// Undefined implements UndefinedReporter.
func (q questionAnswering) Undefined(gold []corpus.Target) []string {
	answered := 0
	for _, g := range outputs.Targets[outputs.SpanTarget](gold) {
		if len(g.Answers) > 0 {
			answered++
		}
	}
	var names []string
	if answered == 0 {
		names = append(names, "f1_answered", "exact_match_answered")
	}
	if answered == len(gold) {
		names = append(names, "exact_match_unanswered")
	}
	return names
}

// Undefined implements UndefinedReporter: without a gold label, only the fraction of right texts has a meaning.
func (m multiLabel) Undefined(gold []corpus.Target) []string {
	for _, g := range outputs.Targets[outputs.LabelsTarget](gold) {
		if len(g.Labels) > 0 {
			return nil
		}
	}
	return namesOf(m.Evaluate(nil, nil), "exact_match", "accuracy")
}

// Undefined implements UndefinedReporter: without a gold span, only the accuracy of tags has a meaning.
func (n ner) Undefined(gold []corpus.Target) []string {
	words := false
	for _, g := range outputs.Targets[outputs.TagsTarget](gold) {
		if len(spansOf(g.Tags)) > 0 {
			return nil
		}
		words = words || hasTag(g.Tags)
	}
	if words {
		return namesOf(n.Evaluate(nil, nil), "accuracy")
	}
	return namesOf(n.Evaluate(nil, nil))
}

// Undefined implements UndefinedReporter: all metrics are of words with a gold tag.
func (t tagging) Undefined(gold []corpus.Target) []string {
	for _, g := range outputs.Targets[outputs.TagsTarget](gold) {
		if hasTag(g.Tags) {
			return nil
		}
	}
	return namesOf(t.Evaluate(nil, nil))
}

// hasTag reports whether a word has a tag.
func hasTag(tags []string) bool {
	return slices.ContainsFunc(tags, func(tag string) bool { return tag != "" })
}
