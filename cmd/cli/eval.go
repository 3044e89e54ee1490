package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/predict"
	"github.com/jenga-nlp/jenga/experiments/report"
)

func (c *commands) evalCommand() *cobra.Command {
	var split, task string
	var data []string
	var asJSON, labels bool
	cmd := &cobra.Command{
		Use:   "eval RUN",
		Short: "Judge a trained run on its dev, test or train data",
		Example: `  jenga eval runs/snips --split test
  jenga eval runs/snips --labels
  jenga eval runs/snips --task intent --data intent=more.jsonl --json`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if split != config.Train && split != config.Dev && split != config.Test {
				return usageError{fmt.Errorf("--split %s: there is train, dev, test", split)}
			}
			files, err := dataFlags(data)
			if err != nil {
				return err
			}
			run, err := predict.Open(args[0])
			if err != nil {
				return err
			}
			for name := range files {
				if _, _, err := run.Model.Group(name); err != nil {
					return fmt.Errorf("--data: %w", err)
				}
			}
			if task != "" {
				if _, _, err := run.Model.Group(task); err != nil {
					return fmt.Errorf("--task: %w", err)
				}
			}
			if err := run.Read(split, task, files); err != nil {
				return err
			}
			c.say(run.Remarks)

			all := 0
			for _, texts := range run.Data.Groups {
				all += len(texts.Examples[split])
			}
			done, clear := func(int) {}, func() {}
			if !asJSON && onTerminal(c.log) {
				bar := newBar(c.log, all)
				done, clear = func(n int) { bar.Add(n) }, func() { bar.Clear() }
			}
			scores, err := run.Evaluate(cmd.Context(), split, done)
			clear()
			if err != nil {
				return err
			}
			scores = report.Only(scores, task)
			if asJSON {
				return writeLine(c.out, report.Scores(split, scores))
			}
			if err := writeScores(c.out, scores); err != nil || !labels {
				return err
			}
			return writeLabels(c.out, scores)
		},
	}
	cmd.Flags().StringVar(&split, "split", config.Dev, "which data: dev, test or train")
	cmd.Flags().StringVar(&task, "task", "", "judge this task alone")
	cmd.Flags().StringArrayVar(&data, "data", nil, "read `TASK=FILE` in place of the task's own data; may be repeated")
	cmd.Flags().BoolVar(&labels, "labels", false, "a table of each head's labels, and what they are taken for")
	cmd.Flags().BoolVar(&asJSON, "json", false, "one JSON line on stdout")
	return cmd
}

// dataFlags reads TASK=FILE pairs.
func dataFlags(pairs []string) (map[string]string, error) {
	files := map[string]string{}
	for _, pair := range pairs {
		task, file, ok := strings.Cut(pair, "=")
		if !ok || task == "" || file == "" {
			return nil, usageError{fmt.Errorf("--data %s: want TASK=FILE", pair)}
		}
		if before, twice := files[task]; twice {
			return nil, usageError{fmt.Errorf("--data names two files for task %s, %s and %s", task, before, file)}
		}
		files[task] = file
	}
	return files, nil
}
