package run

import (
	"runtime"
	"runtime/debug"
)

// Version is the version of jenga, as written in checkpoints.
const Version = "0.1.0"

// Build describes this binary: version, commit, Go's version and the platform. Binaries of the same description train
// to the same bytes where their kernels are the same, unless files were changed since the commit.
func Build() string {
	info, _ := debug.ReadBuildInfo()
	return Version + commitOf(info) + " " + runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH
}

// commitOf returns the commit that a binary was built from, with + if files had been changed, or the version of the
// module that it was installed as; "" if neither is known.
func commitOf(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = " " + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = "+"
		}
	}
	if version := info.Main.Version; commit == "" && version != "" && version != "(devel)" {
		return " " + version
	}
	return commit + changed
}
