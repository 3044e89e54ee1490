package tasks

import (
	"fmt"
	"slices"
	"strings"

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
	return exampleOf(r, c.heads, nil, func(_ corpus.Example, head string) (corpus.Target, error) {
		label, err := oneLabel(r, fieldOf(r, head, outputs.Label, labelFields))
		if err != nil || label == "" {
			return nil, err
		}
		return &outputs.LabelTarget{Label: label}, nil
	})
}

// oneLabel returns the label in a field, "" for none. It may be the only one of a list, as annotation tools write it,
// also in a cell of a table, as pandas writes it: ['a'].
func oneLabel(r corpus.Record, field string) (string, error) {
	switch value := r.Fields[field].(type) {
	case []any, []string:
	default:
		if text, ok := value.(string); ok && strings.ContainsAny(text, `'"`) {
			if list, _ := corpus.ParseCell(text); isList(list) {
				break
			}
		}
		label, _, err := r.String(field)
		return label, err
	}
	list, _, err := r.Strings(field)
	list = slices.DeleteFunc(list, func(label string) bool { return label == "" })
	switch {
	case err != nil || len(list) == 0:
		return "", err
	case len(list) > 1:
		return "", fmt.Errorf("%s: field %q is a list of %d labels; want one, or type: multi_label, which predicts "+
			"any number of them", r.Place, field, len(list))
	}
	return list[0], nil
}

func isList(value any) bool { _, is := value.([]any); return is }

func (c classification) Evaluate(gold []corpus.Target, predicted []corpus.Prediction) []Metric {
	return judgeLabels(labelsOf(gold, predicted))
}

func (c classification) Output() *outputs.Kind { return outputs.Label }

// labelFields are the fields of a label beside that of its kind.
var labelFields = []string{"quality_level"}

func (c classification) Describe() Description {
	return Description{SameFields: labelFields, Tables: c.tables}
}

func (c classification) tables(gold []corpus.Target, predicted []corpus.Prediction) Tables {
	return tabulate(labelsOf(gold, predicted))
}

func init() {
	Register("sentiment", struct{}{}, func(_ struct{}, env Env) (Task, error) { return NewSentiment(env), nil })
}

// NewSentiment makes a task whose heads predict the sentiment of a text. It is classification under the name that it
// has in experiment files of Jenga-NLP.
func NewSentiment(env Env) Task { return NewClassification(env) }

func init() { Register("qa_qc", MultiLabelOptions{Separator: ","}, NewQAQC) }

// qaqc answers yes-no questions of quality control about a text. There are several lists of questions, one for each
// head by its name. A record has the answers in the field labels, or label, as lists of 0 and 1 in the order of the
// questions, which are numbered from 0:
//
//	{"text": "…", "labels": {"opening": [1], "listening": [1, 0, 1], "closing": [0]}}
//
// or the same as a JSON text, or the list alone if there is one head; a head whose list is missing is not labelled. All
// lists of a head have the same length. It is multi_label, with the same metrics, under the name that it has in
// experiment files of Jenga-NLP.
type qaqc struct{ multiLabel }

// NewQAQC makes a task whose heads each answer a list of yes-no questions.
func NewQAQC(o MultiLabelOptions, env Env) (Task, error) {
	task, err := NewMultiLabel(o, env)
	if err != nil {
		return nil, err
	}
	answers := task.(multiLabel)
	answers.questions = true
	return qaqc{answers}, nil
}
