package predict

// Answer is what the model says about one text, a line of `predict`, or why it says nothing.
type Prediction struct {
	Err  error  `json:"-"`
	Text string `json:"text"`
	Pair string `json:"pair,omitempty"`
	// Tasks has for each task, and for each of its heads, what the kind of its outputs writes of a prediction; without
	// those about pairs, of a single text.
	Tasks map[string]map[string]any `json:"tasks"`
}
