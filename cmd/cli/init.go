package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/encoders/transformer" // the encoder that an experiment file need not name
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/guess"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/plugin"
)

func (c *commands) initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init DATA…",
		Short: "Look at data files and write an experiment for them",
		Long: "Look at data files and write an experiment for them, with the reason for each part of it as a " +
			"comment. The base model is, " + guess.EncoderRule + "; without one an encoder is trained from scratch. " +
			"There are as many epochs as make some 300 steps, and at least 4 with a base model, 6 without; dev is " +
			"evaluated 20 times at most.",
		Args: between(1, math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.initialize(cmd.Context(), args, f)
		},
	}
	cmd.Flags().StringVarP(&f.out, "out", "o", defaultFile, "`FILE` to write; - prints it")
	cmd.Flags().BoolVar(&f.force, "force", false, "replace the file that is there")
	cmd.Flags().StringVar(&f.encoding, "encoding", "", "`ENCODING` of the files, as cp1252 (default: it is guessed)")
	cmd.Flags().StringVar(&f.delimiter, "delimiter", "", "`TEXT` between columns (default: it is guessed); \\t is "+
		"a tab")
	return cmd
}

type initFlags struct {
	out, encoding, delimiter string
	force                    bool
}

func (c *commands) initialize(ctx context.Context, data []string, f initFlags) error {
	out, force := f.out, f.force
	if out == "" {
		return usageErrorf("--out is empty; want a file, or - to print")
	}
	prints := out == "-"
	if info, err := os.Stat(out); !prints && err == nil && info.IsDir() {
		return usageErrorf("--out %s is a folder; want a file, as %s", out, filepath.Join(out, defaultFile))
	}
	if folder := filepath.Dir(out); !prints && !runfolder.Exists(folder) {
		return fmt.Errorf("--out %s: there is no folder %s; make it first, by mkdir", out, folder)
	}
	if !prints && !force {
		switch _, err := os.Lstat(out); {
		case err == nil:
			return errors.Join(guess.Check(data), fmt.Errorf("%s exists; --force replaces it, --out FILE writes "+
				"another file, --out - prints", out))
		case !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}

	e, err := guess.FilesAs(ctx, data, f.encoding, strings.ReplaceAll(f.delimiter, `\t`, "\t"))
	if err != nil {
		return namingFlags(err, "encoding", "delimiter")
	}
	c.warn(doubtsOf(e))
	folder := "."
	if !prints {
		folder = filepath.Dir(out)
	}
	text, err := e.YAML(folder, config.LocalModels(transformer.ModelTypes())) // the smallest first
	if err != nil {
		return err
	}
	if prints {
		_, err = raw(c.out).Write(text)
		return err
	}
	if _, err := os.Stat(filepath.Join(folder, schemaFile)); err == nil {
		text = append([]byte("# yaml-language-server: $schema="+schemaFile+"\n"), text...)
	}
	if err := runfolder.WriteFile(out, text); err != nil {
		return err
	}
	tasks := 0
	for _, s := range e.Sets {
		tasks += len(s.Tasks)
	}
	argument := ""
	if out != defaultFile {
		argument = " " + shellWord(out)
	}
	_, err = fmt.Fprintf(c.out, "wrote %s with %s; read its comments, then: jenga check%[3]s, jenga train%[3]s\n", out,
		plugin.Count(tasks, "task"), argument)
	return err
}

// doubtsOf returns what was guessed and may be meant otherwise.
func doubtsOf(e *guess.Experiment) (doubts []plugin.Warning) {
	for _, s := range e.Sets {
		for _, doubt := range s.Doubts {
			doubts = append(doubts, warning("%s: %s", s.Train, doubt))
		}
		for _, t := range s.Tasks {
			if t.Doubt != "" {
				doubts = append(doubts, warning("%s: task %q: %s", s.Train, t.Name, t.Doubt))
			}
		}
	}
	return doubts
}

// shellWord returns a word of a shell's command line, in quotes where it has characters with a meaning of their own.
func shellWord(word string) string {
	if !strings.ContainsAny(word, " \t\n\"'`\\$&|;<>()*?[]{}!#~") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
