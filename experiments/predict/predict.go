package predict

import (
	"bytes"
	"encoding/json"
)

// Prediction is the output of the model for one example, or an error. Its JSON is a line of `jenga predict`.
type Prediction struct {
	Err  error // no prediction was made; Tasks may be incomplete
	Text string
	Pair string
	// Truncated is the number of tokens that were not read because the text is too long, for the task that lost most.
	Truncated int
	// Tasks has the JSON of the output kind by task and head. For a single text, tasks that need a pair are missing.
	Tasks map[string]map[string]any

	split bool // the text came without words
}

// MarshalJSON returns an object with text, pair, truncated and tasks, or with error alone.
func (p Prediction) MarshalJSON() ([]byte, error) {
	var line any = struct {
		Text      string                    `json:"text"`
		Pair      string                    `json:"pair,omitempty"`
		Truncated int                       `json:"truncated"`
		Tasks     map[string]map[string]any `json:"tasks"`
	}{p.Text, p.Pair, p.Truncated, p.Tasks}
	if p.Err != nil {
		line = struct {
			Error string `json:"error"`
		}{p.Err.Error()}
	}

	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false) // the caller's encoder escapes <, > and & if it is set to
	err := e.Encode(line)
	return text.Bytes(), err
}
