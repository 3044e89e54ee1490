package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/experiments/serve/page"
	"github.com/jenga-nlp/jenga/predict"
)

type explainFlags struct {
	text                     string // "-": those of stdin
	paired, offsetsSet       bool   // the flags are there
	pair, html               string
	unit                     corpus.OffsetUnit
	tasks                    tasksFlag
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
	f.tasks.flag(cmd, "explain")
	flags.IntVar(&f.steps, "steps", 0, "integrated gradients over `N` points; 0: none. 50 suffice for most texts")
	flags.BoolVar(&f.noAttention, "no-attention", false, "leave the attention maps out")
	flags.BoolVar(&f.noGradients, "no-gradients", false, "leave the gradients out")
	flags.IntVar(&f.layer, "layer", -1, "write the attention of `LAYER`, from 0, the mean of its heads")
	flags.IntVar(&f.head, "head", -1, "with --layer, that of `HEAD` alone, from 0")
	flags.IntVar(&f.maxTokens, "max-tokens", predict.DefaultExplainTokens, "most `TOKENS` of a text")
	flags.BoolVar(&f.json, "json", false, "write JSON")
	flags.StringVar(&f.html, "html", "",
		"write a web page to `FILE`, - for stdout, which needs no other; it counts in utf16")
	offsetsFlag(cmd, &f.unit)
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
	case f.html != "" && f.offsetsSet && f.unit != corpus.UTF16:
		return usageErrorf("--offsets %v: web pages count in utf16; leave it out", f.unit)
	case f.text == stdio && f.html != "":
		return usageErrorf("--html: a page has one explanation; want a text in place of -")
	}
	return nil
}

// attention reports whether the output has weights of the attention. A text without --layer names their number alone.
func (f explainFlags) attention() bool {
	return !f.noAttention && (f.layer >= 0 || f.json || f.html != "")
}

func (c *commands) explain(ctx context.Context, f explainFlags, folder string) error {
	if err := f.check(); err != nil {
		return err
	}
	if f.html != "" {
		f.unit = corpus.UTF16
	}
	opened, err := predict.OpenRun(folder)
	if err != nil {
		return err
	}
	tasks, err := f.tasks.of(opened)
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	model, err := predict.New(opened, predict.Options{Tasks: tasks})
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	defer model.Close()
	maps := opened.Model.Encoder.Describe().Attention
	if f.layer >= maps.Layers && f.layer >= 0 || f.head >= maps.Heads && f.head >= 0 {
		return usageErrorf("--layer %d, --head %d: the encoder has %d layers of %d heads, counted from 0", f.layer,
			max(0, f.head), maps.Layers, maps.Heads)
	}
	c.warn(opened.Warnings)
	defer func() { c.warn(model.TextWarnings()) }()
	o := predict.ExplainOptions{Form: predict.Form{Unit: f.unit, Tasks: tasks, Rows: true},
		Attention: f.attention(), Gradients: !f.noGradients, Steps: f.steps, MaxTokens: f.maxTokens}
	text := newExplanationText(c.out, f, maps)
	if f.text == stdio {
		return c.explainLines(ctx, model, o, inputs.ColumnsOf(opened.Data, tasks...), f.json, text)
	}
	return c.explainText(ctx, f, model, o, inputs.ColumnsOf(opened.Data, tasks...), text)
}

