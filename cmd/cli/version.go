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
		Short: "Print the version and the commit of this binary",
		Args:  between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(c.out, versionLine())
			return err
		},
	}
}

// versionLine is what `jenga version` and `jenga --version` print.
func versionLine() string {
	info, _ := debug.ReadBuildInfo()
	return fmt.Sprintf("jenga %s%s %s %s/%s", run.Version, commitOf(info), runtime.Version(), runtime.GOOS,
		runtime.GOARCH)
}

// commitOf returns the commit that a binary was built from, with + if files had been changed; "" if it is unknown.
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
