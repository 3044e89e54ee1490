package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/experiments/quantize"
	"github.com/jenga-nlp/jenga/experiments/run"
)

type quantizeFlags struct {
	out   string
	keep  []string
	noDev bool
	force bool
	json  bool
}

// quantizeHelp describes the command.
const quantizeHelp = `Write a run with the encoder's weights in int8, about a quarter of the size: the model of RUN, its
best, or a checkpoint of it. predict, eval, embed, serve and bench open it as any run, and its products are int8 without
--precision. They are those of --precision int8 on RUN: the weights of linear layers have a scale for each output. The
tables of embeddings are int8 too, with a scale for each row; norms, biases, fusion and heads stay float32. The new run
refers to no files of RUN, nor to those of a frozen encoder. It is not trained, merged or grown: RUN is.

A table has each head's main metric on dev, in float32 and in int8, and names the tasks that lose more than 0.5 points.
--keep LAYERS leaves layers in float32 where they lose too much: "embeddings", and numbers from 0. Where the dev data is
not found, a warning says so and the figures are missing; --no-dev leaves them out.

A run with changes of the encoder for each task (lora: {per_task: true}) can be quantized if all its tasks have the same
ones. A calibration is not taken over: jenga calibrate fits one to the new run. Ctrl-C leaves no quantized run, or a
whole one whose figures are missing, and the message says which. What a killed command has left is replaced.`

func (c *commands) quantizeCommand() *cobra.Command {
	var f quantizeFlags
	cmd := &cobra.Command{
		Use:   "quantize RUN",
		Short: "Write a run with weights in int8, a quarter of the size",
		Long:  quantizeHelp,
		Example: `  jenga quantize runs/snips --out runs/snips-int8
  jenga quantize runs/snips --keep embeddings,0 -o runs/snips-int8 --force
  jenga quantize runs/snips/tasks/intent --no-dev -o runs/intent-int8`,
		Args: between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error { return c.quantize(cmd.Context(), f, args[0]) },
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
	s, err := quantize.Open(folder, f.keep)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Check(f.out, f.force); err != nil {
		return err
	}
	c.warn(s.Warnings)
	known := len(s.Warnings)

	// figures in float32
	clearBar := func() {}
	watch := func(what string, examples int) (done func(n int)) {
		clearBar()
		done, clearBar = c.exampleBar(what, examples, f.json)
		return done
	}
	defer func() { clearBar() }()
	var figures []quantize.Figure
	if !f.noDev {
		if figures, err = s.Before(ctx, watch); err != nil {
			return c.nothingQuantized(err)
		}
		clearBar()
		c.warn(s.Warnings[known:])
	}

	// the run, and its figures
	err = s.Write(f.out, f.force, func() error {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := quantize.After(ctx, figures, f.out, watch); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil // the run may be as good as it is
	})
	clearBar()
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

// quantizedLine is the JSON of a quantized run.
type quantizedLine struct {
	Folder      string            `json:"folder"`
	Keep        []string          `json:"keep"`
	Bytes       int64             `json:"bytes"`
	BytesBefore int64             `json:"bytes_before"`
	Dev         []quantize.Figure `json:"dev"`
	Lost        []string          `json:"lost"` // tasks that lose more than quantize.MaxLoss
}

// writeQuantized writes what the heads' figures were before and are now, and the size of the run.
func (c *commands) writeQuantized(f quantizeFlags, s *quantize.Source, figures []quantize.Figure) error {
	before, after, err := s.Bytes(f.out)
	if err != nil {
		return err
	}
	line := quantizedLine{Folder: f.out, Keep: s.Kept(), Bytes: after, BytesBefore: before, Dev: figures,
		Lost: []string{}}
	rows := [][]string{{"task", "head", "metric in %", "float32", "int8", "change"}}
	var lost []string
	for _, figure := range figures {
		change := "-"
		if figure.Before != nil && figure.After != nil {
			change = fmt.Sprintf("%+.2f", 100*(*figure.After-*figure.Before))
		}
		rows = append(rows, []string{figure.Task, figure.Head, figure.Metric, inPercent(figure.Before),
			inPercent(figure.After), change})
		if figure.LosesMuch() {
			if !slices.Contains(line.Lost, figure.Task) {
				line.Lost = append(line.Lost, figure.Task)
			}
			lost = append(lost, fmt.Sprintf("task %q loses %.2f points of %s; --keep leaves layers in float32, as "+
				"--keep embeddings,0", figure.Task, 100*figure.Lost(), figure.Metric))
		}
	}
	if f.json {
		return writeLine(c.out, line)
	}
	var text strings.Builder
	if len(figures) > 0 {
		text.WriteString("dev:\n")
		writeLines(&text, append(aligned(rows), lost...))
	}
	kept := ""
	if len(line.Keep) > 0 {
		kept = " but for " + strings.Join(line.Keep, ", ")
	}
	fmt.Fprintf(&text, "quantized to int8%s: %s, %.0f%% of %s; the model is in %s\n", kept, run.SizeOf(after),
		100*float64(after)/float64(before), run.SizeOf(before), f.out)
	_, err = fmt.Fprint(c.out, text.String())
	return err
}
