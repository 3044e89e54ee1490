package corpus

// Record is one entry of a data file: named fields, and where it stands. A field is nil, string, json.Number, bool,
// []any or map[string]any.
type Record struct {
	Place  Place
	Fields map[string]any
}
