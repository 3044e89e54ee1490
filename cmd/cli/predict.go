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

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/predict"
)

// errorLine stands in the place of a line that cannot be answered.
type errorLine struct {
	Error string `json:"error"`
}

func (c *commands) predictCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "predict RUN [FILE]",
		Short: "Answer all tasks about texts, a JSON line for each",
		Long: `Answer all tasks about texts, one pass of the encoder for each. Texts are plain lines, or JSON lines with text, pair or
words, or with question and context, or by the names that the run's data have for these; they are read from stdin if no
file is named. A line that cannot be read is answered by an error in its place, an empty one not at all. What learned
pairs of texts is left out of the answer to a single one.`,
		Example: `  echo 'play adele on spotify' | jenga predict runs/snips
  jenga predict runs/snips texts.jsonl > answers.jsonl`,
		Args: between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			opened, err := predict.Open(args[0])
			if err != nil {
				return err
			}
			c.warn(opened.Warnings)
			predictor := opened.Predictor()
			defer func() { c.warn(predictor.Warnings()) }()
			return c.eachText(cmd.Context(), args[1:], opened.Columns(),
				func(examples []*corpus.Example) ([]any, error) {
					answers, err := predictor.Predict(examples)
					lines := anys(answers)
					for i, a := range answers {
						if a.Err != nil {
							lines[i] = errorLine{a.Err.Error()}
						}
					}
					return lines, err
				})
		},
	}
}

func anys[T any](values []T) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}

// Texts are answered in batches of at most so many: what waits on stdin goes together, a single line goes at once.
const (
	batchTexts = 32
	maxLine    = 16 << 20 // bytes
)

// eachText reads texts from the file that args names, or stdin, and writes what answer gives for each, a JSON line a
// text. columns are what JSON lines may call them besides.
func (c *commands) eachText(ctx context.Context, args []string, columns predict.Columns,
	answer func([]*corpus.Example) ([]any, error)) error {
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

	wrong := false
	for !lines.ended {
		examples, waiting, err := lines.next()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var answers []any
		if len(examples) > 0 {
			if answers, err = answer(examples); err != nil {
				return err
			}
		}
		for _, line := range waiting {
			if line == nil {
				line, answers = answers[0], answers[1:]
			}
			if _, refused := line.(errorLine); refused {
				wrong = true
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
	if wrong {
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
		return nil, fmt.Errorf("%s: a folder; want a file of texts, a line each", name)
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

// next returns the texts of as many lines as are there, and for each line that is not blank an errorLine, or nil where
// the next of the examples is its text.
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

// readLine reads a line without its end; io.EOF where there is none, errLong when it has read over a long one.
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

// interruptible is a reader that ends with ctx, though what it reads from may wait on.
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
