package cli

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/rivo/uniseg"
	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/experiments/serve/page"
	"github.com/jenga-nlp/jenga/internal/printable"
	"github.com/jenga-nlp/jenga/predict"
)

type explainFlags struct {
	text                     string // "-": those of stdin
	paired, offsetsSet       bool   // the flags are there
	pair, html               string
	options                  predict.ExplainOptions
	tasks                    tasksFlag
	layer, head              int // of the attention map that is written, from 0; below 0: none, the mean of the heads
	json                     bool
	noAttention, noGradients bool
}

func (c *commands) explainCommand() *cobra.Command {
	var f explainFlags
	cmd := &cobra.Command{
		Use:   "explain RUN TEXT",
		Short: "Explain the predictions for a text: gradients, attention, fusion weights, lenses",
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
	flags.IntVar(&f.options.Steps, "steps", 0,
		"integrated gradients over `N` points; 0: none. 50 suffice for most texts")
	flags.BoolVar(&f.noAttention, "no-attention", false, "leave the attention maps out")
	flags.BoolVar(&f.noGradients, "no-gradients", false, "leave the gradients out")
	flags.IntVar(&f.layer, "layer", -1, "write the attention of `LAYER`, from 0, the mean of its heads")
	flags.IntVar(&f.head, "head", -1, "with --layer, that of `HEAD` alone, from 0")
	flags.IntVar(&f.options.MaxTokens, "max-tokens", predict.DefaultExplainTokens, "most `TOKENS` of a text")
	flags.BoolVar(&f.json, "json", false, "write JSON")
	flags.StringVar(&f.html, "html", "",
		"write a web page to `FILE`, - for stdout, which needs no other; it counts in utf16")
	offsetsFlag(cmd, &f.options.Unit)
	return cmd
}

func (f explainFlags) check() error {
	switch {
	case f.options.Steps < 0 || f.options.Steps > predict.MaxSteps:
		return usageErrorf("--steps %d: want a number from 0 to %d", f.options.Steps, predict.MaxSteps)
	case f.options.Steps > 0 && f.noGradients:
		return usageErrorf("--steps and --no-gradients: want one of the two")
	case f.options.MaxTokens < 1:
		return usageErrorf("--max-tokens %d: want a number from 1 on", f.options.MaxTokens)
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
	case f.html != "" && f.offsetsSet && f.options.Unit != corpus.UTF16:
		return usageErrorf("--offsets %v: web pages count in utf16; leave it out", f.options.Unit)
	case f.text == stdio && f.html != "":
		return usageErrorf("--html: a page has one explanation; want a text in place of -")
	}
	return nil
}

func (c *commands) explain(ctx context.Context, f explainFlags, folder string) error {
	if err := f.check(); err != nil {
		return err
	}
	opened, model, tasks, err := openModel(ctx, folder, machineFlags{}, f.tasks, predict.Options{})
	if err != nil {
		return err
	}
	defer model.Close()
	maps := opened.Model.Encoder.Describe().Attention
	if f.layer >= maps.Layers || f.head >= maps.Heads {
		return usageErrorf("--layer %d, --head %d: the encoder has %d layers of %d heads, counted from 0", f.layer,
			max(0, f.head), maps.Layers, maps.Heads)
	}
	c.warn(opened.Warnings)
	defer func() { c.warn(model.TextWarnings()) }()
	o := &f.options
	o.Form.Tasks, o.Rows, o.Gradients = tasks, true, !f.noGradients
	// a text without --layer names the number of maps alone
	o.Attention = !f.noAttention && (f.layer >= 0 || f.json || f.html != "")
	if f.html != "" {
		o.Unit, o.Top = corpus.UTF16, 5 // as the page of a server shows
	}
	if f.noAttention {
		maps = encoders.AttentionMaps{}
	}
	var output lineOutput[predict.Explanation] = explanationText{c.colours(), f.layer, f.head, maps, c.log}
	if f.json {
		output = jsonLines[predict.Explanation]{newPassedFields("all")}
	}
	from := textInput{columns: inputs.ColumnsOf(opened.Data, tasks...), batch: 1}
	if f.text != stdio {
		return c.explainText(ctx, model, f, from.columns, output)
	}
	return eachText(ctx, c, from, func(lines []inputs.Line) ([]predict.Explanation, error) {
		line := &lines[0]
		x, err := model.Explain(ctx, *o, line.Example)
		var refused *predict.ExampleError
		var long *predict.LengthError
		if errors.As(err, &refused) || errors.As(err, &long) {
			line.Err, err = err, nil
		}
		x.Prediction.Line, x.Prediction.Fields = line.Number, line.Fields
		return []predict.Explanation{x}, err
	}, output)
}

func (c *commands) explainText(ctx context.Context, model *predict.Model, f explainFlags, columns inputs.Columns,
	output lineOutput[predict.Explanation]) error {
	columns.Missing = nil // no column has the texts
	fields := map[string]any{"text": f.text}
	if f.paired {
		fields["pair"] = f.pair
	}
	line, err := inputs.Object(fields, corpus.Place{}, columns)
	if err != nil {
		return err
	}
	bar := c.newBar("", f.options.Steps > 0)
	defer bar.clear()
	f.options.Progress = func(done, of int) {
		if ctx.Err() == nil { // else the bar is gone
			bar.reach(done, of)
		}
	}
	x, err := model.Explain(ctx, f.options, line.Example)
	if err != nil {
		return err
	}
	if f.json || f.html == "" {
		if err := output.write(raw(c.out), line, x); err != nil || f.html == "" {
			return err
		}
	}
	return c.writePage(f.html, x)
}

// writePage writes an explanation as a web page. A file is complete or as it was; other outputs, as a pipe, are written
// to directly.
func (c *commands) writePage(name string, x predict.Explanation) error {
	if name == stdio {
		return page.Standalone(raw(c.out), x)
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

// explanationText writes explanations as text. Errors of lines go to log.
type explanationText struct {
	colour      bool
	layer, head int                    // of the attention that is written; below 0: none, the mean of the heads
	maps        encoders.AttentionMaps // that may be asked for
	log         io.Writer
}

// write writes the explanation of a line after its number and text, which is quoted if a terminal would not show it as
// it is; without a number the explanation alone.
func (t explanationText) write(w io.Writer, line inputs.Line, x predict.Explanation) error {
	if line.Err != nil {
		_, err := fmt.Fprintln(t.log, line.Err)
		return err
	}
	var out strings.Builder
	if line.Number > 0 {
		text := x.Prediction.Text
		if !printable.IsLine(text) {
			text = strconv.Quote(text)
		}
		fmt.Fprintf(&out, "line %d: %s\n", line.Number, text)
	}
	for name, answer := range byHead(x.Prediction.Tasks) {
		fmt.Fprintf(&out, "%s: ", name)
		if err := writeLine(&out, answer); err != nil {
			return err
		}
	}
	if n := x.Prediction.Truncated; n > 0 {
		fmt.Fprintf(&out, "%d tokens were not read\n", n)
	}
	for _, r := range x.Readings {
		for b, w := range r.Windows {
			w.Tokens = shownTokens(w.Tokens)
			where := ""
			if len(r.Windows) > 1 {
				where = fmt.Sprintf(", window %d of %d", b+1, len(r.Windows))
			}
			t.answers(&out, x.Prediction, w, where)
			writeWeights(&out, w, where)
			writeLenses(&out, w, where)
			t.attention(&out, w, strings.Join(r.Tasks, ", ")+where)
		}
	}
	for _, task := range slices.Sorted(maps.Keys(x.FusionFigures)) {
		fmt.Fprintf(&out, "\n%s: the fusion's figures: %.3f\n", task, x.FusionFigures[task])
	}
	for _, note := range x.Notes {
		fmt.Fprintf(&out, "\nnote: %s\n", note)
	}
	if line.Number > 0 {
		out.WriteByte('\n')
	}
	_, err := io.WriteString(w, out.String())
	return err
}

func (explanationText) end(io.Writer) error { return nil }

// byHead returns what tasks have for heads, in the order of their names, with the name of a head in the text: that of
// its task where both have one.
func byHead[T any](tasks map[string]map[string]T) iter.Seq2[string, T] {
	return func(yield func(string, T) bool) {
		for _, task := range slices.Sorted(maps.Keys(tasks)) {
			for _, head := range slices.Sorted(maps.Keys(tasks[task])) {
				name := task + "/" + head
				if task == head {
					name = task
				}
				if !yield(name, tasks[task][head]) {
					return
				}
			}
		}
	}
}

// shownTokens returns tokens without the characters that a terminal obeys, which a vocabulary may have.
func shownTokens(tokens []predict.Token) []predict.Token {
	tokens = slices.Clone(tokens)
	for i := range tokens {
		tokens[i].Token = string(printable.Escape([]byte(tokens[i].Token)))
	}
	return tokens
}

// writeTokens writes a line for each token, with its text and its cells, under a header of these.
func writeTokens(out *strings.Builder, tokens []predict.Token, header string, cells func(token int) string) {
	width := len("token")
	for _, token := range tokens {
		width = max(width, uniseg.StringWidth(token.Token))
	}
	write := func(token, cells string) {
		blanks := strings.Repeat(" ", width-uniseg.StringWidth(token))
		out.WriteString(strings.TrimRight("  "+token+blanks+"  "+cells, " ") + "\n")
	}
	write("token", header)
	for i, token := range tokens {
		write(token.Token, cells(i))
	}
}

// answers writes what each token adds to each answer, with a bar of integrated gradients, or of gradient × input.
func (t explanationText) answers(out *strings.Builder, p predict.Prediction, w predict.Window, where string) {
	for name, answers := range byHead(w.Answers) {
		for _, a := range answers {
			fmt.Fprintf(out, "\n%s%s: %q", name, where, a.Label)
			if a.Word != nil && *a.Word < len(p.Words) {
				at := p.Words[*a.Word]
				fmt.Fprintf(out, " of the word %q", p.Text[at.Start:at.End])
			}
			fmt.Fprintf(out, ", logit %.3f", a.Logit)
			if a.Baseline != nil {
				fmt.Fprintf(out, ", of the baseline %.3f", *a.Baseline)
			}
			out.WriteByte('\n')
			if a.GradientInput == nil {
				continue
			}
			drawn, header := a.GradientInput, "gradient×input"
			if a.IntegratedGradients != nil {
				drawn, header = a.IntegratedGradients, header+"  integrated"
			}
			largest := max(slices.Max(drawn), -slices.Min(drawn))
			writeTokens(out, w.Tokens, header, func(i int) string {
				cells := fmt.Sprintf("%14.4f", a.GradientInput[i])
				if a.IntegratedGradients != nil {
					cells += fmt.Sprintf("  %10.4f", a.IntegratedGradients[i])
				}
				return cells + "  " + t.bar(drawn[i], largest)
			})
		}
	}
}

func (t explanationText) bar(v, largest float64) string {
	const longest = 20 // characters
	if largest == 0 {
		return ""
	}
	cells := int(math.Round(math.Abs(v) / largest * longest))
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

// writeWeights writes the fusion's weight of each token, a column for each task.
func writeWeights(out *strings.Builder, w predict.Window, where string) {
	tasks := slices.Sorted(maps.Keys(w.Fusion))
	if len(tasks) == 0 {
		return
	}
	header := ""
	for _, task := range tasks {
		header += fmt.Sprintf("%8s  ", task)
	}
	fmt.Fprintf(out, "\nweights of the fusion%s\n", where)
	writeTokens(out, w.Tokens, header, func(i int) string {
		cells := ""
		for _, task := range tasks {
			cells += fmt.Sprintf("%*.4f  ", max(8, uniseg.StringWidth(task)), w.Fusion[task][i])
		}
		return cells
	})
}

// writeLenses writes a line for each token's lens, as wide as the text: the centre, and what is within one aperture of
// it.
func writeLenses(out *strings.Builder, w predict.Window, where string) {
	const columns = 40
	for name, lens := range byHead(w.Lenses) {
		for l := range lens.Centre {
			fmt.Fprintf(out, "\nlens %d of %s%s, from the first token to the last\n", l+1, name, where)
			writeTokens(out, w.Tokens, "centre  aperture", func(i int) string {
				centre, aperture := float64(lens.Centre[l][i]), float64(lens.Aperture[l][i])
				curve := make([]byte, columns)
				for k := range curve {
					curve[k] = '.'
					if math.Abs(float64(k)/(columns-1)-centre) <= aperture {
						curve[k] = '-'
					}
				}
				curve[min(columns-1, max(0, int(math.Round(centre*(columns-1)))))] = 'o'
				return fmt.Sprintf("%6.3f  %8.3f  %s", centre, aperture, curve)
			})
		}
	}
}

// attention writes the attention map of the flags, or says what there is.
func (t explanationText) attention(out *strings.Builder, w predict.Window, what string) {
	const mostLinks, mostRead = 12, 24 // links that are listed, and tokens of a text whose map is a table
	if t.layer < 0 && t.maps.Layers > 0 {
		fmt.Fprintf(out, "\nattention of %s: %d layers of %d heads; --layer and --head write one\n", what,
			t.maps.Layers, t.maps.Heads)
	}
	if len(w.Attention) == 0 {
		return
	}
	heads, of := w.Attention[t.layer], fmt.Sprintf("layer %d, the mean of its heads", t.layer)
	if t.head >= 0 {
		heads, of = heads[t.head:t.head+1], fmt.Sprintf("layer %d, head %d", t.layer, t.head)
	}
	fmt.Fprintf(out, "\nattention of %s, %s\n", what, of)
	n := len(w.Tokens)
	weights := make([]float32, n*n) // [T T], the mean of heads
	for i := range weights {
		for _, head := range heads {
			weights[i] += head[i/n][i%n] / float32(len(heads))
		}
	}
	if n <= mostRead {
		writeTokens(out, w.Tokens, "reads those of all lines in their order, in %", func(i int) string {
			row := ""
			for _, v := range weights[i*n : (i+1)*n] {
				row += fmt.Sprintf("%3.0f ", 100*v)
			}
			return row
		})
	}
	strongest := make([]int, n*n)
	for i := range strongest {
		strongest[i] = i
	}
	slices.SortStableFunc(strongest, func(a, b int) int { return cmp.Compare(weights[b], weights[a]) })
	out.WriteString("  strongest:\n")
	for _, l := range strongest[:min(mostLinks, n*n)] {
		fmt.Fprintf(out, "  %.3f  %s (%d) reads %s (%d)\n", weights[l], w.Tokens[l/n].Token, l/n+1, w.Tokens[l%n].Token,
			l%n+1)
	}
}
