package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/experiments/config"
)

func (c *commands) checkCommand() *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Report all errors of an experiment file and its data, at once",
		Long: "Report all errors of an experiment file and its data, at once. All data is read and the model is " +
			"built; nothing is trained.",
		Example: "  jenga check\n  jenga check exp.yaml --set model.base_model=models/minilm-l6",
		Args:    between(0, 1),
		RunE:    func(cmd *cobra.Command, args []string) error { return c.check(fileOf(args), set) },
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "override `KEY=VALUE` of the file; may be repeated")
	return cmd
}

func (c *commands) check(file string, set []string) error {
	if err := c.unpack(file); err != nil {
		return err
	}
	e, err := config.Read(file, set)
	if err != nil {
		return err
	}
	ready, err := c.ready(e, config.Train, config.Dev, config.Test)
	if err != nil {
		return err
	}

	var text strings.Builder
	for g, group := range ready.Data.Groups {
		for _, task := range ready.Model.Groups[g].Tasks {
			for _, head := range task.Heads {
				fmt.Fprintf(&text, "%s: %s: %d labels; examples: %d train, %d dev, %d test\n",
					task.Name, head.Name, len(head.Labels.Names()),
					len(group.Examples[config.Train]), len(group.Examples[config.Dev]),
					len(group.Examples[config.Test]))
			}
		}
	}
	trainable := 0
	for _, w := range ready.Model.Params.All() {
		if !w.Frozen {
			trainable += len(w.Data)
		}
	}
	fmt.Fprintf(&text, "%d trainable parameters; no errors\n", trainable)
	_, err = io.WriteString(c.out, text.String())
	return err
}
