package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
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
	for g := range ready.Data.Groups {
		writeHeads(&text, ready.Data, &ready.Data.Groups[g])
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

// writeHeads writes a line for each head of a group: its labels, and the examples of each split.
func writeHeads(w io.Writer, data *dataset.Dataset, group *dataset.Group) {
	for h, of := range data.Heads(group) {
		output := data.Tasks[of.Number].Output()
		labels := output.String()
		if output.HasLabels {
			name := multitask.HeadName{Task: of.Task.Name, Head: of.Head.Name}
			labels = plugin.Count(len(data.Labels[name].Names()), "label")
		}
		var counts []string
		for _, split := range []string{config.Train, config.Dev, config.Test} {
			count := fmt.Sprintf("%d %s", len(group.Examples[split]), split)
			if n := labelled(group.Examples[split], h); n < len(group.Examples[split]) {
				count += fmt.Sprintf(" (%d labelled)", n)
			}
			counts = append(counts, count)
		}
		fmt.Fprintf(w, "task %s, head %s: %s; examples: %s\n", of.Task.Name, of.Head.Name, labels,
			strings.Join(counts, ", "))
	}
}

// labelled returns how many examples have a target for head number h of their group.
func labelled(examples []*corpus.Example, h int) int {
	n := 0
	for _, e := range examples {
		if e.Targets[h] != nil {
			n++
		}
	}
	return n
}
