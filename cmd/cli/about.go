package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/docs"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/tasks"
)

func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Help about a command",
		RunE: func(cmd *cobra.Command, args []string) error {
			of, rest, err := cmd.Root().Find(args)
			switch {
			case err != nil:
				return usageError{err}
			case len(rest) > 0:
				return unknownCommand(of, rest[0])
			}
			of.InitDefaultHelpFlag()
			return of.Help()
		},
	}
}

// commandsOfOthers are names that other programs have for commands of jenga.
var commandsOfOthers = map[string]string{
	"evaluate": "eval", "test": "eval", "fit": "train", "finetune": "train", "resume": "train", "validate": "check",
	"infer": "predict", "classify": "predict", "download": "pull", "run": "train", "distill": "distil", "new": "init",
	"mistakes": "errors", "encode": "embed", "start": "serve",
}

// unknownCommand is the error of a name that no command has.
func unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if known := commandsOfOthers[name]; known != "" {
		return usageError{errors.New(plugin.UnknownLike("command", name, known, names))}
	}
	if info, err := os.Stat(name); err == nil && info.Mode().IsRegular() {
		command := "init"
		if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
			command = "train"
		}
		return usageErrorf("no command %q, which is a file; want jenga %s %[1]s", name, command)
	}
	return usageError{errors.New(plugin.Unknown("command", name, names))}
}

func (c *commands) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version and the commit of this binary, the kernels in use and the devices",
		Args:  between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintln(c.out, versionLine())
			return err
		},
	}
}

func versionLine() string {
	line := fmt.Sprintf("jenga %s, %s kernels", checkpoint.Build(), kernel.Name())
	if encoders.CUDA == nil {
		return line
	}
	names, err := encoders.CUDA()
	switch {
	case err != nil:
		return line + ", no CUDA device: " + err.Error()
	case len(names) == 0:
		return line + ", no CUDA device"
	}
	for n, name := range names {
		line += fmt.Sprintf(", cuda:%d %s", n, name)
	}
	return line
}

var shells = map[string]func(root *cobra.Command, w io.Writer) error{
	"bash":       func(root *cobra.Command, w io.Writer) error { return root.GenBashCompletionV2(w, true) },
	"fish":       func(root *cobra.Command, w io.Writer) error { return root.GenFishCompletion(w, true) },
	"powershell": (*cobra.Command).GenPowerShellCompletionWithDesc,
	"zsh":        (*cobra.Command).GenZshCompletion,
}

func (c *commands) completionCommand() *cobra.Command {
	names := slices.Sorted(maps.Keys(shells))
	return &cobra.Command{
		Use:                   "completion SHELL",
		Short:                 "Print a script that completes commands and flags in bash, fish, powershell or zsh",
		Args:                  between(1, 1),
		ValidArgs:             names,
		DisableFlagsInUseLine: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			script := shells[args[0]]
			if script == nil {
				return usageErrorf("%s", plugin.Unknown("shell", args[0], names))
			}
			return script(cmd.Root(), raw(c.out))
		},
	}
}

// kind is a registry of parts of one kind, or the sections of an experiment file.
type kind interface {
	Kind() string
	Names() []string
	Fields(name string) []plugin.Field
}

// kinds lists all registries in the order in which a batch meets them, and the sections of an experiment file.
func kinds() []kind {
	return []kind{tasks.Registry(), encoders.Registry(), fusion.Registry(), heads.Registry(), samplers.Registry(),
		weightings.Registry(), updates.Optimizers(), updates.Schedules(), config.Sections{}}
}

func (c *commands) partsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "parts [KIND [TYPE]]",
		Short: "List the parts that an experiment file can name, with option, default and valid values",
		Args:  between(0, 2),
		RunE: func(_ *cobra.Command, args []string) error {
			shown := kinds()
			if len(args) > 0 {
				k, err := kindOf(args[0])
				if err != nil {
					return err
				}
				shown = []kind{k}
			}
			var text strings.Builder
			for _, k := range shown {
				names := k.Names()
				if len(args) > 1 {
					if !slices.Contains(names, args[1]) {
						return usageError{errors.New(plugin.Unknown(k.Kind(), args[1], names))}
					}
					names = args[1:]
				}
				for _, name := range names {
					if text.Len() > 0 {
						text.WriteString("\n")
					}
					writePart(&text, k, name, len(args) < 2)
				}
			}
			_, err := io.WriteString(c.out, text.String())
			return err
		},
	}
}

// kindsByOtherNames has kinds of parts by the names of what they choose, where the experiment file has another key.
var kindsByOtherNames = map[string]string{"sampler": "sampling", "schedule": "lr_scheduler"}

func kindOf(name string) (kind, error) {
	var names []string
	if own := kindsByOtherNames[strings.TrimSuffix(name, "s")]; own != "" {
		name = own
	}
	for _, k := range kinds() {
		if k.Kind() == name || k.Kind()+"s" == name {
			return k, nil
		}
		names = append(names, k.Kind())
	}
	return nil, usageError{errors.New(plugin.Unknown("kind of part", name, names))}
}

// writePart writes a part, its description, in a list of parts the start alone, and a line for each of its options.
func writePart(w io.Writer, k kind, name string, inList bool) {
	fmt.Fprintf(w, "%s %s\n", k.Kind(), name)
	text := docs.Part(k.Kind(), name)
	if inList {
		writeText(w, start(text))
	} else if text != "" {
		writeText(w, text+"\n")
	}

	var rows [][]string
	for _, f := range k.Fields(name) {
		rows = append(rows, []string{"  " + f.Key, cmp.Or(f.Default, "-"), f.Type,
			cmp.Or(strings.TrimSpace(f.Doc), docs.Option(k.Kind(), name, f.Key))})
	}
	if len(rows) > 0 {
		fmt.Fprint(w, aligned(rows))
	}
}

// writeText writes Markdown with its lines indented, its code further.
func writeText(w io.Writer, text string) {
	if text == "" {
		return
	}
	indent := "  "
	for line := range strings.SplitSeq(text, "\n") {
		switch {
		case line == "```" && indent == "  ":
			indent = "      "
		case line == "```":
			indent = "  "
		default:
			fmt.Fprintln(w, strings.TrimRight(indent+line, " "))
		}
	}
}

// startEnd is a colon, a full stop before a capital, which "et al. 2019" is not, or an empty line.
var startEnd = regexp.MustCompile(`:\s|\.\s+\p{Lu}|\n\n`)

// start returns the first sentence of a text, up to a colon.
func start(text string) string {
	if at := startEnd.FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	return strings.TrimSuffix(text, ".")
}
