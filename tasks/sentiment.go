package tasks

func init() {
	Register("sentiment", struct{}{}, func(_ struct{}, env Env) (Task, error) { return NewSentiment(env), nil })
}

// NewSentiment makes a task whose heads predict the sentiment of a text. It is classification under the name that it
// has in experiment files of Jenga-NLP.
func NewSentiment(env Env) Task { return NewClassification(env) }
