package cli

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/predict"
)

type embedLine struct {
	IDs    []int32     `json:"ids"`
	Vector []float32   `json:"vector,omitempty"`
	States [][]float32 `json:"states,omitempty"`
}

func (c *commands) embedCommand() *cobra.Command {
	var pool string
	var maxLength int
	var shard shardFlag
	var machine machineFlags
	var data dataFlag
	cmd := &cobra.Command{
		Use:   "embed MODEL [FILE]",
		Short: "Write the encoder's hidden states of texts, a JSON line for each",
		Args:  between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkMaxLength(maxLength); err != nil {
				return err
			}
			input, err := data.input(args[1:], shard)
			if err != nil {
				return err
			}
			open := func(ctx context.Context, name, device string) (*predict.Embedder, error) {
				return predict.OpenEmbedder(ctx, name, maxLength, device)
			}
			embedder, err := openIn(cmd.Context(), machine, open, args[0])
			if err != nil {
				return err
			}
			defer embedder.Close()
			defer func() { c.warn(embedder.Warnings()) }()
			if embedder.Experiment != nil {
				if err := data.asIn(embedder.Experiment, &input); err != nil {
					return err
				}
			}
			return eachText(cmd.Context(), c, input, func(read []inputs.Line) ([]embedLine, error) {
				examples := examplesOf(read)
				states, err := embedder.States(examples)
				if err != nil {
					return nil, err
				}
				lines := make([]embedLine, len(examples))
				for i, e := range examples {
					lines[i].IDs = e.Windows[0].IDs
					if pool == "none" {
						lines[i].States = states[i]
					} else {
						lines[i].Vector = predict.Pool(pool).Of(states[i])
					}
				}
				return lines, nil
			}, jsonLines[embedLine]{})
		},
	}
	oneOfVar(cmd, &pool, "pool", "mean",
		"one vector a text: mean or cls (the first token's); none: all tokens' states", "mean", "cls", "none")
	cmd.Flags().IntVar(&maxLength, "max-length", 0,
		"most `TOKENS` of a text, special ones included; longer texts are truncated (default: the encoder's limit)")
	machine.flag(cmd)
	shard.flag(cmd)
	data.flag(cmd, "")
	return cmd
}

// input returns the input of a command that reads texts without a run's data.
func (f dataFlag) input(args []string, shard shardFlag) (textInput, error) {
	named, err := config.SetData(f, corpus.Format{})
	if err != nil {
		return textInput{}, err
	}
	input := inputOf(args, inputs.ColumnsIn(named))
	input.shard = shard
	return input, cmp.Or(shard.check(input, "jsonl"), f.check(input), input.setFormat(f))
}

// asIn gives an input the columns and the format that the data of a run's tasks has.
func (f dataFlag) asIn(e *config.Experiment, input *textInput) error {
	if err := e.SetData(f); err != nil {
		return err
	}
	var formats []corpus.Format
	for _, task := range e.Tasks {
		formats = append(formats, task.Data.Format)
		formats = slices.AppendSeq(formats, maps.Values(task.Data.Formats))
	}
	input.columns, input.format = inputs.ColumnsIn(formats...), inputs.FormatOf(e, input.file)
	return input.setFormat(f)
}

type tokenizeLine struct {
	IDs     []int32  `json:"ids"`
	Tokens  []string `json:"tokens"`
	Offsets [][2]int `json:"offsets"` // in the text, or in the pair where the type is 1
	TypeIDs []int8   `json:"type_ids"`
}

func (c *commands) tokenizeCommand() *cobra.Command {
	var maxLength int
	var unit corpus.OffsetUnit
	cmd := &cobra.Command{
		Use:   "tokenize MODEL [FILE]",
		Short: "Split texts into the model's tokens, a JSON line for each",
		Args:  between(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkMaxLength(maxLength); err != nil {
				return err
			}
			tokenizer, err := predict.OpenTokenizer(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			input := inputOf(args[1:], inputs.Columns{})
			return eachText(cmd.Context(), c, input, func(read []inputs.Line) ([]tokenizeLine, error) {
				lines := make([]tokenizeLine, len(read))
				for i, line := range read {
					lines[i] = tokenized(line.Example, tokenizer, maxLength, unit)
				}
				return lines, nil
			}, jsonLines[tokenizeLine]{})
		},
	}
	cmd.Flags().IntVar(&maxLength, "max-length", 0,
		"most `TOKENS` of a text, special ones included; longer texts are truncated; 0: no limit")
	offsetsFlag(cmd, &unit)
	return cmd
}

func tokenized(e *corpus.Example, tokenizer corpus.Tokenizer, maxLength int, unit corpus.OffsetUnit) tokenizeLine {
	encoding := tokenizer.Encode(e, maxLength)
	texts := [2]corpus.Offsets{corpus.NewOffsets(e.Text, unit), corpus.NewOffsets(e.Pair, unit)}
	line := tokenizeLine{IDs: encoding.IDs, TypeIDs: encoding.Segments}
	if encoding.TokenTypes != nil {
		line.TypeIDs = encoding.TokenTypes
	}
	for t, id := range encoding.IDs {
		at := texts[encoding.Segments[t]].Span(encoding.Offsets[t])
		line.Tokens = append(line.Tokens, tokenizer.Token(id))
		line.Offsets = append(line.Offsets, [2]int{at.Start, at.End})
	}
	return line
}
