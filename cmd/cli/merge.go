package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/merge"
	"github.com/jenga-nlp/jenga/experiments/quantize"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/internal/suggest"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/spf13/cobra"
)

type mergeFlags struct {
	options merge.Options
	rename  []string // RUN:TASK=NAME
	base    string
	out     string
	refit   bool
	set     []string
	force   bool
	json    bool
}

func (c *commands) mergeCommand() *cobra.Command {
	var f mergeFlags
	cmd := &cobra.Command{
		Use:   "merge RUN RUN…",
		Short: "Merge runs of one base model into a run with the tasks of all",
		Args:  between(2, math.MaxInt),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.check(cmd.Flags().Changed); err != nil {
				return err
			}
			if !f.refit {
				return c.merge(cmd.Context(), f, args)
			}
			own := *c // whose training outlives its outputs
			lost := own.lastingOutputs(f.json)
			return cmp.Or(own.merge(cmd.Context(), f, args), lost())
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.options.Method, "method", merge.Mean, "how task vectors are combined: "+
		strings.Join(merge.Methods(), ", "))
	flags.Float64Var(&f.options.Scale, "scale", 0, "factor λ of the combined task vectors (default by the method)")
	flags.Float64Var(&f.options.Density, "density", 0, "fraction of a task vector that ties and dare keep (default by "+
		"the method)")
	flags.Uint64Var(&f.options.Seed, "seed", 42, "seed of the numbers that dare drops")
	flags.Float64SliceVar(&f.options.Weights, "weight", nil,
		"weight of each run's task vector, in their order (default 1)")
	flags.StringArrayVar(&f.rename, "rename", nil,
		"another name for a task, `RUN:TASK=NAME` with the folder of its run, as it is named here, or its number "+
			"from 1; may be repeated")
	flags.StringVar(&f.base, "base", "", "folder of the base model (default: where the runs were trained from)")
	flags.StringVarP(&f.out, "out", "o", "", "run folder; required")
	flags.BoolVar(&f.refit, "refit", false, "train the heads again on the merged encoder, which is frozen")
	flags.StringArrayVar(&f.set, "set", nil,
		"with --refit: override `KEY=VALUE` of the section training; may be repeated")
	flags.BoolVar(&f.force, "force", false, "replace the run that the folder holds")
	flags.BoolVar(&f.json, "json", false, "one JSON line on stdout: the merged run, or interrupted")
	return cmd
}

func (f mergeFlags) check(given func(flag string) bool) error {
	switch o := f.options; {
	case given("scale") && o.Scale == 0: // which is the default of the method there
		return usageErrorf("--scale: want a number above 0, have 0")
	case given("density") && o.Density == 0:
		return usageErrorf("--density: want a number above 0, at most 1, have 0")
	case given("seed") && o.Method != merge.DARE && slices.Contains(merge.Methods(), o.Method):
		return usageErrorf("--seed: method %s drops no numbers at random; leave it out, or name method %s", o.Method,
			merge.DARE)
	case f.out == "":
		return usageErrorf("--out: no run folder; want --out DIR")
	case f.set != nil && !f.refit:
		return usageErrorf("--set: its options are those of --refit; name that too, or leave it out")
	}
	for _, set := range f.set {
		switch key, _, _ := strings.Cut(set, "="); {
		case !strings.HasPrefix(key, "training."):
			return usageErrorf("--set %q: want a key of the section training, as training.num_epochs=5", set)
		case key == "training.output_dir":
			return usageErrorf("--set %q: the run folder is that of --out, %s; leave it out", set, f.out)
		}
	}
	return nil
}

