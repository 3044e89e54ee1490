package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/experiments/run"
)

func (c *commands) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which jenga this is",
		Args:  between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			info, _ := debug.ReadBuildInfo()
			_, err := fmt.Fprintf(c.out, "jenga %s%s %s %s/%s\n", run.Version, commitOf(info), runtime.Version(),
				runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// commitOf is the commit that a binary was built from, with + where files had been changed; "" where the build does not
// say.
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
	return commit + changed
}
