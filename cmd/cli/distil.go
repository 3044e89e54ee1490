package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/spf13/cobra"
)

// studentFlags are those of the training of a run's student.
type studentFlags struct {
	run        string
	layers     int // 0: half of the run's
	unlabelled []string
}

func (c *commands) distilCommand() *cobra.Command {
	f, of := trainFlags{}, studentFlags{}
	cmd := &cobra.Command{
		Use:   "distil RUN",
		Short: "Train a smaller model that learns from a run",
		Args:  between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if of.layers < 1 && cmd.Flags().Changed("layers") {
				return usageErrorf("--layers: want a number from 1 on, have %d; without the flag it is half of the "+
					"run's", of.layers)
			}
			twice := func(set string) bool { return strings.HasPrefix(set, "training.unlabelled") }
			if len(of.unlabelled) > 0 && slices.ContainsFunc(f.set, twice) {
				return usageErrorf("--unlabelled and --set training.unlabelled both name texts without labels; want " +
					"one of them: --set 'training.unlabelled={path: [FILE, FILE], text: COLUMN}' names all")
			}
			if err := f.device.check(); err != nil {
				return err
			}
			of.run, f.student = args[0], &of
			return c.train(cmd.Context(), f, "")
		},
	}
	flags := cmd.Flags()
	flags.IntVar(&of.layers, "layers", 0, "how many layers of the run's encoder the student begins with, evenly "+
		"spread (default half of them)")
	flags.StringArrayVar(&of.unlabelled, "unlabelled", nil,
		"`FILE` of texts without labels, or a pattern in quotation marks, which the run labels too; may be repeated")
	flags.StringArrayVar(&f.set, "set", nil, "override `KEY=VALUE` of the student's experiment, such as "+
		"training.num_epochs=1; may be repeated")
	f.device.flag(cmd, "", " (default: training.device of the run)")
	flags.StringVarP(&f.out, "out", "o", "", "run folder (default runs/NAME-distilled, by the run's project_name)")
	flags.BoolVar(&f.force, "force", false,
		"replace the run that the folder holds: it is kept until the new one has its first checkpoint")
	flags.BoolVar(&f.json, "json", false,
		"events as JSON lines on stdout, no bars; the last is done, interrupted or error")
	return cmd
}

// studentOf returns the experiment of a run's student, and reports what it is made of.
func (c *commands) studentOf(ctx context.Context, f trainFlags) (*config.Experiment, error) {
	var sets []string
	if of := f.student.unlabelled; len(of) > 0 {
		list, err := json.Marshal(of)
		if err != nil {
			return nil, err
		}
		sets = append(sets, "training.unlabelled="+string(list))
	}
	s, err := run.Distil(ctx, f.student.run, f.student.layers, f.out, append(sets, f.device.over(f.set)...))
	if err != nil {
		return nil, err
	}
	made := "all layers"
	if layers := s.Experiment.Model.Layers; layers != nil {
		made = fmt.Sprintf("%s, %v of %d", plugin.Count(len(layers), "layer"), layers, s.Of)
	}
	fmt.Fprintf(c.log, "training a student of %s: %s, in %s\n", f.student.run, made, run.Folder(s.Experiment, f.out))
	return s.Experiment, nil
}
