package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/internal/kernel"
)

func (c *commands) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the commit of this binary, and the kernels in use",
		Long: `Print the version and the commit of this binary, and the kernels in use: the assembly loops for this
processor's instructions, or those that JENGA_KERNEL names. Two trainings of the same file and seed give the same bytes
where the kernels are the same.`,
		Args: between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(c.out, versionLine())
			return err
		},
	}
}

// versionLine is what `jenga version` and `jenga --version` print.
func versionLine() string {
	info, _ := debug.ReadBuildInfo()
	return fmt.Sprintf("jenga %s%s %s %s/%s, %s kernels", run.Version, commitOf(info), runtime.Version(),
		runtime.GOOS, runtime.GOARCH, kernel.Name())
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
