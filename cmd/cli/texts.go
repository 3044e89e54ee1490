package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/predict"
)

// errorLine replaces the output for a line that cannot be read.
type errorLine struct {
	Error string `json:"error"`
	Line  int    `json:"line"`
}

// isError reports whether a line of output is an error.
func isError(line any) bool {
	if prediction, ok := line.(predict.Prediction); ok {
		return prediction.Err != nil
	}
	_, ok := line.(errorLine)
	return ok
}

const (
	batchTexts = 32       // texts in a batch at most: lines that wait on stdin share one, a single line does not wait
	maxLine    = 16 << 20 // bytes
)

// textInput is where a command reads texts.
type textInput struct {
	file    string          // "" or "-": stdin
	columns predict.Columns // additional names of a text's parts in JSON lines
}

// inputOf returns the input of a command's optional argument FILE.
func inputOf(args []string, columns predict.Columns) textInput {
	if len(args) == 0 || args[0] == "-" {
		return textInput{columns: columns}
	}
	return textInput{args[0], columns}
}

// eachText reads texts and writes what process returns for each, a JSON line a text.
func (c *commands) eachText(ctx context.Context, from textInput, process func([]predict.Line) ([]any, error)) error {
	in, name := c.in, "stdin"
	if from.file != "" {
		name = from.file
		file, err := openTexts(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	lines := texts{reader: bufio.NewReaderSize(interruptible{ctx, in}, 1<<16), columns: from.columns}
	out := bufio.NewWriter(c.out)

	failed := false
	for !lines.ended {
		read, err := lines.next()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		results, err := resultsOf(read, process)
		if err != nil {
			return err
		}
		for _, line := range results {
			failed = failed || isError(line)
			if err := writeLine(out, line); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	if failed {
		return errReported
	}
	return nil
}

// resultsOf returns what process returns for each line, an errorLine for one that could not be read.
func resultsOf(read []inputLine, process func([]predict.Line) ([]any, error)) ([]any, error) {
	var lines []predict.Line
	for _, line := range read {
		if line.err == nil {
			lines = append(lines, line.Line)
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
		if line.err != nil {
			results[i] = errorLine{line.err.Error(), line.Number}
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

// openTexts opens a file of texts.
func openTexts(name string) (*os.File, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%s: no such file", name)
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder; want a file with a text in each line", name)
	}
	return os.Open(name)
}

// inputLine is a line of input, or the error of one that cannot be read.
type inputLine struct {
	predict.Line
	err error
}

// texts reads lines of texts.
type texts struct {
	reader  *bufio.Reader
	columns predict.Columns
	number  int // of the last line
	ended   bool
}

// next returns as many lines as can be read without waiting, without those that are blank.
func (t *texts) next() (lines []inputLine, err error) {
	for len(lines) < batchTexts && (len(lines) == 0 || t.reader.Buffered() > 0) {
		text, err := readLine(t.reader)
		if errors.Is(err, io.EOF) {
			t.ended = true
			return lines, nil
		}
		t.number++
		line := inputLine{predict.Line{Number: t.number}, nil}
		switch {
		case errors.Is(err, errLong):
			line.err = fmt.Errorf("line %d: %w", t.number, err)
		case err != nil:
			return nil, err
		case strings.TrimSpace(text) == "":
			continue
		default:
			if line.Line, line.err = predict.Input(text, t.number, t.columns); line.err != nil {
				line.Number = t.number
			}
		}
		lines = append(lines, line)
	}
	return lines, nil
}

var errLong = fmt.Errorf("longer than %d bytes", maxLine)

// readLine reads a line without its end. It returns io.EOF after the last line, and errLong after skipping a line that
// is too long.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > maxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && (err == nil || errors.Is(err, io.EOF)):
			return "", errLong
		case errors.Is(err, io.EOF) && len(line) > 0, err == nil:
			return strings.TrimRight(string(line), "\r\n"), nil
		}
		return "", err
	}
}

// interruptible is a reader whose Read returns once ctx is done, even if r still blocks.
type interruptible struct {
	ctx context.Context
	r   io.Reader
}

func (i interruptible) Read(p []byte) (int, error) {
	type result struct {
		n   int
		err error
	}
	read := make(chan result, 1)
	go func() {
		n, err := i.r.Read(p)
		read <- result{n, err}
	}()
	select {
	case <-i.ctx.Done():
		return 0, i.ctx.Err()
	case r := <-read:
		return r.n, r.err
	}
}

// readTexts reads a file of texts, lines as predict reads them.
func readTexts(ctx context.Context, name string) ([]*corpus.Example, error) {
	file, err := openTexts(name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	lines := texts{reader: bufio.NewReaderSize(interruptible{ctx, file}, 1<<16)}
	var all []*corpus.Example
	for !lines.ended {
		read, err := lines.next()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, line := range read {
			if line.err != nil {
				return nil, fmt.Errorf("%s: %w", name, line.err)
			}
			all = append(all, line.Example)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no texts", name)
	}
	return all, nil
}
