package tasks

func init() { Register("qa_qc", ManyOptions{Separator: ","}, NewQAQC) }

// qaqc asks questions of quality control about a text, each answered yes or no, several lists of them: each head
// answers the list of its name. A record has the answers in the field labels, or label, as lists of 0 and 1 in the
// order of the questions, which are numbered from 0:
//
//	{"text": "…", "labels": {"opening": [1], "listening": [1, 0, 1], "closing": [0]}}
//
// or the same as a text, or of one head the list alone; a head whose list is missing is not labelled. All lists of a
// head are of one length. It is a multi_label, whose metrics it has, under the name that experiment files of Jenga-NLP
// give it.
type qaqc struct{ multiLabel }

// NewQAQC makes a task whose heads each answer a list of questions with yes or no.
func NewQAQC(o ManyOptions, env Env) (Task, error) {
	task, err := NewMultiLabel(o, env)
	if err != nil {
		return nil, err
	}
	answers := task.(multiLabel)
	answers.questions = true
	return qaqc{answers}, nil
}
