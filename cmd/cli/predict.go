package cli

import (
	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/predict"
)

func (c *commands) predictCommand() *cobra.Command {
	var offsets string
	cmd := &cobra.Command{
		Use:   "predict RUN [FILE]",
		Short: "Predict for all tasks, a JSON line for each text",
		Long: `Predict for all tasks, a JSON line for each text, which is encoded once. Texts are plain lines, or JSON
lines with text, pair or words, or with question and context, or with the column names of the run's data; they are
read from stdin if no file is named. The output has an error in place of a line that cannot be read, and nothing for
an empty one. Tasks trained on pairs of texts are left out for a single text; a pair is an error if no task was
trained on one. truncated is the number of tokens of a long text that were not read; words beyond have the tag null.
Offsets (start, end) count characters (Unicode code points), as in data files, or what --offsets says.`,
		Example: `  echo 'play adele on spotify' | jenga predict runs/snips
  jenga predict runs/snips texts.jsonl > predictions.jsonl`,
		Args: between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			unit, err := offsetUnit(offsets)
			if err != nil {
				return err
			}
			opened, err := predict.Open(args[0])
			if err != nil {
				return err
			}
			defer opened.Close()
			c.warn(opened.Warnings)
			predictor := opened.Predictor()
			predictor.Unit = unit
			defer func() { c.warn(predictor.Warnings()) }()
			return c.eachText(cmd.Context(), args[1:], opened.Columns(),
				func(examples []*corpus.Example) ([]any, error) {
					predictions, err := predictor.Predict(examples)
					return anys(predictions), err
				})
		},
	}
	offsetsFlag(cmd, &offsets)
	return cmd
}

func anys[T any](values []T) []any {
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	return all
}
