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

// errorLine replaces the output for a line that cannot be read or predicted.
type errorLine struct {
	Error string `json:"error"`
}

const (
	batchTexts = 32       // texts in a batch at most: lines that wait on stdin share one, a single line does not wait
	maxLine    = 16 << 20 // bytes
)

// eachText reads texts from the file that args names, or stdin, and writes what process returns for each, a JSON line
// a text. columns are additional names of a text's parts in JSON lines.
func (c *commands) eachText(ctx context.Context, args []string, columns predict.Columns,
	process func([]*corpus.Example) ([]any, error)) error {
	in, name := c.in, "stdin"
	if len(args) > 0 {
		name = args[0]
		file, err := openTexts(name)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	lines := texts{reader: bufio.NewReaderSize(interruptible{ctx, in}, 1<<16), columns: columns}
	out := bufio.NewWriter(c.out)

	failed := false
	for !lines.ended {
		examples, waiting, err := lines.next()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var results []any
		if len(examples) > 0 {
			if results, err = process(examples); err != nil {
				return err
			}
		}
		for _, line := range waiting {
			if line == nil {
				line, results = results[0], results[1:]
			}
			if _, isError := line.(errorLine); isError {
				failed = true
			}
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

// texts reads lines of texts.
type texts struct {
	reader  *bufio.Reader
	columns predict.Columns
	number  int // of the last line
	ended   bool
}

// next returns the examples of as many lines as can be read without waiting, and for each line that is not blank an
// errorLine, or nil if the line is the next of the examples.
func (t *texts) next() (examples []*corpus.Example, lines []any, err error) {
	for len(examples) < batchTexts && (len(lines) == 0 || t.reader.Buffered() > 0) {
		line, err := readLine(t.reader)
		if errors.Is(err, io.EOF) {
			t.ended = true
			return examples, lines, nil
		}
		t.number++
		var e *corpus.Example
		switch {
		case errors.Is(err, errLong):
			err = fmt.Errorf("line %d: %w", t.number, err)
		case err != nil:
			return nil, nil, err
		case strings.TrimSpace(line) == "":
			continue
		default:
			e, err = predict.Input(line, t.number, t.columns)
		}
		if err != nil {
			lines = append(lines, errorLine{err.Error()})
			continue
		}
		examples, lines = append(examples, e), append(lines, nil)
	}
	return examples, lines, nil
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
		examples, read, err := lines.next()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for _, line := range read {
			if bad, ok := line.(errorLine); ok {
				return nil, fmt.Errorf("%s: %s", name, bad.Error)
			}
		}
		all = append(all, examples...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no texts", name)
	}
	return all, nil
}
