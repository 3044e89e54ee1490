package predict

// Prediction is the output of the model for one example, a line of `predict`, or an error.
type Prediction struct {
	Err  error  `json:"-"`
	Text string `json:"text"`
	Pair string `json:"pair,omitempty"`
	// Tasks has the JSON of the output kind by task and head. For a single text, tasks that need a pair are missing.
	Tasks map[string]map[string]any `json:"tasks"`
}