func (c *commands) merge(ctx context.Context, f mergeFlags, folders []string) error {
	if err := f.options.Check(len(folders)); err != nil {
		return usageError{err}
	}
	renames, err := renameFlags(f.rename, folders)
	if err != nil {
		return err
	}
	if err := checkpoint.CheckMade(f.out, f.force, folders); err != nil {
		return err
	}

	// merge
	figures, options, err := c.mergeRuns(ctx, f, folders, renames)
	if err != nil {
		return c.mergeEnded(f, events.Done{}, err, "nothing was merged")
	}
	left := "the merged run is in " + f.out + "; jenga eval has its metrics"
	if f.refit {
		left = "the merged run without --refit is in " + f.out + "; the same command with --force starts again"
	}
	if err := ctx.Err(); err != nil {
		return c.mergeEnded(f, events.Done{}, err, left)
	}

	// refit
	if f.refit {
		done, err := c.refit(ctx, f)
		switch {
		case err == nil:
		case errors.Is(err, context.Canceled):
			return c.mergeEnded(f, done, err, left)
		case done.Checkpoint() != "" || done.Resume != "":
			return fmt.Errorf("%w\ntraining ended %s", err, leftBy(done)+changing(err, done))
		default:
			return fmt.Errorf("%w\nthe merged run without --refit is in %s", err, f.out)
		}
		merge.Refitted(figures, done.Best)
	}
	return c.writeMerged(f, options, figures)
}

// mergeRuns writes the merged run, and returns the figures of the heads in their own runs and in that, unless it is
// interrupted then, and the options with their defaults. On an error nothing was written.
func (c *commands) mergeRuns(ctx context.Context, f mergeFlags, folders []string, renames []merge.Rename) (
	[]merge.Figure, merge.Options, error) {
	m, err := merge.Open(ctx, folders, f.options, renames, f.base)
	if err != nil {
		return nil, merge.Options{}, err
	}
	defer m.Close()
	if err := m.Check(f.out, f.force); err != nil {
		return nil, merge.Options{}, err
	}
	if f.refit {
		if err := m.CheckRefit(ctx, f.out, f.set); err != nil {
			return nil, merge.Options{}, fmt.Errorf("%w\nnothing was merged", err)
		}
	}
	c.warn(m.Warnings)
	known := len(m.Warnings)
	figures, err := m.Before(ctx)
	if err != nil {
		return nil, merge.Options{}, err
	}
	err = m.Write(ctx, f.out, f.force, func() error {
		err := merge.After(ctx, figures, f.out)
		if errors.Is(err, context.Canceled) {
			return nil // the run may be as good as it is
		}
		return err
	})
	if err != nil {
		return nil, merge.Options{}, err
	}
	c.warn(m.Warnings[known:])
	return figures, m.Options, nil
}

func (c *commands) refit(ctx context.Context, f mergeFlags) (events.Done, error) {
	again, err := run.Refit(ctx, f.out, f.set)
	if err != nil {
		return events.Done{}, err
	}
	c.warn(again.Warnings)
	var show func(train.Event) error
	if f.json { // which writes one line
		show = func(train.Event) error { return nil }
	}
	done, err := c.trainShown(ctx, again, f.out, show)
	return done, withFlags(err)
}

// renameFlags reads RUN:TASK=NAME, where RUN is a number from 1, or the folder as it is named.
func renameFlags(flags, folders []string) ([]merge.Rename, error) {
	var all []merge.Rename
	for _, flag := range flags {
		left, name, named := strings.Cut(flag, "=")
		at := strings.LastIndex(left, ":")
		if !named || at < 1 || left[at+1:] == "" || name == "" {
			return nil, usageErrorf("--rename %q: want RUN:TASK=NAME, with the number of the run, as "+
				"2:intent=intent_b", flag)
		}
		r, err := strconv.Atoi(left[:at])
		for i, folder := range folders {
			if folder == left[:at] {
				r, err = i+1, nil
			}
		}
		if err != nil || r < 1 || r > len(folders) {
			near := ""
			if similar, ok := suggest.Nearest(left[:at], folders); ok && err != nil {
				near = fmt.Sprintf("did you mean %q? ", similar)
			}
			return nil, usageErrorf("--rename %q: no run %q; %swant a number from 1 to %d", flag, left[:at], near,
				len(folders))
		}
		all = append(all, merge.Rename{Run: r - 1, Task: left[at+1:], Name: name})
	}
	return all, nil
}

