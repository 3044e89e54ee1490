// Package cli implements jenga's commands. It is public, so that other modules can build a jenga with parts of their
// own: copy cmd/jenga/main.go and import them.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/docs"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/internal/mpi"
	"github.com/jenga-nlp/jenga/internal/printable"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

// Exit statuses.
const (
	exitMistake     = 1   // a user's mistake: the message has its place and what would work
	exitUsage       = 2   // wrong flags or arguments
	exitInterrupted = 130 // by a signal
)

// Main runs the command line and exits.
func Main() {
	mpi.Exit(Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// Run runs one command and returns its exit status. Results go to out, all else to log.
func Run(args []string, in io.Reader, out, log io.Writer) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // after the first signal the default handling is back: a second one ends the process

	// labels, columns and names of files are data, which may have escape sequences; raw is for what programs read
	out, log = printable.Writer{Raw: out}, printable.Writer{Raw: log}
	c := &commands{in: in, out: out, log: log}
	root := c.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(log)
	return writeError(log, withFlags(root.ExecuteContext(ctx)))
}

func writeError(log io.Writer, err error) int {
	var usage usageError
	var stopped interruption
	var written silent
	switch {
	case err == nil:
		return 0
	case errors.As(err, &written):
		return written.status
	case errors.As(err, &stopped):
		fmt.Fprintln(log, stopped)
		return exitInterrupted
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(log, "interrupted")
		return exitInterrupted
	case errors.Is(err, errReported):
		return exitMistake
	case errors.As(err, &usage):
		fmt.Fprintf(log, "%v\n", err)
		return exitUsage
	}
	fmt.Fprintln(log, err)
	return exitMistake
}

// errReported is returned where the output already holds the errors, as lines of their own.
var errReported = errors.New("some lines have errors")

// commands makes the subcommands of one call, and holds its input and outputs.
type commands struct {
	in       io.Reader
	out, log io.Writer
	threads  int    // the flag --threads; 0: it is not given
	ranks    *ranks // that train together; nil: this process is the only one
}

func (c *commands) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "jenga",
		Short: "Train one shared encoder on many language tasks at once",
		Long: `jenga trains one shared transformer encoder on many language tasks at once. An experiment file
describes the training; one model predicts for all tasks in one pass.

Without a command it trains ./experiment.yaml if that exists. To try it, run

  jenga train experiments/quickstart.yaml

which needs no file and no download: the quickstart ships with jenga.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return unknownCommand(cmd, args[0])
		},
		SilenceErrors: true,
		SilenceUsage:  true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if _, err := os.Stat(defaultFile); err != nil {
				return cmd.Help()
			}
			return c.train(cmd.Context(), trainFlags{}, defaultFile)
		},
	}
	root.Version = checkpoint.Version
	cobra.AddTemplateFunc("versionLine", versionLine) // which looks for devices, where it is called
	root.SetVersionTemplate("{{versionLine}}\n")
	root.Flags().Bool("version", false, "print the version and the commit of this binary")
	root.SetHelpCommand(helpCommand())
	root.PersistentFlags().Int("threads", 0, "how many processor cores to use, each process of several (default: all, "+
		"divided among processes that share them; no result depends on it)")
	root.PersistentPreRunE = func(cmd *cobra.Command, _ []string) error {
		n, err := cmd.Flags().GetInt("threads")
		if err != nil || n < 1 && cmd.Flags().Changed("threads") {
			return usageErrorf("--threads %d: want a number from 1 on; without the flag all cores are used", n)
		}
		if err := checkSets(cmd); err != nil {
			return err
		}
		c.threads = n
		kernel.SetThreads(n)
		return kernel.Check()
	}
	root.SetFlagErrorFunc(flagError)
	root.AddCommand(c.initCommand(), c.trainCommand(), c.checkCommand(), c.lrFindCommand(), c.distilCommand(),
		c.mergeCommand(), c.quantizeCommand(), c.tasksCommand(), c.evalCommand(), c.errorsCommand(),
		c.calibrateCommand(), c.predictCommand(), c.explainCommand(), c.embedCommand(), c.serveCommand(),
		c.tokenizeCommand(), c.partsCommand(), c.schemaCommand(), c.benchCommand(), c.pullCommand(),
		c.versionCommand(), c.completionCommand())
	for _, cmd := range root.Commands() {
		text, examples := docs.Command(cmd.Name())
		if cmd.Long = text; examples != "" {
			cmd.Example = "  " + strings.ReplaceAll(examples, "\n", "\n  ")
		}
	}
	return root
}

func writeLine(w io.Writer, v any) error {
	line, err := predict.JSONOf(v)
	if err != nil {
		return err
	}
	return line.Write(w)
}

func (c *commands) warn(warnings []plugin.Warning) {
	for _, warning := range warnings {
		fmt.Fprintln(c.log, warningWithFlags(warning.String()))
	}
}

// warning returns a warning that is of no place in a file.
func warning(format string, args ...any) plugin.Warning {
	return plugin.Warn(plugin.Place{}, format, args...)
}
