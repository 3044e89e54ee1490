package cli

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/experiments"
)

func (c *commands) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Say which jenga this is",
		Args:  between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(c.out, "jenga %s %s %s/%s\n", experiments.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
