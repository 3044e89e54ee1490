package cli

import (
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/plugin"
)

// shells writes the completion script of each shell.
var shells = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	"zsh":        (*cobra.Command).GenZshCompletion,
}

func (c *commands) completionCommand() *cobra.Command {
	names := slices.Sorted(maps.Keys(shells))
	return &cobra.Command{
		Use:   "completion SHELL",
		Short: "Print a script that completes commands and flags in bash, fish, powershell or zsh",
		Long: `Print a script with which a shell completes jenga's commands, flags and files when Tab is pressed.
SHELL is bash, fish, powershell or zsh. bash needs its package bash-completion.`,
		Example: `  source <(jenga completion bash)                  # in this shell; in ~/.bashrc: in all later ones
  jenga completion zsh > "${fpath[1]}/_jenga"      # zsh, after autoload -U compinit; compinit in ~/.zshrc
  jenga completion fish > ~/.config/fish/completions/jenga.fish
  jenga completion powershell | Out-String | Invoke-Expression`,
		Args:                  between(1, 1),
		ValidArgs:             names,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			script := shells[args[0]]
			if script == nil {
				return usageErrorf("%s", plugin.Unknown("shell", args[0], names))
			}
			return script(cmd.Root(), c.out)
		},
	}
}