type mergedLine struct {
	Folder  string         `json:"folder"`
	Method  string         `json:"method"`
	Scale   float64        `json:"scale"`
	Density float64        `json:"density,omitempty"`
	Dev     []merge.Figure `json:"dev"`
}

func (c *commands) writeMerged(f mergeFlags, o merge.Options, figures []merge.Figure) error {
	if f.json {
		return writeLine(c.out, mergedLine{f.out, o.Method, o.Scale, o.Density, figures})
	}
	header := []string{"task", "head", "run", "metric in %", "before", "merged"}
	if f.refit {
		header = append(header, "refitted")
	}
	rows := [][]string{header}
	for _, figure := range figures {
		row := []string{figure.Task, figure.Head, figure.Run, figure.Metric,
			inPercent(figure.Before), inPercent(figure.Merged)}
		if f.refit {
			row = append(row, inPercent(figure.Refitted))
		}
		rows = append(rows, row)
	}
	density := ""
	if o.Density > 0 {
		density = fmt.Sprintf(", density %v", o.Density)
	}
	_, err := fmt.Fprintf(c.out, "dev:\n%s%smerged by %s, scale %v%s; the model is in %s\n",
		aligned(rows), lostByRefit(figures), o.Method, o.Scale, density, f.out)
	return err
}

// lostByRefit returns a line for each head whose main metric is lower with heads that were trained again.
func lostByRefit(figures []merge.Figure) string {
	var text strings.Builder
	for _, f := range figures {
		again := report.Change{Before: f.Merged, After: f.Refitted}
		if higher, _ := again.Difference(); inPercent(f.Merged) != inPercent(f.Refitted) && higher < 0 {
			fmt.Fprintf(&text, "task %q loses %.2f points of %s by --refit; other options of training, by --set, may "+
				"keep them, and without --refit its head is as it was\n", f.Task, -100*higher, f.Metric)
		}
	}
	return text.String()
}

// changeRow formats a change: the head, and its metric before and after.
func changeRow(c report.Change) []string {
	difference := "-"
	if higher, known := c.Difference(); known {
		difference = fmt.Sprintf("%+.2f", 100*higher)
	}
	return []string{c.Task, c.Head, c.Metric, inPercent(c.Before), inPercent(c.After), difference}
}

// inPercent formats a fraction in per cent, "-" for none.
func inPercent(v *float64) string {
	if v == nil {
		return "-"
	}
	return hundredths(*v)
}

// mergeEnded returns the error of a merge. After an interruption it writes what is left, unless its heads were trained,
// and with --json the event that train writes.
func (c *commands) mergeEnded(f mergeFlags, done events.Done, err error, left string) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	ended := events.Ended{Done: done, Err: err}
	if done.Folder == "" || done.Resume == "" && ended.Failure() == nil {
		fmt.Fprintln(c.log, left)
		ended.Done = events.Done{}
	}
	if f.json {
		writeLine(c.out, events.Line(ended)) // if stdout is what has failed, ended says so
	}
	if ended.Folder == "" {
		return ended.Err
	}
	return interruption{ended}
}

type quantizeFlags struct {
	out   string
	keep  []string
	noDev bool
	force bool
	json  bool
}

