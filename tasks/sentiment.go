package tasks

func init() {
	Register("sentiment", struct{}{}, func(_ struct{}, site Site) (Task, error) { return NewSentiment(site), nil })
}

// NewSentiment makes a task whose heads choose the sentiment of a text. It is a classification under the name that
// experiment files of Jenga-NLP give it.
func NewSentiment(site Site) Task { return NewClassification(site) }
