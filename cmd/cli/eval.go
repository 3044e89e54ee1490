package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/predict"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/multitask"
)

type evalFlags struct {
	split, task  string
	data         []string // TASK=FILE
	json, labels bool
	precision    precisionFlag
}

func (c *commands) evalCommand() *cobra.Command {
	var f evalFlags
	cmd := &cobra.Command{
		Use:   "eval RUN",
		Short: "Evaluate a trained run on its dev, test or train split",
		Long: `Evaluate a trained run on its dev, test or train split, or on files of your own (--data). A table has the
first metrics of each head in per cent, the main one first, and errors such as rmse in the unit of the numbers;
--json has all metrics, as fractions. The table's title, and "split" in JSON, is the split, or the file that was read
in its place: "intent: more.csv; others: dev" where that differs between tasks. JSON has "precision" if it is not
float32, and "unfinished", with the last "step" "of" how many, if the run's training did not come to its end.
eval_overall is of all tasks, also of those that a run has kept and not trained; a line has the figure without these,
which training has.

A frozen encoder must have the SHA-256 that it had in training; the other commands that open a run compare the faster
CRC-32C of all files alone.`,
		Example: `  jenga eval runs/snips --split test
  jenga eval runs/snips --labels
  jenga eval runs/snips --task intent --data intent=more.jsonl --json
  jenga eval runs/snips --task intent --data 'intent=parts/*.jsonl' --data intent=more.jsonl`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.eval(cmd.Context(), f, args[0]) },
	}
	cmd.Flags().StringVar(&f.split, "split", config.Dev, "split to evaluate: dev, test or train")
	cmd.Flags().StringVar(&f.task, "task", "", "evaluate this task alone")
	cmd.Flags().StringArrayVar(&f.data, "data", nil,
		"read `TASK=FILE` in place of the task's own data; "+manyFiles)
	f.precision.flag(cmd, "")
	cmd.Flags().BoolVar(&f.labels, "labels", false,
		"a table of each head's labels, with the labels most often predicted in their place")
	cmd.Flags().BoolVar(&f.json, "json", false, "one JSON line on stdout")
	return cmd
}

func (c *commands) eval(ctx context.Context, f evalFlags, folder string) error {
	if err := checkOneOf("split", f.split, config.Train, config.Dev, config.Test); err != nil {
		return err
	}
	files, err := dataFlags(f.data)
	if err != nil {
		return err
	}
	opened, err := f.precision.openRun(folder)
	if err != nil {
		return err
	}
	defer opened.Close()
	if err := opened.CheckEncoder(); err != nil {
		return err
	}
	if f.task != "" {
		if _, _, err := opened.Model.Group(f.task); err != nil {
			return fmt.Errorf("--task: %w", err)
		}
	}
	name, err := readData(opened, f.split, f.task, files)
	if err != nil {
		return err
	}
	c.warn(opened.Warnings)

	metrics, err := c.evaluate(ctx, opened, f, name)
	if err != nil {
		return err
	}
	metrics = report.Only(metrics, f.task)
	if f.json {
		line := report.EvalLineOf(name, metrics)
		line.Precision = lower(opened.Model.Precision)
		if state := opened.Unfinished; state != nil {
			line.Unfinished = &report.UnfinishedLine{Step: state.Step, Of: state.Of}
		}
		return writeLine(c.out, line)
	}
	if lower := lower(opened.Model.Precision); lower != "" {
		name += ", in " + lower
	}
	fmt.Fprintf(c.out, "%s:\n", name)
	if err := writeMetrics(c.out, metrics); err != nil {
		return err
	}
	if err := writeTrained(c.out, opened.Data.Experiment.Untrained(), metrics); err != nil || !f.labels {
		return err
	}
	return writeLabels(c.out, metrics)
}

// evaluate evaluates the examples that were read, with a progress bar on a terminal that says what they are.
func (c *commands) evaluate(ctx context.Context, opened *predict.Opened, f evalFlags, what string) (
	[]multitask.GroupMetrics, error) {
	done, clearBar := c.exampleBar(what, opened.Examples(f.split), f.json)
	defer clearBar()
	return opened.Evaluate(ctx, f.split, done)
}

// exampleBar returns a function that shows how many of so many examples are done, on a terminal and unless quiet is
// true, and one that clears the bar. what says what they are.
func (c *commands) exampleBar(what string, examples int, quiet bool) (done func(n int), clearBar func()) {
	if quiet || !onTerminal(c.log) || examples == 0 {
		return func(int) {}, func() {}
	}
	bar := newBar(c.log, examples)
	bar.what = what
	return func(n int) { bar.Add(n) }, func() { bar.Clear() }
}
