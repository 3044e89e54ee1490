package cli

import (
	"fmt"

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
func versionLine() string { return fmt.Sprintf("jenga %s, %s kernels", run.Build(), kernel.Name()) }
