package checkpoint

import (
	"runtime/debug"
	"testing"
)

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
		{&debug.BuildInfo{Main: debug.Module{Version: "v0.1.2"}}, " v0.1.2"},
		{&debug.BuildInfo{Main: debug.Module{Version: "(devel)"}}, ""},
	} {
		if got := commitOf(test.info); got != test.want {
			t.Errorf("commit %q of %+v, want %q", got, test.info, test.want)
		}
	}
}
