package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

type predictFlags struct {
	unit              corpus.OffsetUnit
	keep, out, format string
	tasks             tasksFlag
	top               int
	minProbability    []string // P or TASK=P
	shard             shardFlag
	machine           machineFlags
	data              dataFlag
}

func (c *commands) predictCommand() *cobra.Command {
	var f predictFlags
	cmd := &cobra.Command{
		Use:   "predict RUN [FILE]",
		Short: "Predict for all tasks, a JSON line for each text",
		Args:  between(1, 2),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.predict(cmd.Context(), f, args[0], args[1:]) },
	}
	offsetsFlag(cmd, &f.unit)
	cmd.Flags().StringVar(&f.keep, "keep", "all", "fields of the input that pass through: all, none or `FIELD,…`")
	f.tasks.flag(cmd, "predict for")
	cmd.Flags().IntVar(&f.top, "top", 0, "list the `K` likeliest labels of a text with their probabilities")
	oneOfVar(cmd, &f.format, "format", "",
		"`FORMAT` of the output: jsonl, or with predictions in the input's own columns csv, tsv, parquet, conll or "+
			"conllu (default by the extension of --out, else jsonl)", outputFormats...)
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "write to `FILE` in place of stdout")
	cmd.Flags().StringArrayVar(&f.minProbability, "min-probability", nil,
		"mark a label with a probability below `P` as abstained, and leave it out of several labels; TASK=P or "+
			"TASK.HEAD=P is for one task or head; P,TASK=P is several; may be repeated")
	f.machine.flag(cmd)
	f.shard.flag(cmd)
	f.data.flag(cmd, ofTask)
	return cmd
}

// outputFormats are the values of the flag --format. The first one is that of any input.
var outputFormats = []string{"jsonl", "csv", "tsv", "parquet", "conll", "conllu"}

// settle sets the default of the format. It returns an error for flags that are invalid.
func (f *predictFlags) settle() error {
	if err := settleOutput(&f.out, &f.format, outputFormats); err != nil {
		return err
	}
	switch {
	case f.top < 0:
		return usageErrorf("--top %d: want a number from 1 on, or 0 for none", f.top)
	case f.top > 0 && f.format != outputFormats[0]:
		return usageErrorf("--top %d: --format %s has no place for other labels; want jsonl", f.top, f.format)
	case f.out != "":
		return checkOutput(f.out)
	}
	return nil
}

// input returns the input of a run's tasks, as the run's data and --set-data have it.
func (f predictFlags) input(opened *predict.Opened, args, tasks []string) (textInput, error) {
	if err := opened.Data.Experiment.SetData(f.data); err != nil {
		return textInput{}, err
	}
	input := inputOf(args, inputs.ColumnsOf(opened.Data, tasks...))
	input.format, input.shard = inputs.FormatOf(opened.Data.Experiment, input.file, tasks...), f.shard
	input.marked = inputs.FormatOf(opened.Data.Experiment, "output."+f.format, tasks...).Comments
	return input, input.setFormat(f.data)
}

func (c *commands) predict(ctx context.Context, f predictFlags, folder string, args []string) (err error) {
	if err := f.settle(); err != nil {
		return err
	}
	if err := cmp.Or(f.shard.check(inputOf(args, inputs.Columns{}), f.format),
		f.data.check(inputOf(args, inputs.Columns{}))); err != nil {
		return err
	}
	least, err := minProbabilities(splitCommas(f.minProbability))
	if err != nil {
		return err
	}
	all := predict.Options{BatchTokens: math.MaxInt} // that are read
	opened, model, tasks, err := openModel(ctx, folder, f.machine, f.tasks, all)
	if err != nil {
		return err
	}
	defer model.Close()
	if err := opened.CheckMinProbability(least); err != nil {
		return fmt.Errorf("--min-probability: %w", err)
	}
	c.warn(slices.Concat(opened.Warnings, opened.PassesWarnings(tasks...)))

	// the output
	own := *c
	if f.out != "" {
		if len(args) > 0 && sameFile(args[0], f.out) {
			return fmt.Errorf("--out %q: it is the file that is read; want another", f.out)
		}
		file := &outputFile{name: f.out, format: f.format, log: c.log}
		defer func() { err = file.end(err) }()
		own.out = file
	}

	keep := newPassedFields(f.keep)
	form := predict.Form{Unit: f.unit, Top: f.top, MinProbability: least, Rows: true}
	defer func() { c.warn(slices.Concat(model.TextWarnings(), keep.warnings())) }()
	input, err := f.input(opened, args, tasks)
	if err != nil {
		return err
	}
	input.format.Warn = func(at corpus.Place, text string) { c.warn([]plugin.Warning{warning("%s: %s", at, text)}) }
	if name, kind, ok := inputs.NamedAlike(opened.Data, input.file); ok && input.file != "" && input.isLines() {
		c.warn([]plugin.Warning{warning("%s is read as a text in each line, while the run's data %s is "+
			"%s; --set-data format=%[3]s reads it so", input.file, name, kind)})
	}
	output, done, err := own.outputOf(f, inputs.TargetColumns(opened.Data, tasks...), input, keep)
	if err != nil {
		return namingSetData(err)
	}
	defer done()
	return eachText(ctx, &own, input, func(lines []inputs.Line) ([]predict.Prediction, error) {
		predictions, err := model.PredictExamples(ctx, form, examplesOf(lines)...)
		for i := range predictions {
			lines[i].Err = predictions[i].Err
			predictions[i].Line, predictions[i].Fields = lines[i].Number, keep.choose(lines[i].Fields)
		}
		return predictions, err
	}, own.shown(output))
}

