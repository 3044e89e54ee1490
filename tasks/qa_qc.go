package tasks

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
