package cli

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/kernel"
)

// The bytes of a training depend on the kernels, so that a report of a difference needs their name.
func TestTheVersionNamesTheKernelsInUse(t *testing.T) {
	status, out, log := call("", "version")
	if want := ", " + kernel.Name() + " kernels\n"; status != 0 || !strings.HasSuffix(out, want) {
		t.Errorf("version: %d, %s%s, want %q at its end", status, out, log, want)
	}
}