// openModel opens a run that predicts for the tasks of a flag, as the others say, and returns the tasks' names.
// Closing the model closes the run.
func openModel(ctx context.Context, folder string, machine machineFlags, named tasksFlag, o predict.Options) (
	opened *predict.Opened, model *predict.Model, tasks []string, err error,
) {
	if opened, err = openIn(ctx, machine, predict.OpenRunOn, folder); err != nil {
		return nil, nil, nil, err
	}
	if tasks, err = named.of(opened); err == nil {
		o.Tasks = tasks
		model, err = predict.New(opened, o)
	}
	if err != nil {
		return nil, nil, nil, errors.Join(err, opened.Close())
	}
	return opened, model, tasks, nil
}

// minProbabilities reads the flag --min-probability: probabilities by the names of tasks or heads, "" for all others.
func minProbabilities(flags []string) (map[string]float64, error) {
	all := map[string]float64{}
	for _, flag := range flags {
		name, number, named := strings.Cut(flag, "=")
		if !named {
			name, number = "", flag
		}
		p, isNumber := floats.Parse(number)
		_, twice := all[name]
		switch {
		case !isNumber || !(p >= 0 && p <= 1) || named && name == "":
			return nil, usageErrorf("--min-probability %q: want a number from 0 to 1, or TASK=NUMBER", flag)
		case twice:
			return nil, usageErrorf("--min-probability %q: there is one before it; want one", flag)
		}
		all[name] = p
	}
	return all, nil
}

func (c *commands) outputOf(f predictFlags, targets []inputs.TargetColumn, from textInput, keep passedFields) (
	output lineOutput[predict.Prediction], done func() error, err error) {
	done = func() error { return nil }
	switch f.format {
	case "jsonl":
		return jsonLines[predict.Prediction]{keep}, done, nil
	case "conll", "conllu":
		return newSentences(f.format, from, targets, c.log)
	}
	column := func(role string) string { return slices.Concat(from.columns.Names[role], []string{role})[0] }
	t := &table{
		format: corpus.Format{Type: f.format}, text: column("text"),
		targets: targets, keep: keep, log: c.log, dropped: map[string]bool{},
	}
	if slices.ContainsFunc(targets, func(target inputs.TargetColumn) bool { return target.PerWord }) {
		t.words = column("words")
	}
	if kind := from.kind(); kind == "csv" || kind == "tsv" || kind == "parquet" {
		if t.columns, err = corpus.Columns(from.file, from.format); err != nil {
			return nil, nil, err
		}
		if kind == f.format { // the run's data options read the output too
			t.format = from.format
			t.format.Type = kind
		}
	}
	t.format.Sentence = from.format.Sentence
	if t.format.Type != "parquet" {
		t.format.Comments = cmp.Or(t.format.Comments, from.marked)
	}
	if f.format == "parquet" && isTerminal(c.out) {
		return nil, nil, usageErrorf("--format parquet: stdout is a terminal; want --out FILE")
	}
	return t, t.close, nil
}

// passedFields chooses the fields of the input that pass through to the output.
type passedFields struct {
	all   bool
	names []string
	found map[string]bool // of names
}

func newPassedFields(flag string) passedFields {
	switch flag {
	case "all":
		return passedFields{all: true}
	case "none":
		return passedFields{}
	}
	return passedFields{names: strings.Split(flag, ","), found: map[string]bool{}}
}

func (f passedFields) has(name string) bool { return f.all || slices.Contains(f.names, name) }

// choose returns those of fields that pass through, under the names of --keep, which may be paths into JSON.
func (f passedFields) choose(fields map[string]any) map[string]any {
	if f.all {
		return fields
	}
	chosen := map[string]any{}
	for _, name := range f.names {
		if value, ok := corpus.Field(fields, name); ok {
			chosen[name], f.found[name] = value, true
		}
	}
	return chosen
}

func (f passedFields) warnings() []plugin.Warning {
	var all []plugin.Warning
	for _, name := range f.names {
		if !f.found[name] {
			all = append(all, warning("--keep: no line has a field %q besides its text", name))
		}
	}
	return all
}
