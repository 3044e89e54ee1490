// Package hugot runs ONNX encoders of any architecture through github.com/knights-analytics/hugot, frozen. It is slow,
// and meant for models that encoders/transformer cannot read.
package hugot

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	_ "github.com/gomlx/gomlx/backends/simplego" // hugot's Go backend
	"github.com/knights-analytics/hugot/backends"
	"github.com/knights-analytics/hugot/options"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/internal/onnx"
	"github.com/jenga-nlp/jenga/nn"
)

func init() { encoders.Register("hugot", Options{Backend: "go"}, New) }

// Options are the keys that may stand beside `type: hugot`.
type Options struct {
	Backend string `yaml:"backend" choice:"go" doc:"what runs the graph"`
}

// encoder is a frozen ONNX graph of any architecture, run by hugot (github.com/knights-analytics/hugot). base_model is
// an .onnx file, or a folder with a model.onnx; beside it are config.json, of which vocab_size and
// max_position_embeddings are used, and the tokenizer:
//
//	model: {base_model: models/roberta/model.onnx, encoder: hugot}
type encoder struct {
	path     string   // of the graph
	files    []string // that it reads
	config   config
	pipeline *backends.BasePipeline
	output   int // index of the graph's output that has the states
	width    int
}

// config is the part of the config.json beside a graph that is read.
type config struct {
	Vocabulary   int `json:"vocab_size"`
	MaxPositions int `json:"max_position_embeddings"`
}

// New opens the graph at env.Model, an .onnx file or a folder with a model.onnx, and runs it once.
func New(o Options, env encoders.Env) (encoders.Encoder, error) {
	if env.Model == "" {
		return nil, errors.New("it has no weights of its own; name an .onnx file as base_model")
	}
	if env.Freeze != "" && env.Freeze != encoders.FreezeNone && env.Freeze != encoders.FreezeAll {
		return nil, encoders.BadOption("freeze", "freeze: %q: all of it is frozen; leave freeze out, or set it to "+
			"\"all\"", env.Freeze)
	}
	if env.LoRA.Rank > 0 {
		return nil, encoders.BadOption("lora", "lora: all of it is frozen; leave lora out")
	}
	path := env.Model
	if stat, err := os.Stat(path); err != nil {
		return nil, err
	} else if stat.IsDir() {
		path = filepath.Join(path, "model.onnx")
	}
	c, err := readConfig(path, env)
	if err != nil {
		return nil, err
	}
	outside, err := onnx.ExternalFiles(path)
	if err != nil {
		return nil, err
	}
	e := &encoder{path: path, config: c, files: append([]string{configOf(path), path}, outside...)}
	if err := e.load(); err != nil {
		return nil, err
	}
	probe := corpus.Tokens{IDs: []int32{0}, Rows: nn.Rows{Starts: []int{0, 1}, Segment: []int8{0}}}
	states, err := e.run(probe, 0)
	if err != nil {
		return nil, err
	}
	e.width = len(states[0])
	return e, nil
}

func configOf(path string) string { return filepath.Join(filepath.Dir(path), "config.json") }

// readConfig reads the config.json beside a graph and checks it against env.
func readConfig(path string, env encoders.Env) (config, error) {
	var c config
	name := configOf(path)
	err := files.ReadJSON(name, files.MaxConfig, &c)
	if errors.Is(err, fs.ErrNotExist) {
		return c, fmt.Errorf("%s: no config.json beside it, which gives vocab_size and max_position_embeddings", path)
	}
	if err != nil {
		return c, err
	}
	switch {
	case c.Vocabulary < 1:
		return c, fmt.Errorf("%s: vocab_size is %d; want at least 1", name, c.Vocabulary)
	case c.MaxPositions < 1:
		return c, fmt.Errorf("%s: max_position_embeddings is %d; want at least 1", name, c.MaxPositions)
	case env.Vocabulary > c.Vocabulary:
		return c, fmt.Errorf("%s: vocab_size is %d, but the tokenizer has %d tokens",
			name, c.Vocabulary, env.Vocabulary)
	case env.MaxLength > c.MaxPositions:
		return c, fmt.Errorf("%s: %w", name, &encoders.LengthError{Max: c.MaxPositions, Length: env.MaxLength})
	}
	return c, nil
}

