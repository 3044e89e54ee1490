package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments"
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
words; they are read from stdin if no file is named. A line that cannot be read is answered by an error in its place.`,
		Example: `  echo 'play adele on spotify' | jenga predict runs/snips
  jenga predict runs/snips texts.jsonl > answers.jsonl`,
		Args: between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			run, err := experiments.OpenRun(args[0])
			if err != nil {
				return err
			}
			predictor := run.Predictor()
			return c.eachText(cmd.Context(), args[1:], func(examples []*corpus.Example) ([]any, error) {
				answers, err := predictor.Answer(examples)
				return anys(answers), err
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

// eachText reads texts from the file that args names, or stdin, and writes what answer gives for each, a JSON line a text.
func (c *commands) eachText(ctx context.Context, args []string, answer func([]*corpus.Example) ([]any, error)) error {
	in := c.in
	if len(args) > 0 {
		file, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	reader := bufio.NewReaderSize(in, 1<<16)
	out := bufio.NewWriter(c.out)
	defer out.Flush()

	wrong := false
	for number, ended := 0, false; !ended; {
		if err := ctx.Err(); err != nil {
			return err
		}

		// as many lines as are there
		var examples []*corpus.Example
		var lines []any // an errorLine, or nil for the next example's answer
		for len(examples) < batchTexts && !ended && (len(lines) == 0 || reader.Buffered() > 0) {
			line, err := readLine(reader)
			if errors.Is(err, io.EOF) {
				ended = true
				break
			}
			number++
			if err != nil {
				return fmt.Errorf("line %d: %w", number, err)
			}
			if strings.TrimSpace(line) == "" {
				continue
			}
			e, err := experiments.Input(line, number)
			if err != nil {
				wrong = true
				lines = append(lines, errorLine{err.Error()})
				continue
			}
			examples, lines = append(examples, e), append(lines, nil)
		}

		// their answers
		var answers []any
		if len(examples) > 0 {
			var err error
			if answers, err = answer(examples); err != nil {
				return err
			}
		}
		for _, line := range lines {
			if line == nil {
				line, answers = answers[0], answers[1:]
			}
			if err := writeLine(out, line); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
	if wrong {
		return errAnswered
	}
	return nil
}

// readLine reads a line without its end; io.EOF where there is none.
func readLine(r *bufio.Reader) (string, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return "", fmt.Errorf("longer than %d bytes", maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF) && len(line) > 0, err == nil:
			return strings.TrimRight(string(line), "\r\n"), nil
		}
		return "", err
	}
}
