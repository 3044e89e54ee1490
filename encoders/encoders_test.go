package encoders

import (
	"os"
	"strings"
	"testing"
)

func TestTheErrorOfAnEncoderThatIsNotImportedHasItsImport(t *testing.T) {
	entries, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	packages := 0
	for _, e := range entries {
		if !e.IsDir() || e.Name() == "testdata" {
			continue
		}
		packages++
		_, err := Registry().FromString(e.Name(), "")
		want := `encoder "` + e.Name() + `" is not part of this program; add import _ ` +
			`"github.com/jenga-nlp/jenga/encoders/` + e.Name() + `" to it`
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error is %v, want %s", e.Name(), err, want)
		}
	}
	if packages < 2 {
		t.Errorf("%d packages of encoders", packages)
	}
}