func (e *encoder) load() (err error) {
	defer e.name(&err)
	o := options.Defaults()
	o.Backend = "GO"
	folder, file := filepath.Split(e.path)
	model := &backends.Model{Path: filepath.Clean(folder), OnnxFilename: file}
	if err := backends.CreateModelBackend(context.Background(), model, o); err != nil {
		return err
	}
	if model.OnnxPath != file { // hugot searches the folders below, too
		first := filepath.Join(folder, model.OnnxPath)
		return fmt.Errorf("hugot finds %s first; move one of the two to another folder", first)
	}
	for _, input := range backends.GetNames(model.InputsMeta) {
		if !slices.Contains([]string{"input_ids", "attention_mask", "token_type_ids"}, input) {
			return fmt.Errorf("the graph has the input %q; want only input_ids, attention_mask and token_type_ids",
				input)
		}
	}
	e.output = max(0, slices.Index(backends.GetNames(model.OutputsMeta), "last_hidden_state"))
	config := backends.PipelineConfig[backends.Pipeline]{Name: e.path}
	e.pipeline, err = backends.NewBasePipeline(context.Background(), config, o, model)
	return err
}

// name turns a panic into an error, and adds the graph's file to errors.
func (e *encoder) name(err *error) {
	if r := recover(); r != nil {
		*err = fmt.Errorf("hugot cannot run this graph: %v", r)
	}
	if *err != nil {
		*err = fmt.Errorf("%s: %w", e.path, *err)
	}
}

// Describe implements encoders.Encoder.
func (e *encoder) Describe() encoders.Description {
	return encoders.Description{Width: e.width, MaxTokens: e.config.MaxPositions, Files: e.files}
}

// Encode implements encoders.Encoder. A graph's sums may depend on a batch's shape, so texts are run one by one.
func (e *encoder) Encode(p *nn.Pass, tokens corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
	if mode.Layers != nn.LastLayer {
		return nil, fmt.Errorf("%s: hugot has the states of the last layer only", e.path)
	}
	if err := encoders.CheckTokens(tokens, e.config.Vocabulary, e.config.MaxPositions); err != nil {
		return nil, err
	}
	states := p.Floats(len(tokens.IDs) * e.width) // [T D]
	for b := range tokens.Rows.Texts() {
		if tokens.Rows.Starts[b] == tokens.Rows.Starts[b+1] {
			continue
		}
		rows, err := e.run(tokens, b)
		if err != nil {
			return nil, err
		}
		for i, row := range rows {
			copy(states[(tokens.Rows.Starts[b]+i)*e.width:], row)
		}
	}
	return [][]float32{states}, nil
}

// run returns the states of text b, which has at least one token.
func (e *encoder) run(tokens corpus.Tokens, b int) (states [][]float32, err error) {
	lo, hi := tokens.Rows.Starts[b], tokens.Rows.Starts[b+1]
	var input backends.TokenizedInput
	types := tokens.Rows.TokenTypes()
	for i := lo; i < hi; i++ {
		input.TokenIDs = append(input.TokenIDs, uint32(tokens.IDs[i]))
		input.TypeIDs = append(input.TypeIDs, uint32(types[i]))
		input.AttentionMask = append(input.AttentionMask, 1)
	}

	defer e.name(&err)
	batch := backends.NewBatch(1)
	batch.Input = []backends.TokenizedInput{input}
	batch.MaxSequenceLength = hi - lo
	if err := backends.CreateInputTensors(batch, e.pipeline.Model, e.pipeline.Runtime); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, batch.Destroy()) }()
	if err := backends.RunSessionOnBatch(context.Background(), batch, e.pipeline); err != nil {
		return nil, err
	}
	texts, ok := batch.OutputValues[e.output].([][][]float32) // [1 T D]
	if !ok || len(texts) != 1 || len(texts[0]) != hi-lo || e.width > 0 && len(texts[0][0]) != e.width {
		return nil, errors.New("the graph's output is not one state per token")
	}
	return texts[0], nil
}