// explainText explains the text of the flags.
func (c *commands) explainText(ctx context.Context, f explainFlags, model *predict.Model,
	o predict.ExplainOptions, columns inputs.Columns, text *explanationText) error {
	fields := map[string]any{"text": f.text}
	if f.paired {
		fields["pair"] = f.pair
	}
	line, err := inputs.Object(fields, corpus.Place{}, columns)
	if err != nil {
		return err
	}
	if f.html != "" {
		o.Top = 5 // as the page of a server shows
	}
	bar := c.newBar("", f.steps+1, f.steps > 0)
	defer bar.clear()
	o.Progress = func(done, _ int) {
		if ctx.Err() == nil { // else the bar is gone
			bar.reach(done)
		}
	}
	x, err := model.Explain(ctx, o, line.Example)
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

// stdio is the name of stdin in place of a text or file, and of stdout in place of a file that is written.
const stdio = "-"

// explainLines explains the texts of stdin, one after the other, as JSON lines or as text.
func (c *commands) explainLines(ctx context.Context, model *predict.Model, o predict.ExplainOptions,
	columns inputs.Columns, json bool, text *explanationText) error {
	var output lineOutput[predict.Explanation] = explanationTexts{text, c.log}
	if json {
		output = jsonLines[predict.Explanation]{newPassedFields("all")}
	}
	from := textInput{columns: columns, batch: 1}
	return eachText(ctx, c, from, func(lines []inputs.Line) ([]predict.Explanation, error) {
		line := &lines[0]
		x, err := model.Explain(ctx, o, line.Example)
		var refused *predict.ExampleError
		var long *predict.LengthError
		if errors.As(err, &refused) || errors.As(err, &long) {
			if place := line.Example.Place.String() + ": "; !strings.HasPrefix(err.Error(), place) {
				err = fmt.Errorf("%s%w", place, err)
			}
			line.Err, err = err, nil
		}
		x.Prediction.Line, x.Prediction.Fields = line.Number, line.Fields
		return []predict.Explanation{x}, err
	}, output)
}

// explanationTexts writes explanations as text, each after its line's number and text, which is quoted if a terminal
// would not show it as it is. Errors go to log.
type explanationTexts struct {
	text *explanationText
	log  io.Writer
}

func (e explanationTexts) write(w io.Writer, line inputs.Line, x predict.Explanation) error {
	if line.Err != nil {
		_, err := fmt.Fprintln(e.log, line.Err)
		return err
	}
	text := x.Prediction.Text
	if strings.ContainsFunc(text, unicode.IsControl) {
		text = strconv.Quote(text)
	}
	if _, err := fmt.Fprintf(w, "line %d: %s\n", line.Number, text); err != nil {
		return err
	}
	if err := e.text.write(w, x); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

func (explanationTexts) end(io.Writer) error { return nil }

// explanationText writes explanations as text.
type explanationText struct {
	colour      bool
	layer, head int                    // of the attention that is written; below 0: none, the mean of the heads
	maps        encoders.AttentionMaps // that may be asked for
}

// newExplanationText makes the text of flags for a model with attention maps. It is coloured if out is a terminal.
func newExplanationText(out io.Writer, f explainFlags, attention encoders.AttentionMaps) *explanationText {
	colour := isTerminal(out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	if f.noAttention {
		attention = encoders.AttentionMaps{}
	}
	return &explanationText{colour, f.layer, f.head, attention}
}

const barCells = 20 // of the longest bar

// write writes all that the explanation has to w.
func (t *explanationText) write(w io.Writer, x predict.Explanation) error {
	var out strings.Builder
	for _, task := range slices.Sorted(maps.Keys(x.Prediction.Tasks)) {
		for _, head := range slices.Sorted(maps.Keys(x.Prediction.Tasks[task])) {
			answer, err := json.Marshal(x.Prediction.Tasks[task][head])
			if err != nil {
				return err
			}
			fmt.Fprintf(&out, "%s: %s\n", nameOf(task, head), answer)
		}
	}
	if n := x.Prediction.Truncated; n > 0 {
		fmt.Fprintf(&out, "%d tokens were not read\n", n)
	}
	for _, r := range x.Readings {
		for b, w := range r.Windows {
			where := ""
			if len(r.Windows) > 1 {
				where = fmt.Sprintf(", window %d of %d", b+1, len(r.Windows))
			}
			t.answers(&out, x, w, where)
			t.weights(&out, w, where)
			t.lenses(&out, w, where)
			t.attention(&out, r, w, where)
		}
	}
	for _, task := range slices.Sorted(maps.Keys(x.FusionFigures)) {
		fmt.Fprintf(&out, "\n%s: the fusion's figures: %.3f\n", task, x.FusionFigures[task])
	}
	for _, note := range x.Notes {
		fmt.Fprintf(&out, "\nnote: %s\n", note)
	}
	_, err := io.WriteString(w, out.String())
	return err
}

// nameOf is the name of a head in the text: that of its task where both have one.
func nameOf(task, head string) string {
	if task == head {
		return task
	}
	return task + "/" + head
}

// answers writes a table of attributions for each answer.
func (t *explanationText) answers(out *strings.Builder, x predict.Explanation, w predict.Window, where string) {
	for _, task := range slices.Sorted(maps.Keys(w.Answers)) {
		for _, head := range slices.Sorted(maps.Keys(w.Answers[task])) {
			for _, a := range w.Answers[task][head] {
				fmt.Fprintf(out, "\n%s%s: %q", nameOf(task, head), where, a.Label)
				if words := x.Prediction.Words; a.Word != nil && *a.Word < len(words) {
					at := words[*a.Word]
					fmt.Fprintf(out, " of the word %q", x.Prediction.Text[at.Start:at.End])
				}
				fmt.Fprintf(out, ", logit %.3f", a.Logit)
				if a.Baseline != nil {
					fmt.Fprintf(out, ", of the baseline %.3f", *a.Baseline)
				}
				out.WriteByte('\n')
				t.attribution(out, w.Tokens, a)
			}
		}
	}
}

// attribution writes what each token adds to an answer, with a bar of integrated gradients, or of gradient × input.
func (t *explanationText) attribution(out *strings.Builder, tokens []predict.Token, a predict.Attribution) {
	if a.GradientInput == nil {
		return
	}
	names, width := namesOf(tokens)
	drawn, header := a.GradientInput, fmt.Sprintf("  %s  gradient×input", pad("token", width))
	if a.IntegratedGradients != nil {
		drawn, header = a.IntegratedGradients, header+"  integrated"
	}
	out.WriteString(header + "\n")
	largest := 0.0
	for _, v := range drawn {
		largest = math.Max(largest, math.Abs(v))
	}
	for i, name := range names {
		line := fmt.Sprintf("  %s  %14.4f", name, a.GradientInput[i])
		if a.IntegratedGradients != nil {
			line += fmt.Sprintf("  %10.4f", a.IntegratedGradients[i])
		}
		out.WriteString(strings.TrimRight(line+"  "+t.bar(drawn[i], largest), " ") + "\n")
	}
}

// bar returns a bar of + or - for a value.
func (t *explanationText) bar(v, largest float64) string {
	if largest == 0 {
		return ""
	}
	cells := int(math.Round(math.Abs(v) / largest * barCells))
	sign, colour := "+", "32"
	if v < 0 {
		sign, colour = "-", "31"
	}
	text := strings.Repeat(sign, cells)
	if t.colour && cells > 0 {
		return "\x1b[" + colour + "m" + text + "\x1b[0m"
	}
	return text
}

// weights writes the fusion's weight of each token, a column for each task.
func (t *explanationText) weights(out *strings.Builder, w predict.Window, where string) {
	tasks := slices.Sorted(maps.Keys(w.Fusion))
	if len(tasks) == 0 {
		return
	}
	names, width := namesOf(w.Tokens)
	fmt.Fprintf(out, "\nweights of the fusion%s\n  %s", where, pad("token", width))
	for _, task := range tasks {
		fmt.Fprintf(out, "  %8s", task)
	}
	out.WriteByte('\n')
	for i, name := range names {
		out.WriteString("  " + name)
		for _, task := range tasks {
			fmt.Fprintf(out, "  %*.4f", max(8, uniseg.StringWidth(task)), w.Fusion[task][i])
		}
		out.WriteByte('\n')
	}
}

// lenses writes a line for each token's lens, as wide as the text: the centre, and what is within one aperture of it.
func (t *explanationText) lenses(out *strings.Builder, w predict.Window, where string) {
	const columns = 40
	names, width := namesOf(w.Tokens)
	for _, task := range slices.Sorted(maps.Keys(w.Lenses)) {
		for _, head := range slices.Sorted(maps.Keys(w.Lenses[task])) {
			lens := w.Lenses[task][head]
			for l := range lens.Centre {
				fmt.Fprintf(out, "\nlens %d of %s%s, from the first token to the last\n  %s  centre  aperture\n", l+1,
					nameOf(task, head), where, pad("token", width))
				for i, name := range names {
					centre, aperture := float64(lens.Centre[l][i]), float64(lens.Aperture[l][i])
					curve := make([]byte, columns)
					for k := range curve {
						curve[k] = '.'
						if math.Abs(float64(k)/(columns-1)-centre) <= aperture {
							curve[k] = '-'
						}
					}
					curve[min(columns-1, max(0, int(math.Round(centre*(columns-1)))))] = 'o'
					fmt.Fprintf(out, "  %s  %6.3f  %8.3f  %s\n", name, centre, aperture, curve)
				}
			}
		}
	}
}

// namesOf returns the tokens, each with blanks up to the same width.
func namesOf(tokens []predict.Token) (names []string, width int) {
	width = len("token")
	for _, token := range tokens {
		width = max(width, uniseg.StringWidth(token.Token))
	}
	for _, token := range tokens {
		names = append(names, pad(token.Token, width))
	}
	return names, width
}

// pad returns a text with blanks up to a width of columns.
func pad(text string, width int) string {
	return text + strings.Repeat(" ", max(0, width-uniseg.StringWidth(text)))
}

const (
	mostLinks  = 12 // of an attention map that are listed
	heatTokens = 24 // of the longest text whose map is written as a table
)

// attention writes the attention map of the flags, or says what there is.
func (t *explanationText) attention(out *strings.Builder, r predict.Reading, w predict.Window, where string) {
	if t.layer < 0 && t.maps.Layers > 0 {
		fmt.Fprintf(out, "\nattention of %s%s: %d layers of %d heads; --layer and --head write one\n",
			strings.Join(r.Tasks, ", "), where, t.maps.Layers, t.maps.Heads)
	}
	if len(w.Attention) == 0 {
		return
	}
	of := fmt.Sprintf("layer %d, head %d", t.layer, t.head)
	if t.head < 0 {
		of = fmt.Sprintf("layer %d, the mean of its heads", t.layer)
	}
	fmt.Fprintf(out, "\nattention of %s%s, %s\n", strings.Join(r.Tasks, ", "), where, of)
	weights := attentionMap(w.Attention[t.layer], t.head)
	names, _ := namesOf(w.Tokens)
	if len(names) <= heatTokens {
		writeHeat(out, names, weights)
	}
	writeLinks(out, w.Tokens, weights)
}

// attentionMap returns the map [T T] of a head, below 0 the mean of all.
func attentionMap(heads [][][]float32, head int) [][]float32 {
	if head >= 0 {
		return heads[head]
	}
	mean := make([][]float32, len(heads[0]))
	for i := range mean {
		mean[i] = make([]float32, len(heads[0]))
		for _, one := range heads {
			for j, v := range one[i] {
				mean[i][j] += v / float32(len(heads))
			}
		}
	}
	return mean
}

// writeHeat writes a map as a table in per cent: a row for each token that reads, a column for each that is read, by
// its number.
func writeHeat(out *strings.Builder, names []string, weights [][]float32) {
	out.WriteString("  in %: a token reads those in its row\n")
	for i, name := range names {
		fmt.Fprintf(out, "  %2d %s", i+1, name)
		for _, v := range weights[i] {
			fmt.Fprintf(out, " %3.0f", 100*v)
		}
		out.WriteByte('\n')
	}
}

// writeLinks lists the largest weights.
func writeLinks(out *strings.Builder, tokens []predict.Token, weights [][]float32) {
	type link struct {
		from, to int
		weight   float32
	}
	var all []link
	for i, row := range weights {
		for j, v := range row {
			all = append(all, link{i, j, v})
		}
	}
	slices.SortStableFunc(all, func(a, b link) int { return cmp.Compare(b.weight, a.weight) })
	out.WriteString("  strongest:\n")
	for _, l := range all[:min(mostLinks, len(all))] {
		fmt.Fprintf(out, "  %.3f  %s (%d) reads %s (%d)\n", l.weight, tokens[l.from].Token, l.from+1,
			tokens[l.to].Token, l.to+1)
	}
}
