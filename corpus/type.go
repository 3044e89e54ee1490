package corpus

import (
	"path/filepath"
	"strings"
)

// TypeOf returns the Type of a file with the extension of path, before a .gz if there is one; "" if it has none that
// names a type.
func TypeOf(path string) string {
	return extensions[strings.ToLower(filepath.Ext(strings.TrimSuffix(path, ".gz")))]
}

// IsSquad reports whether a JSON text begins like a file in SQuAD's form.
func IsSquad(text []byte) bool { return beginsSquad.Match(text[:min(len(text), 1<<10)]) }
