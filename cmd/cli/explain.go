package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/predict"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/experiments/serve/page"
)

type explainFlags struct {
	text                     string // "-": those of stdin
	paired, offsetsSet       bool   // the flags are there
	pair, offsets, html      string
	tasks                    []string
	steps, maxTokens         int
	layer, head              int // of the attention map that is written, from 0; below 0: none
	json                     bool
	noAttention, noGradients bool
}

func (c *commands) explainCommand() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain RUN TEXT",
		Short: "Explain the predictions for a text: gradients, attention, fusion weights, lenses",
		Long: `Explain the predictions for a text. For each answer, and each token of the text, as the model reads it:

  gradient×input   how the answer's logit changes as the token's word embedding grows, at this text
  integrated       with --steps: what the token adds to the logit, compared with [PAD] in its place; these add up to
                   the logit less the baseline's

and the encoder's attention of a layer and head, the weights of fusion attention, and the lens of focus heads.
docs/explain.md says what each shows, and what it does not. For pairs of texts --pair is the second one, or the context
of a question. In place of a text, - reads texts from stdin, lines as jenga predict reads them; the output has each
one's line number. It computes in float32, and of a quantized run in int8, without gradients.`,
		Example: `  jenga explain runs/mails 'my card was charged twice'
  jenga explain runs/mails 'my card was charged twice' --steps 50 --task team
  jenga explain runs/mails 'my card was charged twice' --layer 5 --head 0
  jenga explain runs/mails 'my card was charged twice' --steps 300 --html explanation.html
  jenga explain runs/mails - --no-gradients --json < texts.jsonl > explanations.jsonl
  jenga explain runs/xquad 'Who sings?' --pair 'Adele sings.' --json > explanation.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) > 2 {
				return usageErrorf("jenga explain: unexpected argument %q; want a text of several words in quotation "+
					"marks", args[2])
			}
			return between(2, 2)(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			f.text, f.paired = args[1], cmd.Flags().Changed("pair")
			f.offsetsSet = cmd.Flags().Changed("offsets")
			return c.explain(cmd.Context(), f, args[0])
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.pair, "pair", "", "second `TEXT` of a pair, or the context of a question")
	flags.StringArrayVar(&f.tasks, "task", nil, "explain `TASK` alone, or TASK,TASK; may be repeated")
	flags.IntVar(&f.steps, "steps", 0, "integrated gradients over `N` points; 0: none. 50 suffice for most texts")
	flags.BoolVar(&f.noAttention, "no-attention", false, "leave the attention maps out")
	flags.BoolVar(&f.noGradients, "no-gradients", false, "leave the gradients out")
	flags.IntVar(&f.layer, "layer", -1, "write the attention of `LAYER`, from 0, the mean of its heads")
	flags.IntVar(&f.head, "head", -1, "with --layer, that of `HEAD` alone, from 0")
	flags.IntVar(&f.maxTokens, "max-tokens", predict.DefaultExplainTokens, "most `TOKENS` of a text")
	flags.BoolVar(&f.json, "json", false, "write JSON")
	flags.StringVar(&f.html, "html", "",
		"write a web page to `FILE`, - for stdout, which needs no other; it counts in utf16")
	offsetsFlag(cmd, &f.offsets)
	return cmd
}

// check returns an error for flags that are invalid or contradict each other.
func (f explainFlags) check() error {
	switch {
	case f.steps < 0 || f.steps > predict.MaxSteps:
		return usageErrorf("--steps %d: want a number from 0 to %d", f.steps, predict.MaxSteps)
	case f.steps > 0 && f.noGradients:
		return usageErrorf("--steps and --no-gradients: want one of the two")
	case f.maxTokens < 1:
		return usageErrorf("--max-tokens %d: want a number from 1 on", f.maxTokens)
	case f.layer < -1 || f.head < -1:
		return usageErrorf("--layer %d, --head %d: want numbers from 0 on", f.layer, f.head)
	case f.head >= 0 && f.layer < 0:
		return usageErrorf("--head %d: want --layer too", f.head)
	case f.layer >= 0 && f.noAttention:
		return usageErrorf("--layer and --no-attention: want one of the two")
	case f.layer >= 0 && (f.json || f.html != ""):
		return usageErrorf("--layer: the output of --json and --html has all layers; leave it out")
	case f.text == stdio && f.paired:
		return usageErrorf("--pair: texts of stdin have their own; want JSON lines with text and pair")
	case f.json && f.html == stdio:
		return usageErrorf("--html - and --json: both go to stdout; want --html FILE")
	case f.text == stdio && f.html != "":
		return usageErrorf("--html: a page has one explanation; want a text in place of -")
	}
	return nil
}

// attention reports whether the output has weights of the attention. A text without --layer names their number alone.
func (f explainFlags) attention() bool {
	return !f.noAttention && (f.layer >= 0 || f.json || f.html != "")
}

// unit returns the unit of offsets.
func (f explainFlags) unit() (corpus.OffsetUnit, error) {
	unit, err := offsetUnit(f.offsets)
	switch {
	case err != nil || f.html == "":
		return unit, err
	case f.offsetsSet && unit != corpus.UTF16:
		return 0, usageErrorf("--offsets %s: web pages count in utf16; leave it out", f.offsets)
	}
	return corpus.UTF16, nil
}

func (c *commands) explain(ctx context.Context, f explainFlags, folder string) error {
	if err := f.check(); err != nil {
		return err
	}
	f.tasks = splitCommas(f.tasks)
	unit, err := f.unit()
	if err != nil {
		return err
	}
	opened, err := predict.OpenRun(folder)
	if err != nil {
		return err
	}
	defer opened.Close()
	for _, name := range f.tasks {
		if _, _, err := opened.Model.Group(name); err != nil {
			return fmt.Errorf("--task: %w", err)
		}
	}
	maps := opened.Model.Encoder.Describe().Attention
	if f.layer >= maps.Layers && f.layer >= 0 || f.head >= maps.Heads && f.head >= 0 {
		return usageErrorf("--layer %d, --head %d: the encoder has %d layers of %d heads, counted from 0", f.layer,
			max(0, f.head), maps.Layers, maps.Heads)
	}
	c.warn(opened.Warnings)
	predictor := opened.Predictor(f.tasks...)
	defer func() { c.warn(predictor.Warnings()) }()
	o := predict.ExplainOptions{Form: predict.Form{Unit: unit, Tasks: f.tasks, AllWords: true},
		Attention: f.attention(), Gradients: !f.noGradients, Steps: f.steps, MaxTokens: f.maxTokens}
	text := newExplanationText(c.out, f, maps)
	if f.text == stdio {
		return c.explainLines(ctx, predictor, o, opened.Columns(f.tasks...), f.json, text)
	}
	return c.explainText(ctx, f, predictor, o, opened.Columns(f.tasks...), text)
}

// explainText explains the text of the flags.
func (c *commands) explainText(ctx context.Context, f explainFlags, predictor *predict.Predictor,
	o predict.ExplainOptions, columns predict.Columns, text *explanationText) error {
	fields := map[string]any{"text": f.text}
	if f.paired {
		fields["pair"] = f.pair
	}
	line, err := predict.InputObject(fields, corpus.Place{}, columns)
	if err != nil {
		return err
	}
	if f.html != "" {
		o.Top = 5 // as the page of a server shows
	}
	if f.steps > 0 && onTerminal(c.log) {
		bar, last := newBar(c.log, f.steps+1), 0
		o.Progress = func(done, _ int) {
			bar.Add(max(0, done-last))
			last = max(last, done)
		}
		defer bar.Clear()
	}
	x, err := predictor.Explain(ctx, o, line.Example)
	if err != nil {
		return err
	}
	if f.json {
		if err := writeLine(c.out, x); err != nil {
			return err
		}
	}
	switch {
	case f.html != "":
		return c.writePage(f.html, x)
	case f.json:
		return nil
	}
	return text.write(c.out, x)
}

// writePage writes an explanation as a web page. A file is complete or as it was; other outputs, as a pipe, are written
// to directly.
func (c *commands) writePage(name string, x predict.Explanation) error {
	if name == stdio {
		return page.Standalone(c.out, x)
	}
	var content bytes.Buffer
	if err := page.Standalone(&content, x); err != nil {
		return err
	}
	write := runfolder.WriteFile
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		write = func(name string, data []byte) error { return os.WriteFile(name, data, 0o644) }
	}
	path, err := runfolder.RealPath(name)
	if err != nil {
		path = name // it is new
	}
	if err := write(path, content.Bytes()); err != nil {
		var of *fs.PathError // which names the file that is written first
		if errors.As(err, &of) {
			err = of.Err
		}
		return fmt.Errorf("--html %s: %w", name, err)
	}
	fmt.Fprintf(c.log, "wrote %s\n", name)
	return nil
}
