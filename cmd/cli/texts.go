package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/predict"
)

// errorLine replaces the output for a line that cannot be read.
type errorLine struct{ predict.Line }

// isError reports whether a line of output is an error.
func isError(line any) bool {
	if p, ok := line.(predicted); ok {
		return p.Err != nil
	}
	_, ok := line.(errorLine)
	return ok
}

const (
	batchTexts = 32       // texts in a batch at most: lines that wait on stdin share one, a single line does not wait
	maxLine    = 16 << 20 // bytes
)

// eachText reads texts and writes what process returns for each.
func (c *commands) eachText(ctx context.Context, from textInput, process func([]predict.Line) ([]any, error),
	output resultWriter) error {
	lines, closeInput, err := from.open(ctx, c.in)
	if err != nil {
		return err
	}
	defer closeInput()
	if from.file == "" && isTerminal(c.in) {
		fmt.Fprintln(c.log, "reading texts from the terminal, one a line; Ctrl-D ends them (Ctrl-Z on Windows)")
	}
	progress, clearBar := c.textBar(from, lines)
	defer clearBar()
	out := bufio.NewWriter(c.out)

	failed, ended := false, false
	for !ended {
		read, err := lines.next()
		if ended = errors.Is(err, io.EOF); err != nil && !ended {
			return fmt.Errorf("%s: %w", cmp.Or(from.file, "stdin"), err)
		}
		for some := range slices.Chunk(read, cmp.Or(from.batch, batchTexts)) {
			if err := ctx.Err(); err != nil {
				return err
			}
			results, err := resultsOf(some, process)
			if err != nil {
				return err
			}
			for _, line := range results {
				failed = failed || isError(line)
				if err := output.write(out, line); err != nil {
					return err
				}
			}
			if err := out.Flush(); err != nil {
				return err
			}
		}
		progress(lines.read())
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if err := output.end(out); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	if failed {
		return errReported
	}
	return nil
}

// manyTexts is how many lines a file has at least that is worth a bar.
const manyTexts = 1000

// textBar returns a function that shows how many lines of a long file were read, if the log is a terminal and the
// output is not, and one that clears the bar.
func (c *commands) textBar(from textInput, lines lineSource) (progress func(read int), clearBar func()) {
	n := 0
	if onTerminal(c.log) && !isTerminal(c.out) {
		n = from.lineCount(lines)
	}
	if n < manyTexts {
		return func(int) {}, func() {}
	}
	bar := newBar(c.log, n)
	return func(read int) { bar.Set(min(read, n)) }, func() { bar.Clear() }
}

// resultsOf returns what process returns for each line, an errorLine for one that could not be read.
func resultsOf(read []predict.Line, process func([]predict.Line) ([]any, error)) ([]any, error) {
	var lines []predict.Line
	for _, line := range read {
		if line.Err == nil {
			lines = append(lines, line)
		}
	}
	var processed []any
	if len(lines) > 0 {
		var err error
		if processed, err = process(lines); err != nil {
			return nil, err
		}
	}
	results := make([]any, len(read))
	for i, line := range read {
		if line.Err != nil {
			results[i] = errorLine{line}
			continue
		}
		results[i], processed = processed[0], processed[1:]
	}
	return results, nil
}

// examplesOf returns the examples of lines.
func examplesOf(lines []predict.Line) []*corpus.Example {
	examples := make([]*corpus.Example, len(lines))
	for i, line := range lines {
		examples[i] = line.Example
	}
	return examples
}
