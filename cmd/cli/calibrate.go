package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/experiments/calibrate"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/calibration"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

type calibrateFlags struct {
	thresholds, report string
	options            calibrate.Options
	data               []string // TASK=FILE
	remove, json       bool
	precision          precisionFlag
}

func (c *commands) calibrateCommand() *cobra.Command {
	var f calibrateFlags
	cmd := &cobra.Command{
		Use:   "calibrate RUN",
		Short: "Fit a run's probabilities, thresholds and sets of labels to its dev split",
		Args:  between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			return c.calibrate(cmd.Context(), f, args[0])
		},
	}
	flags := cmd.Flags()
	oneOfVar(cmd, &f.thresholds, "thresholds", "keep",
		"of several labels: keep those of training, or f1, the best F1 on dev", "keep", "f1")
	flags.Float64Var(&f.options.AtPrecision, "at-precision", 0,
		"fit the least probability of an answer, and the thresholds of several labels, to the precision `P`")
	flags.Float64Var(&f.options.Abstain, "abstain", 0,
		"leave this `FRACTION` of texts without an answer, the least probable ones")
	flags.Float64Var(&f.options.Alpha, "conformal", 0,
		"predict sets of labels, among which is not the right one for this `FRACTION` of texts")
	oneOfVar(cmd, &f.report, "report", config.Dev, "split to report on: dev or test", config.Dev, config.Test)
	flags.StringArrayVar(&f.data, "data", nil,
		"read `TASK=FILE` in place of the task's own dev data; "+manyFiles)
	flags.BoolVar(&f.remove, "remove", false, "remove what an earlier call has fitted")
	flags.BoolVar(&f.json, "json", false, "the report as one JSON line on stdout")
	f.precision.flag(cmd, "")
	return cmd
}

func (f calibrateFlags) check(cmd *cobra.Command) error {
	for name, value := range map[string]float64{"at-precision": f.options.AtPrecision, "abstain": f.options.Abstain,
		"conformal": f.options.Alpha} {
		if cmd.Flags().Changed(name) && !(value > 0 && value < 1) {
			return usageErrorf("--%s %v: want a number between 0 and 1", name, value)
		}
	}
	switch o := f.options; {
	case o.Alpha > 0.5:
		return usageErrorf("--conformal %v: sets without the right label for %.3g %% of texts; want at most 0.5, "+
			"such as %.3g for sets that have it for %.3g %%", o.Alpha, 100*o.Alpha, 1-o.Alpha, 100*o.Alpha)
	case o.AtPrecision > 0 && o.Abstain > 0:
		return usageErrorf("--at-precision and --abstain: both fit the least probability of an answer; want one")
	case o.AtPrecision > 0 && f.thresholds == "f1":
		return usageErrorf("--at-precision and --thresholds f1: both fit the thresholds of several labels; want one")
	case f.remove && (f.json || len(f.data) > 0):
		return usageErrorf("--remove has no report and reads no data; want it without --json and --data")
	case f.remove && (o.AtPrecision > 0 || o.Abstain > 0 || o.Alpha > 0 || f.thresholds == "f1"):
		return usageErrorf("--remove removes what was fitted; want it without flags that fit")
	}
	return nil
}

func (c *commands) calibrate(ctx context.Context, f calibrateFlags, folder string) error {
	files, err := dataFlags(f.data)
	if err != nil {
		return err
	}
	uncalibrated := func(ctx context.Context, folder, _ string) (*predict.Opened, error) {
		return predict.OpenUncalibrated(ctx, folder)
	}
	opened, err := openIn(ctx, machineFlags{precision: f.precision}, uncalibrated, folder)
	if err != nil {
		return err
	}
	defer opened.Close()
	if f.remove {
		return c.removeCalibration(ctx, opened)
	}
	if err := cmp.Or(runfolder.CheckWritable(opened.Checkpoint), opened.CheckEncoder(ctx)); err != nil {
		return err
	}

	line := calibrationLine{CrossFitted: f.report == config.Dev}
	if line.FittedTo, line.Split, err = f.read(ctx, opened, files); err != nil {
		return err
	}

	// fit to dev
	o := f.options
	o.F1 = f.thresholds == "f1"
	dev, err := c.logits(ctx, opened, f, config.Dev, line.FittedTo)
	if err != nil {
		return err
	}
	bar := c.newBar("labels fitted", !f.json)
	fitted, warnings, err := calibrate.All(ctx, dev, o, bar.reach)
	if bar.clear(); err != nil {
		return fmt.Errorf("%s: %w", folder, err)
	}

	// measure
	measured := dev
	if !line.CrossFitted {
		if measured, err = c.logits(ctx, opened, f, f.report, f.report); err != nil {
			return err
		}
	}
	bar = c.newBar("labels fitted for the report", !f.json)
	line.Fitted = fitted
	line.Heads, err = calibrate.Reports(ctx, measured, fitted, o, line.CrossFitted, bar.reach)
	if bar.clear(); err != nil {
		return err
	}
	if err := line.keep(ctx, opened, calibrate.Changed(fitted, o)); err != nil {
		return err
	}
	c.warn(slices.Concat(opened.Warnings, knownData(opened, files, !line.CrossFitted), warnings))
	if f.json {
		return writeLine(c.out, line)
	}
	return line.write(c.out)
}

