package shared

import "regexp"

// timed are the fields of metrics.jsonl that differ from run to run of the same training.
var timed = regexp.MustCompile(`"(tokens_per_second|seconds)":[0-9.e+-]+|"folder":"[^"]*"|,"exchange":\{[^}]*\}`)

// WithoutTimes returns the text of a metrics.jsonl without what differs from run to run of the same training.
func WithoutTimes(text string) string { return timed.ReplaceAllString(text, "") }
