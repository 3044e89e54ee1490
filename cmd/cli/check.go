package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/experiments"
)

func (c *commands) checkCommand() *cobra.Command {
	var set []string
	cmd := &cobra.Command{
		Use:     "check [FILE]",
		Short:   "Say all that is wrong with an experiment file and its data, at once",
		Long:    "Say all that is wrong with an experiment file and its data, at once. All data is read and the model is built; nothing is trained.",
		Example: "  jenga check\n  jenga check exp.yaml --set model.base_model=models/minilm-l6",
		Args:    between(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := c.unpack(fileOf(args)); err != nil {
				return err
			}
			e, err := experiments.Read(fileOf(args), set)
			if err != nil {
				return err
			}
			run, err := experiments.Prepare(e, experiments.Train, experiments.Dev, experiments.Test)
			if err != nil {
				return err
			}
			c.say(run.Remarks)
			var text strings.Builder
			for g, texts := range run.Texts {
				for _, task := range run.Model.Groups[g].Tasks {
					for _, head := range task.Heads {
						fmt.Fprintf(&text, "%s: %s: %d labels; examples: %d train, %d dev, %d test\n", task.Name, head.Name, len(head.Labels.Names()),
							len(texts.Examples[experiments.Train]), len(texts.Examples[experiments.Dev]), len(texts.Examples[experiments.Test]))
					}
				}
			}
			learned := 0
			for _, w := range run.Model.Params.All() {
				if !w.Frozen {
					learned += len(w.Data)
				}
			}
			fmt.Fprintf(&text, "%d parameters learn; nothing is wrong\n", learned)
			_, err = io.WriteString(c.out, text.String())
			return err
		},
	}
	cmd.Flags().StringArrayVar(&set, "set", nil, "override `KEY=VALUE` of the file; may be repeated")
	return cmd
}
