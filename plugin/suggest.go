package plugin

import (
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/suggest"
)

// Unknown returns the error text for a name that is not among names: `no head "max_pol"; did you mean "max_pool"? there
// is crf, linear, max_pool`.
func Unknown(kind, name string, names []string) string {
	names = slices.Sorted(slices.Values(names))
	text := "no " + kind + " " + quoted(name) + "; "
	if near, ok := suggest.Nearest(name, names); ok {
		text += "did you mean " + quoted(near) + "? "
	}
	if len(names) == 0 {
		return text + "there is none"
	}
	return text + "there is " + strings.Join(names, ", ")
}
