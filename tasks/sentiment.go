package tasks

func init() {
	Register("sentiment", struct{}{}, func(_ struct{}, env Env) (Task, error) { return NewSentiment(env), nil })
}

// NewSentiment makes a task whose heads choose the sentiment of a text. It is a classification under the name that
// experiment files of Jenga-NLP give it.
func NewSentiment(env Env) Task { return NewClassification(env) }
