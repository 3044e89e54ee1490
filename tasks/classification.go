package tasks

import (
	"slices"

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
		label, _, err := r.String(fieldOf(r, head, c))
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

// OtherFields implements FieldLister.
func (c classification) OtherFields() (same, different []string) {
	return []string{"quality_level"}, nil
}

// fieldOf returns the first field with a target that r has: the head's own, then that of the task's kind, then the
// others of a FieldLister; that of the kind if it has none.
func fieldOf(r corpus.Record, head string, t Task) string {
	kind := t.Output()
	names := []string{kind.HeadField(head), kind.Field()}
	if lister, ok := t.(FieldLister); ok {
		same, different := lister.OtherFields()
		names = slices.Concat(names, same, different)
	}
	for _, name := range names {
		if has(r, name) {
			return name
		}
	}
	return kind.Field()
}

// has reports whether r has a field, even if null: a head whose own field is null is not labelled by the common one.
func has(r corpus.Record, field string) bool {
	_, ok := r.Fields[field]
	return ok
}
