package tasks

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

func init() {
	Register("classification", struct{}{},
		func(_ struct{}, env Env) (Task, error) { return NewClassification(env), nil })
}

// classification assigns one label to a text, or to a pair of texts. Its metrics are accuracy; precision_macro,
// recall_macro and f1_macro, plain means over labels, and with the suffixes _micro and _weighted, as in scikit-learn's
// precision_recall_fscore_support; and mcc, Matthews' coefficient for any number of labels (Gorodkin 2004).
type classification struct{ heads []string }

// NewClassification makes a task whose heads each predict one of several labels. A record has its label in the field
// label, quality_level in files of Jenga-NLP, or label.HEAD for a head of its own.
func NewClassification(env Env) Task { return classification{env.Heads} }

func (c classification) Example(r corpus.Record) (corpus.Example, error) {
	e, err := r.Example()
	if err != nil {
		return corpus.Example{}, err
	}
	for _, head := range c.heads {
		label, _, err := r.String(fieldOf(r, head, "label", "quality_level"))
		if err != nil {
			return corpus.Example{}, err
		}
		var target corpus.Target
		if label != "" {
			target = &outputs.LabelTarget{Label: label}
		}
		e.Targets = append(e.Targets, target)
	}
	return e, nil
}

func (c classification) Evaluate(gold []corpus.Target, predicted []corpus.Prediction) []Metric {
	return judgeLabels(labelsOf(gold, predicted))
}

func (c classification) Output() *outputs.Kind { return outputs.Label }

// fieldOf returns the first field that r has: the head's own, then names in order; the first of names if it has none.
func fieldOf(r corpus.Record, head string, names ...string) string {
	if own := names[0] + "." + head; has(r, own) {
		return own
	}
	for _, name := range names {
		if has(r, name) {
			return name
		}
	}
	return names[0]
}

// has reports whether r has a field, even if null: a head whose own field is null is not labelled by the common one.
func has(r corpus.Record, field string) bool {
	_, ok := r.Fields[field]
	return ok
}