// keep writes the calibration of heads in place of an earlier one, which it removes where there are no heads.
func (l *calibrationLine) keep(ctx context.Context, opened *predict.Opened, heads []checkpoint.HeadCalibration) (
	err error,
) {
	if len(heads) > 0 {
		l.File, err = opened.WriteCalibration(ctx, heads)
		return err
	}
	l.earlier, l.Removed, err = opened.RemoveCalibration(ctx)
	return err
}

func (c *commands) removeCalibration(ctx context.Context, opened *predict.Opened) error {
	path, there, err := opened.RemoveCalibration(ctx)
	what := "there is no"
	if there {
		what = "removed"
	}
	if err == nil {
		fmt.Fprintln(c.log, what, path)
	}
	return err
}

// read reads the data that is fitted to, and that of the report, and returns their names.
func (f calibrateFlags) read(ctx context.Context, opened *predict.Opened, files map[string][]string) (
	fittedTo, reported string, err error) {
	calibrate.SkipUncalibrated(opened)
	fittedTo, err = readData(ctx, opened, config.Dev, "", files)
	if err != nil || f.report == config.Dev {
		return fittedTo, fittedTo, err
	}
	opened.Data.Missing = func(config.Task, config.File) string {
		return "leave out --report, for a report on what is fitted to"
	}
	if err := opened.Read(ctx, f.report, "", nil); err != nil {
		return "", "", fmt.Errorf("--report %s: %w", f.report, err)
	}
	return fittedTo, f.report, nil
}

// logits returns the logits of the run's heads for a split that was read and is called name on a bar.
func (c *commands) logits(ctx context.Context, opened *predict.Opened, f calibrateFlags, split, name string) (
	[]calibrate.HeadLogits, error) {
	bar := c.newBar(name, !f.json)
	defer bar.clear()
	return calibrate.Logits(ctx, opened, split, bar.reach)
}

type calibrationLine struct {
	Split    string `json:"split"`     // that is measured: a split, or the files that are read in its place
	FittedTo string `json:"fitted_to"` // the same of what was fitted to
	// CrossFitted says that each half of the split was measured by what was fitted to the other.
	CrossFitted bool   `json:"cross_fitted"`
	File        string `json:"file"`    // "": all heads answer as without a calibration
	Removed     bool   `json:"removed"` // in place of File: an earlier one was, that of earlier
	earlier     string
	Fitted      []checkpoint.HeadCalibration `json:"fitted"`
	Heads       []calibrate.HeadReport       `json:"heads"`
}

