package plugin

import (
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/suggest"
)

// Unknown returns the error text for a name that is not among names: `no head "max_pol"; did you mean "max_pool"?
// available: crf, linear, max_pool`.
func Unknown(kind, name string, names []string) string {
	names = slices.Sorted(slices.Values(names))
	near, _ := suggest.Nearest(name, names)
	return UnknownLike(kind, name, near, names)
}

// UnknownLike is Unknown with the name to suggest; "" suggests none.
func UnknownLike(kind, name, near string, names []string) string {
	names = slices.Sorted(slices.Values(names))
	text := "no " + kind + " " + quoted(name) + "; "
	if near != "" {
		text += "did you mean " + quoted(near) + "? "
	}
	if len(names) == 0 {
		return text + "available: none"
	}
	return text + "available: " + strings.Join(names, ", ")
}
