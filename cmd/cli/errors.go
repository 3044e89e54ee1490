package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/mistakes"
	"github.com/jenga-nlp/jenga/plugin"
)

type errorsFlags struct {
	splitFlags
	format, out string
	top         int
	all         bool
}

// textFormat is the value of --format for people.
const textFormat = "text"

// errorsFormats are the values of --format, the default first.
var errorsFormats = []string{textFormat, "jsonl", "csv", "tsv"}

func (c *commands) errorsCommand() *cobra.Command {
	var f errorsFlags
	cmd := &cobra.Command{
		Use:   "errors RUN",
		Short: "List what a trained run gets wrong on its dev, test or train split",
		Args:  between(1, 1),
		RunE:  func(cmd *cobra.Command, args []string) error { return c.errors(cmd.Context(), f, args[0]) },
	}
	f.flag(cmd, "split to read", "list the mistakes of this task alone")
	cmd.Flags().IntVar(&f.top, "top", 20, "list at most `N` texts of each head; 0: all")
	cmd.Flags().BoolVar(&f.all, "all", false, "list right answers too")
	oneOfVar(cmd, &f.format, "format", "", "`FORMAT` of the output: text, jsonl, csv or tsv (default by the extension "+
		"of --out, else text)", errorsFormats...)
	cmd.Flags().StringVarP(&f.out, "out", "o", "", "write to `FILE` in place of stdout")
	return cmd
}

// settle sets the default of the format. It returns an error for flags that are invalid.
func (f *errorsFlags) settle() error {
	if err := settleOutput(&f.out, &f.format, errorsFormats); err != nil {
		return err
	}
	if f.top < 0 {
		return usageErrorf("--top %d: want a number from 0 on", f.top)
	}
	if f.out != "" {
		return checkOutput(f.out)
	}
	return nil
}

func (c *commands) errors(ctx context.Context, f errorsFlags, folder string) error {
	if err := f.settle(); err != nil {
		return err
	}
	opened, name, _, err := f.open(ctx, folder)
	if err != nil {
		return err
	}
	defer opened.Close()
	c.warn(opened.Warnings)

	bar := c.newBar(name, f.out != "" || !isTerminal(c.out) || f.format == textFormat)
	heads, err := mistakes.Of(ctx, opened, f.split, f.task, bar.reach)
	bar.clear()
	switch {
	case err != nil:
		return err
	case len(heads) == 0:
		return fmt.Errorf("%s: no task whose mistakes can be listed; want one with labels, tags, spans or numbers",
			folder)
	}
	lists := make([]mistakesList, len(heads))
	for i := range heads {
		lists[i] = f.list(heads[i])
	}
	switch {
	case f.out == "" && f.format != textFormat && isTerminal(c.out): // by c.out, which escapes
		return f.write(c.out, name, lists, false)
	case f.out == "":
		return f.write(raw(c.out), name, lists, c.colours())
	}
	file := &outputFile{name: f.out, format: f.format, log: c.log}
	return file.end(f.write(file, name, lists, false))
}

// mistakesList is a head with those examples that are listed, of so many that may be.
type mistakesList struct {
	mistakes.Head
	of int
}

func (f errorsFlags) list(head mistakes.Head) mistakesList {
	if !f.all {
		head.Judged = slices.DeleteFunc(head.Judged, func(j mistakes.Judged) bool { return j.Right != nil && *j.Right })
	}
	list := mistakesList{head, len(head.Judged)}
	if f.top > 0 && list.of > f.top {
		list.Judged = list.Judged[:f.top]
	}
	return list
}

