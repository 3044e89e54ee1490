package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/spf13/cobra"
)

type lrFindFlags struct {
	set    []string
	device deviceFlag
	test   run.RateTest
	json   bool
}

func (c *commands) lrFindCommand() *cobra.Command {
	var f lrFindFlags
	cmd := &cobra.Command{
		Use:   "lr-find [FILE]",
		Short: "Find a learning rate for an experiment, by a rate range test",
		Args:  between(0, 1),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.lrFind(cmd.Context(), f, fileOf(args)) },
	}
	cmd.Flags().StringArrayVar(&f.set, "set", nil, "override `KEY=VALUE` of the file; may be repeated")
	f.device.flag(cmd, "", " (default: training.device of the file)")
	cmd.Flags().Float64Var(&f.test.From, "from", 1e-7, "`rate` of the first step")
	cmd.Flags().Float64Var(&f.test.To, "to", 1, "`rate` of the last step")
	cmd.Flags().IntVar(&f.test.Steps, "steps", 0,
		"number of steps, at least 10; 0: 100, and 25 more for each further group of tasks that share texts")
	cmd.Flags().BoolVar(&f.json, "json", false, "one JSON object on stdout")
	return cmd
}

func (c *commands) lrFind(ctx context.Context, f lrFindFlags, file string) error {
	if err := f.test.Check(); err != nil {
		return usageError{err}
	}
	if err := f.device.check(); err != nil {
		return err
	}
	f.set = f.device.over(f.set)

	// data and model
	ready, err := c.read(ctx, file, f.set, config.Train, config.Dev)
	if err != nil {
		return err
	}

	if ready.Data.Experiment.Taught() {
		c.warn([]plugin.Warning{warning("the test learns from labels alone, without teachers: a rate that is right " +
			"with them may be another")})
	}

	// test
	bar := c.newBar("rate range test", true)
	curve, err := ready.FindRate(ctx, f.test, bar.reach)
	bar.clear()
	if err != nil {
		return err
	}

	// results
	if f.json {
		return writeLine(c.out, events.RateLineOf(curve))
	}
	return writeRates(c.out, curve, file, f.set)
}

const ratesShown = 25

// writeRates writes a curve as a table, the suggested rate, and the command that trains the file with it and with set.
func writeRates(w io.Writer, curve events.RateCurve, file string, set []string) error {
	var text strings.Builder
	rows := [][]string{{"step", "rate", "loss", "smoothed"}}
	every, lowest := max(1, len(curve.Points)/ratesShown), curve.Lowest
	for i, p := range curve.Points {
		if i%every != 0 && i != lowest && i != len(curve.Points)-1 {
			continue
		}
		rows = append(rows, []string{strconv.Itoa(p.Step), fmt.Sprintf("%.2e", p.Rate), lossText(p.Loss),
			lossText(p.Smoothed)})
	}
	text.WriteString(aligned(rows))

	suggested, ok := curve.Suggested()
	switch {
	case curve.Diverged:
		fmt.Fprintf(&text, "the loss diverges after step %d\n", len(curve.Points))
	case ok && lowest == len(curve.Points)-1:
		fmt.Fprintln(&text, "the loss still falls at the last rate: a higher --to may give another suggestion")
	}
	if !ok {
		fmt.Fprintln(&text, "no rate is suggested: the loss does not fall by a twentieth; want other rates, or more "+
			"--steps")
	} else {
		rate := strconv.FormatFloat(suggested, 'e', 1, 64)
		fmt.Fprintf(&text, "suggested learning rate: %s, a tenth of that of the lowest smoothed loss, %.1e\n", rate,
			curve.Points[lowest].Rate)
		fmt.Fprintf(&text, "jenga train %s", shellWord(file))
		for _, setting := range append(slices.Clone(set), "training.learning_rate="+rate) {
			fmt.Fprintf(&text, " --set %s", shellWord(setting))
		}
		fmt.Fprintln(&text)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