func (c *commands) quantizeCommand() *cobra.Command {
	var f quantizeFlags
	cmd := &cobra.Command{
		Use:   "quantize RUN",
		Short: "Write a run with weights in int8, about a quarter to a third of the size",
		Args:  between(1, 1),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.quantize(cmd.Context(), f, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVarP(&f.out, "out", "o", "", "run folder; required")
	flags.StringSliceVar(&f.keep, "keep", nil, "`LAYERS` that stay float32: embeddings, numbers from 0")
	flags.BoolVar(&f.noDev, "no-dev", false, "do not evaluate on dev")
	flags.BoolVar(&f.force, "force", false, "replace the run that the folder holds")
	flags.BoolVar(&f.json, "json", false, "one JSON line on stdout")
	return cmd
}

func (c *commands) quantize(ctx context.Context, f quantizeFlags, folder string) error {
	if f.out == "" {
		return usageErrorf("--out: no run folder; want --out DIR")
	}
	if err := checkpoint.CheckMade(f.out, f.force, []string{folder}); err != nil {
		return err
	}
	s, err := quantize.Open(ctx, folder, f.keep)
	if err != nil {
		return c.nothingQuantized(err)
	}
	defer s.Close()
	if err := s.Check(f.out, f.force); err != nil {
		return err
	}
	c.warn(s.Warnings)
	known := len(s.Warnings)

	// figures in float32
	bar := c.newBar("dev in float32", !f.json)
	var figures []report.Change
	if !f.noDev {
		figures, err = s.Before(ctx, bar.reach)
		if bar.clear(); err != nil {
			return c.nothingQuantized(err)
		}
		c.warn(s.Warnings[known:])
	}

	// the run, and its figures
	bar = c.newBar("dev in int8", !f.json)
	err = s.Write(ctx, f.out, f.force, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := quantize.After(ctx, figures, f.out, bar.reach); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil // the run may be as good as it is
	})
	bar.clear()
	if err != nil {
		return c.nothingQuantized(err)
	}
	if err := ctx.Err(); err != nil {
		fmt.Fprintf(c.log, "the quantized run is in %s; jenga eval has its metrics\n", f.out)
		return err
	}
	return c.writeQuantized(f, s, figures)
}

// nothingQuantized returns the error of a command that leaves no run. After an interruption it says so.
func (c *commands) nothingQuantized(err error) error {
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(c.log, "nothing was quantized")
	}
	return err
}

type quantizedLine struct {
	Folder      string          `json:"folder"`
	Keep        []string        `json:"keep"`
	Bytes       int64           `json:"bytes"`
	BytesBefore int64           `json:"bytes_before"`
	Dev         []report.Change `json:"dev"`
	Lost        []string        `json:"lost"` // tasks that lose more than quantize.MaxLoss
}

// writeQuantized writes what the heads' figures were before and are now, and the size of the run.
func (c *commands) writeQuantized(f quantizeFlags, s *quantize.Source, figures []report.Change) error {
	before, after, err := s.Bytes(f.out)
	if err != nil {
		return err
	}
	line := quantizedLine{Folder: f.out, Keep: s.Kept(), Bytes: after, BytesBefore: before, Dev: figures,
		Lost: []string{}}
	rows := [][]string{{"task", "head", "metric in %", "float32", "int8", "change"}}
	var lost []string
	advice := ""
	if more := s.Further(); len(more) > 0 {
		advice = "; --keep leaves layers in float32, as --keep " + strings.Join(more, ",")
	}
	for _, figure := range figures {
		rows = append(rows, changeRow(figure))
		if quantize.LosesMuch(figure) {
			if !slices.Contains(line.Lost, figure.Task) {
				line.Lost = append(line.Lost, figure.Task)
			}
			lost = append(lost, fmt.Sprintf("task %q loses %.2f points of %s%s\n", figure.Task,
				100*quantize.Lost(figure), figure.Metric, advice))
		}
	}
	if f.json {
		return writeLine(c.out, line)
	}
	var text strings.Builder
	if len(figures) > 0 {
		text.WriteString("dev:\n" + aligned(rows) + strings.Join(lost, ""))
	}
	kept := ""
	if len(line.Keep) > 0 {
		kept = " but for " + strings.Join(line.Keep, ", ")
	}
	fmt.Fprintf(&text, "quantized to int8%s: %s, %.0f%% of %s; the model is in %s\n", kept, memory.Size(after),
		100*float64(after)/float64(before), memory.Size(before), f.out)
	_, err = fmt.Fprint(c.out, text.String())
	return err
}