func (f errorsFlags) write(w io.Writer, name string, heads []mistakesList, colours bool) error {
	switch f.format {
	case textFormat:
		return mistakesText{colours}.write(w, name, heads)
	case "jsonl":
		for _, head := range heads {
			for _, judged := range head.Judged {
				if err := writeLine(w, judged); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return writeMistakesTable(w, f.format, heads)
}

// writeMistakesTable writes a row for each example of each head, as csv or tsv. Labels and other answers are as in data
// files, spans as in jsonl.
func writeMistakesTable(w io.Writer, format string, heads []mistakesList) error {
	names := []string{"task", "head", "file", "line", "entry", "right", "loss", "no_loss", "error", "gold", "predicted",
		"abstained", "probability", "spans", "text", "pair"}
	isPair := func(j mistakes.Judged) bool { return j.Pair != nil }
	if !slices.ContainsFunc(heads, func(h mistakesList) bool { return slices.ContainsFunc(h.Judged, isPair) }) {
		names = names[:len(names)-1] // so that jenga predict reads the file
	}
	rows, err := corpus.NewTableWriter(w, corpus.Format{Type: format}, names)
	if err != nil {
		return err
	}
	for _, head := range heads {
		for _, j := range head.Judged {
			cells := []any{j.Task, j.Head, j.File, whole(j.Line), j.Entry, given(j.Right), given(j.Loss), j.NoLoss,
				given(j.Error), j.Gold, j.Predicted, nil, given(j.Probability), nil, j.Text, given(j.Pair)}
			if j.Abstained {
				cells[11] = "true"
			}
			if j.Spans != nil {
				cells[13] = j.Spans
			}
			if err := rows.Write(cells[:len(names)]); err != nil {
				return fmt.Errorf("--format %s: %s:%d: %w", format, j.File, j.Line, wantLines(err))
			}
		}
	}
	return rows.End()
}

func whole(n int) any { return json.Number(strconv.Itoa(n)) }

// given returns what a pointer points to, as a cell.
func given[T any](p *T) any {
	if p == nil {
		return nil
	}
	switch v := any(*p).(type) {
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return json.Number(strconv.FormatFloat(v, 'g', 6, 64))
	default:
		return v
	}
}

// mistakesText writes mistakes for people.
type mistakesText struct{ colours bool }

func (t mistakesText) write(w io.Writer, name string, heads []mistakesList) error {
	var text strings.Builder
	for i, head := range heads {
		if i > 0 {
			text.WriteByte('\n')
		}
		fmt.Fprintf(&text, "%s, %s: %s\n", shown(head.Task), shown(head.Head.Head),
			summary(head, shown(name)))
		for n, judged := range head.Judged {
			t.one(&text, n+1, judged)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

// summary says how many of a head's examples of a split are wrong, and how many are listed.
func summary(head mistakesList, name string) string {
	by, text := "loss", fmt.Sprintf("%d of %s of %s wrong", head.Wrong, plugin.Count(head.Examples, "text"), name)
	switch {
	case head.Examples == 0:
		return "no labels in " + name
	case head.Numbers:
		by, text = "error", fmt.Sprintf("%s of %s", plugin.Count(head.Examples, "text"), name)
	}
	if head.Spans != nil {
		unit := "spans"
		if head.Words {
			unit = "words"
		}
		counts := []string{fmt.Sprintf("%d right", head.Spans[mistakes.Right])}
		for _, kind := range mistakes.Kinds {
			if n := head.Spans[kind]; n > 0 || !head.Words {
				counts = append(counts, fmt.Sprintf("%d %s", n, kindText(kind)))
			}
		}
		text += fmt.Sprintf("; %s: %s", unit, strings.Join(counts, ", "))
	}
	if n := len(head.Judged); n < head.of {
		which := "those"
		if n == 1 {
			which = "the one"
		}
		text += fmt.Sprintf("; %d of %d listed, %s of the largest %s", n, head.of, which, by)
	}
	return text
}

// kindText names a kind of mistake.
func kindText(kind string) string {
	switch kind {
	case mistakes.Label, mistakes.Boundary:
		return "with a wrong " + kind
	}
	return kind
}

// shownText is how many characters of a text are shown, shownSpans how many lines of its spans.
const shownText, shownSpans = 400, 20

func (t mistakesText) one(out *strings.Builder, number int, j mistakes.Judged) {
	place := corpus.Place{File: j.File, Line: j.Line, Entry: j.Entry}
	fmt.Fprintf(out, "\n%d. %s", number, shown(place.String()))
	switch {
	case j.Error != nil:
		fmt.Fprintf(out, ", error %+.4g", *j.Error)
	case j.Loss != nil:
		fmt.Fprintf(out, ", loss %s", lossText(*j.Loss))
	case j.NoLoss != "":
		fmt.Fprintf(out, ", no loss: %s", shown(j.NoLoss))
	case j.Right != nil:
		out.WriteString(", no loss")
	}
	out.WriteByte('\n')
	if j.Spans == nil {
		fmt.Fprintf(out, "   gold %s, predicted %s", t.paint(green, answerText(j.Gold)),
			t.paint(red, answerText(j.Predicted)))
		if j.Probability != nil {
			fmt.Fprintf(out, " (%.2f)", *j.Probability)
		}
		if j.Abstained {
			out.WriteString(", abstained")
		}
		out.WriteByte('\n')
	}
	for _, s := range j.Spans[:min(len(j.Spans), shownSpans)] {
		fmt.Fprintf(out, "   %s\n", spanText(s))
	}
	if more := len(j.Spans) - shownSpans; more > 0 {
		fmt.Fprintf(out, "   … and %d more\n", more)
	}
	fmt.Fprintf(out, "   %s\n", t.marked(j))
	if j.Pair != nil {
		fmt.Fprintf(out, "   %s\n", shortened(*j.Pair))
	}
}

// spanText describes a span that is wrong.
func spanText(s mistakes.Span) string {
	text := quoted(s.Text)
	switch s.Kind {
	case mistakes.Label:
		return fmt.Sprintf("%s: gold %s, predicted %s", text, shown(s.Gold), shown(s.Predicted))
	case mistakes.Boundary:
		return fmt.Sprintf("%s: %s with a wrong boundary, gold %s", text, shown(s.Gold), quoted(s.GoldText))
	}
	return fmt.Sprintf("%s: %s %s", text, s.Kind, shown(cmp.Or(s.Gold, s.Predicted)))
}

// quoted returns the first characters of a text in quotation marks.
func quoted(text string) string { return `"` + shortened(text) + `"` }

// marked returns the text of an example with the spans that are wrong in colour: gold ones green, predicted ones red.
// Of spans that overlap the later one is on top, so that one within another is seen.
func (t mistakesText) marked(j mistakes.Judged) string {
	characters := []rune(j.Text)
	if !t.colours || len(j.Spans) == 0 {
		return shortened(j.Text)
	}
	shown := min(len(characters), shownText)
	colours := make([]int, shown) // of characters
	for _, s := range j.Spans {
		for at := s.Start; at < min(s.End, shown); at++ {
			if colours[at] = red; s.Kind == mistakes.Missed {
				colours[at] = green
			}
		}
	}
	var text strings.Builder
	for from := 0; from < shown; {
		to := from + 1
		for to < shown && colours[to] == colours[from] {
			to++
		}
		part := plain(string(characters[from:to]))
		if colours[from] != 0 {
			part = t.paint(colours[from], part)
		}
		text.WriteString(part)
		from = to
	}
	if shown < len(characters) {
		text.WriteString(" …")
	}
	return text.String()
}

// shortened returns the first characters of a text, on one line.
func shortened(text string) string {
	if runes := []rune(text); len(runes) > shownText {
		text = string(runes[:shownText]) + " …"
	}
	return plain(text)
}

// plain returns a text on one line, without characters that a terminal would obey. Those that join others, as in
// Devanagari and emoji, or keep them apart, stay.
func plain(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t' || r == '\r':
			return ' '
		case !strconv.IsPrint(r) && r != '\u00a0' && r != '\u200c' && r != '\u200d':
			return '\ufffd'
		}
		return r
	}, text)
}

// answerText writes an answer, as a data file has it, in one line.
func answerText(answer any) string {
	switch v := answer.(type) {
	case nil:
		return ""
	case string:
		return shown(v)
	case []any: // answers to a question
		var texts []string
		for _, one := range v {
			if fields, ok := one.(map[string]any); ok {
				texts = append(texts, quoted(fmt.Sprint(fields["text"])))
			}
		}
		return cmp.Or(strings.Join(texts, " or "), "no answer")
	case []string, []*string:
		var names []string
		for _, name := range listOf(answer) {
			names = append(names, shown(fmt.Sprint(cmp.Or(name, any("")))))
		}
		return cmp.Or(shortened(strings.Join(names, ", ")), "none")
	}
	object, err := json.Marshal(answer) // a number, or an output of another module
	if err != nil {
		return plain(err.Error())
	}
	return shortened(string(object))
}

// Colours of a terminal.
const (
	red   = 31
	green = 32
)

func (t mistakesText) paint(colour int, text string) string {
	if !t.colours {
		return text
	}
	return fmt.Sprintf("\x1b[%dm%s\x1b[0m", colour, text)
}

// colours reports whether stdout shows them.
func (c *commands) colours() bool {
	return isTerminal(c.out) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