func (l calibrationLine) write(w io.Writer) error {
	var text strings.Builder
	how := "by what was fitted to " + l.FittedTo
	if l.CrossFitted {
		how = "each half by what was fitted to the other"
	}
	fmt.Fprintf(&text, "%s, %s; ECE in %%:\n", l.Split, how)
	rows := [][]string{{"task", "head", "examples", "ECE", "after", "Brier", "after", "NLL", "after"}}
	for _, r := range l.Heads {
		rows = append(rows, []string{r.Task, r.Head, fmt.Sprint(r.Examples),
			hundredths(r.Before.ECE), hundredths(r.After.ECE), fmt.Sprintf("%.4f", r.Before.Brier),
			fmt.Sprintf("%.4f", r.After.Brier), nllText(r.Before.NLL), nllText(r.After.NLL)})
	}
	text.WriteString(aligned(rows))
	changed := func(c checkpoint.HeadCalibration) bool { return !c.AsTrained() }
	if l.CrossFitted && slices.ContainsFunc(l.Fitted, changed) {
		text.WriteString("a fit is kept where it lowers this NLL, so that these figures are a little too good; " +
			"those of --report test are not\n")
	}
	for _, c := range l.Fitted {
		fmt.Fprintf(&text, "\n%s, %s: %s, fitted to %s\n", c.Task, c.Head, scaling(c),
			plugin.Count(c.Examples, "example"))
		of := func(r calibrate.HeadReport) bool { return r.Task == c.Task && r.Head == c.Head }
		if at := slices.IndexFunc(l.Heads, of); at >= 0 {
			writeDecisions(&text, c, l.Heads[at])
		}
	}
	switch {
	case l.File != "":
		fmt.Fprintf(&text, "\nwritten to %s\n", l.File)
	case l.Removed:
		fmt.Fprintf(&text, "\n%s is removed: all heads answer as without a calibration\n", l.earlier)
	default:
		text.WriteString("\nnothing is written: all heads answer as without a calibration\n")
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// nllText formats a negative log likelihood, - if there is none.
func nllText(nll *float64) string {
	if nll == nil {
		return "-"
	}
	return fmt.Sprintf("%.4f", *nll)
}

func scaling(c checkpoint.HeadCalibration) string {
	switch {
	case c.AsTrained():
		return "probabilities as they were"
	case c.Temperature > 0:
		return fmt.Sprintf("temperature %.4g", c.Temperature)
	}
	different := map[calibration.Sigmoid]bool{}
	for _, s := range c.Sigmoids {
		different[s] = true
	}
	if len(different) == 1 {
		return fmt.Sprintf("sigmoid of %.4g·z %+.4g", c.Sigmoids[0].A, c.Sigmoids[0].B)
	}
	return fmt.Sprintf("%d sigmoids of %d labels", len(different), len(c.Sigmoids))
}

// writeDecisions writes what a head's report says of its answers.
func writeDecisions(text *strings.Builder, c checkpoint.HeadCalibration, r calibrate.HeadReport) {
	if before, after := r.LabelsBefore, r.LabelsAfter; before != nil {
		rows := [][]string{{"labels, in %", "precision", "recall", "f1_micro", "f1_macro"}}
		for _, f := range []struct {
			name string
			*calibrate.LabelFigures
		}{{"before", before}, {"after", after}} {
			rows = append(rows, []string{f.name, hundredths(f.Precision), hundredths(f.Recall), hundredths(f.F1),
				hundredths(f.MacroF1)})
		}
		text.WriteString(aligned(rows))
		return
	}
	rows := [][]string{{"answered in %", "from probability", "accuracy in %"}}
	for _, p := range r.Curve {
		rows = append(rows, pointRow(p))
	}
	text.WriteString(aligned(rows))
	if p := r.Answered; p != nil {
		row := pointRow(*p)
		fmt.Fprintf(text, "below probability %s there is no answer\nby the fit reported here, %s %% are answered, "+
			"%s %% of them right\n", row[1], row[0], row[2])
	}
	if s := r.Sets; s != nil {
		fmt.Fprintf(text, "sets of probability %.4g from %s: ", 1-s.Alpha,
			plugin.Count(c.Sets.Examples, "example"))
		if s.Coverage != nil {
			fmt.Fprintf(text, "%s %% have the right label, ", inPercent(s.Coverage))
		}
		fmt.Fprintf(text, "%.2f labels each, %s %% have none\n", s.Size, hundredths(s.Empty))
		fmt.Fprintf(text, "over %d random halves %s %% have it, standard deviation %s\n", calibrate.RandomHalves,
			hundredths(s.Halves), hundredths(s.Deviation))
	}
}

// pointRow formats a point of a curve: coverage, least probability, accuracy.
func pointRow(p calibration.Point) []string {
	return []string{hundredths(p.Coverage), fmt.Sprintf("%.4f", p.MinProbability), inPercent(p.Accuracy)}
}

func hundredths(fraction float64) string { return fmt.Sprintf("%.2f", 100*fraction) }
