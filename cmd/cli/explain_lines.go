package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"

	"github.com/jenga-nlp/jenga/experiments/predict"
)

// stdio is the name of stdin in place of a text or file, and of stdout in place of a file that is written.
const stdio = "-"

// explainLines explains the texts of stdin, one after the other, as JSON lines or as text.
func (c *commands) explainLines(ctx context.Context, predictor *predict.Predictor, o predict.ExplainOptions,
	columns predict.Columns, json bool, text *explanationText) error {
	var output resultWriter = explanationTexts{text, c.log}
	if json {
		output = jsonLines{newKept("all")}
	}
	return c.eachText(ctx, textInput{columns: columns, batch: 1}, func(lines []predict.Line) ([]any, error) {
		line := lines[0]
		x, err := predictor.Explain(ctx, o, line.Example)
		var refused *predict.ExampleError
		var long *predict.LengthError
		if errors.As(err, &refused) || errors.As(err, &long) {
			if place := line.Example.Place.String() + ": "; !strings.HasPrefix(err.Error(), place) {
				err = fmt.Errorf("%s%w", place, err)
			}
			line.Err = err
			return []any{errorLine{line}}, nil
		}
		x.Prediction.Line, x.Prediction.Fields = line.Number, line.Fields
		return []any{x}, err
	}, output)
}

// explanationTexts writes explanations as text, each after its line's number and text, which is quoted if a terminal
// would not show it as it is. Errors go to log.
type explanationTexts struct {
	text *explanationText
	log  io.Writer
}

func (e explanationTexts) write(w io.Writer, result any) error {
	if line, ok := result.(errorLine); ok {
		_, err := fmt.Fprintln(e.log, line.Err)
		return err
	}
	x := result.(predict.Explanation)
	text := x.Prediction.Text
	if strings.ContainsFunc(text, unicode.IsControl) {
		text = strconv.Quote(text)
	}
	if _, err := fmt.Fprintf(w, "line %d: %s\n", x.Prediction.Line, text); err != nil {
		return err
	}
	if err := e.text.write(w, x); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

func (explanationTexts) end(io.Writer) error { return nil }
