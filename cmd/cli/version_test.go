package cli

import (
	"runtime/debug"
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

func TestTheVersionNamesItsCommit(t *testing.T) {
	setting := func(key, value string) debug.BuildSetting { return debug.BuildSetting{Key: key, Value: value} }
	for _, test := range []struct {
		info *debug.BuildInfo
		want string
	}{
		{nil, ""},
		{&debug.BuildInfo{}, ""},
		{&debug.BuildInfo{Settings: []debug.BuildSetting{setting("vcs.revision", "0123456789abcdef"),
			setting("vcs.modified", "false")}}, " 0123456789ab"},
		{&debug.BuildInfo{Settings: []debug.BuildSetting{setting("vcs.revision", "0123456789abcdef"),
			setting("vcs.modified", "true")}}, " 0123456789ab+"},
	} {
		if got := commitOf(test.info); got != test.want {
			t.Errorf("commit %q of %+v, want %q", got, test.info, test.want)
		}
	}
}
