package config

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/sample"
)

// Names become folders: those that a file system takes for a device or for each other are refused, with the reason.
func TestNamesThatFileSystemsConfuse(t *testing.T) {
	for _, test := range []struct {
		first, second string
		want          string // in the error; "": none
	}{
		{"con", "b", `"con" is the name of a device on Windows`}, {"a", "NUL", `"NUL" is the name of a device`},
		{"Com1", "b", `"Com1" is the name of a device`}, {"COM¹", "b", `"COM¹" is the name of`},
		{"a", "lpt9", `"lpt9" is the name of a device`},
		{"caf\u00e9", "cafe\u0301", "names must differ in more than case and the encoding of accents"},
		{"Stra\u00dfe", "STRASSE", "more than case"}, {"\ufb01le", "File", "more than case"},
		{"Strase", "STRASSE", ""}, {"\u00c5", "a\u030a", "encoding of accents"},
		{"Team", "tEAM", "more than case"},
		{"trailing.", "b", "a name has 1 to 64 letters"}, {"trailing ", "b", "a name has 1 to 64 letters"},
		{"console", "nulls", ""}, {"com", "com10", ""},
	} {
		sample.Tasks(t, `  - {name: "`+test.first+`", type: classification, data: {train: a.jsonl}}
  - {name: "`+test.second+`", type: classification, data: {train: b.jsonl}}
`, map[string]string{"a.jsonl": `{"text": "a", "label": "x"}`, "b.jsonl": `{"text": "b", "label": "y"}`})
		_, err := Read(t.Context(), "exp.yaml", nil)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if (test.want == "") != (err == nil) || !strings.Contains(text, test.want) {
			t.Errorf("%q beside %q: %v, want %q", test.first, test.second, err, test.want)
		}
	}
}
