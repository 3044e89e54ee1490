package predict

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// findModel finds the encoder for the MODEL argument of a command: that of a run, a folder or .onnx file, or a model of
// the Hugging Face cache. e is the experiment of the run, nil for other models.
func findModel(ctx context.Context, name string) (place checkpoint.Encoder, e *config.Experiment, err error) {
	file, saved, err := runfolder.Find(name)
	switch {
	case err == nil:
		about, err := checkpoint.Read(ctx, saved, filepath.Dir(file))
		if err != nil {
			return checkpoint.Encoder{}, nil, orLast(ctx, err, name, filepath.Dir(file))
		}
		e, err = config.ReadTrained(file)
		return about.Encoder, e, err
	case runfolder.Exists(filepath.Join(name, runfolder.ExperimentFile)):
		return checkpoint.Encoder{}, nil, err
	}
	folder, err := config.FindModel(name)
	if folder != "" {
		return checkpoint.Encoder{Folder: folder}, nil, cmp.Or(err, runfolder.CheckEncoder(ctx, folder))
	}
	return checkpoint.Encoder{}, nil, fmt.Errorf("%s: no run, no folder or .onnx file, and no model below "+
		"$JENGA_MODELS or in the Hugging Face cache%s", name, config.ModelHint(name, name))
}

// OpenTokenizer opens the tokenizer of a model or run.
func OpenTokenizer(ctx context.Context, name string) (corpus.Tokenizer, error) {
	place, _, err := findModel(ctx, name)
	if err != nil {
		return nil, err
	}
	tokenizer, err := place.OpenTokenizer()
	if err != nil {
		return nil, err
	}
	return tokenizer, place.CheckRead(tokenizer.Files())
}

// Embedder computes the hidden states of an encoder. It is for one goroutine.
type Embedder struct {
	// Experiment is that of the run whose encoder it is; nil where it is of no run.
	Experiment *config.Experiment

	encoder   encoders.Encoder
	tokenizer corpus.Tokenizer
	maxLength int
	pass      *nn.Pass
	mode      encoders.Mode

	texts, truncated int // examples so far, and those of them that were truncated
}

// OpenEmbedder opens the encoder of a model or run. Texts are truncated at maxLength tokens, for 0 at the
// encoder's limit. The encoder computes on a device: a value of encoders.Env.Device. The caller closes the embedder.
func OpenEmbedder(ctx context.Context, name string, maxLength int, device string) (*Embedder, error) {
	encoder, tokenizer, e, err := openEncoder(ctx, name,
		encoders.Env{MaxLength: maxLength, Freeze: encoders.FreezeAll,
			Params: multitask.EncoderParams(nn.NewParams(0)), Device: device})
	if err != nil {
		return nil, err
	}
	m := newEmbedder(encoder, tokenizer, maxLength)
	m.Experiment = e
	return m, nil
}

func newEmbedder(encoder encoders.Encoder, tokenizer corpus.Tokenizer, maxLength int) *Embedder {
	if maxLength == 0 {
		maxLength = encoder.Describe().MaxTokens
	}
	m := &Embedder{encoder: encoder, tokenizer: tokenizer, maxLength: maxLength, pass: nn.NewPass(0)}
	m.mode.Precision = encoder.Describe().Precision
	return m
}

// SetPrecision is that of Opened.
func (m *Embedder) SetPrecision(precision nn.Precision) (err error) {
	m.mode.Precision, err = PrecisionOf(m.encoder, precision)
	return err
}

// Close releases the files that the encoder holds. The embedder must not be used afterwards.
func (m *Embedder) Close() error { return encoders.Close(m.encoder) }

// Warnings returns a warning if some of the examples so far were truncated.
func (m *Embedder) Warnings() []plugin.Warning {
	if m.truncated == 0 {
		return nil
	}
	return []plugin.Warning{plugin.Warn(plugin.Place{}, "%d of %s %s more than %d tokens and %s truncated: "+
		"a larger %v avoids it, up to the encoder's limit", m.truncated, plugin.Count(m.texts, "text"),
		plugin.Agree(m.truncated, "has", "have"), m.maxLength, plugin.Agree(m.truncated, "is", "are"),
		plugin.Argument("max-length"))}
}

// OpenEncoder opens the encoder of a model or run and its tokenizer. Of env it sets Model and Vocabulary. The caller
// closes the encoder (encoders.Close).
func OpenEncoder(ctx context.Context, name string, env encoders.Env) (encoders.Encoder, corpus.Tokenizer, error) {
	encoder, tokenizer, _, err := openEncoder(ctx, name, env)
	return encoder, tokenizer, err
}

// openEncoder is OpenEncoder that returns the experiment of a run too.
func openEncoder(ctx context.Context, name string, env encoders.Env) (
	encoders.Encoder, corpus.Tokenizer, *config.Experiment, error,
) {
	place, e, err := findModel(ctx, name)
	if err != nil {
		return nil, nil, nil, err
	}
	tokenizer, err := place.OpenTokenizer()
	if err != nil {
		return nil, nil, nil, err
	}
	choice, err := config.EncoderFor(place.Folder)
	if e != nil { // of a run, whose experiment may name the encoder
		choice, err = e.EncoderIn(place.Folder)
	}
	if err != nil {
		return nil, nil, nil, err
	}
	env.Model, env.Vocabulary = filepath.Clean(place.Folder), tokenizer.Size()
	encoder, err := choice.Build(env)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := place.CheckRead(checkpoint.EncoderFiles(encoder, tokenizer)); err != nil {
		encoders.Close(encoder)
		return nil, nil, nil, err
	}
	return encoder, tokenizer, e, nil
}

// States returns the last layer's states [L D] of each example, whose Windows it sets.
func (m *Embedder) States(examples []*corpus.Example) ([][][]float32, error) {
	for _, e := range examples {
		if m.read(m.tokenizer, e) > 0 {
			m.truncated++
		}
	}
	m.texts += len(examples)
	states, err := m.statesOf(examples)
	for i := range states {
		if err := checkFinite(examples[i], states[i]); err != nil {
			return nil, err
		}
	}
	return states, err
}

// checkFinite returns an error for the states [T D] of an example that are not finite.
func checkFinite(e *corpus.Example, states [][]float32) error {
	if !slices.ContainsFunc(states, func(state []float32) bool { return floats.NotFinite(state) >= 0 }) {
		return nil
	}
	bad := &multitask.StatesError{Examples: []*corpus.Example{e}}
	return &ExampleError{bad}
}

// read sets the Windows of an example by a tokenizer, that of m, which may be bounded, and returns the number of tokens
// that are not read. Several goroutines may call it at once.
func (m *Embedder) read(tokenizer corpus.Tokenizer, e *corpus.Example) (truncated int) {
	e.Windows = []corpus.Encoding{tokenizer.Encode(e, m.maxLength)}
	return corpus.Windowing{MaxLength: m.maxLength}.TruncatedTokens(tokenizer, e)
}

// statesOf is States of examples that have their Windows. The states are valid until the next call.
func (m *Embedder) statesOf(examples []*corpus.Example) ([][][]float32, error) {
	batch := corpus.Pack(examples)
	m.pass.Reset(0)
	layers, err := m.encoder.Encode(m.pass, batch.Tokens, m.mode)
	if err != nil {
		return nil, err
	}
	width := m.encoder.Describe().Width
	all := make([][][]float32, len(examples))
	for b := range examples {
		for t := batch.Tokens.Rows.Starts[b]; t < batch.Tokens.Rows.Starts[b+1]; t++ {
			all[b] = append(all[b], layers[len(layers)-1][t*width:(t+1)*width])
		}
	}
	return all, nil
}

// Embedding is a vector for a text, or an error.
type Embedding struct {
	Err       error     `json:"-"`      // there is no vector
	Vector    []float32 `json:"vector"` // [D]
	Tokens    int       `json:"tokens"` // that were read, special ones included
	Truncated int       `json:"truncated"`
}

type stateReading struct {
	*corpus.Example
	pool      Pool
	embedding Embedding
}

// Embed returns a vector for each example, from the encoder's last states. Texts are truncated at the encoder's limit.
// An example has an error of its own as in PredictExamples.
func (m *Model) Embed(ctx context.Context, pool Pool, examples ...*corpus.Example) ([]Embedding, error) {
	if err := pool.Check(); err != nil {
		return nil, &CallError{err}
	}
	all := make([]*stateReading, len(examples))
	for i, e := range examples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		own := *e // which the queue may read after ctx has ended
		own.Words = slices.Clone(e.Words)
		all[i] = &stateReading{Example: &own, pool: pool}
		to := &all[i].embedding
		if to.Err = checkTexts(&own); to.Err != nil {
			own.Windows = nil
			continue
		}
		tokenizer, done, err := m.reader.bound(ctx, m.embedder.tokenizer, m.maxTokens)
		if err != nil {
			return nil, err
		}
		to.Truncated = m.embedder.read(tokenizer, &own)
		done()
		if err := readError(tokenizer); err != nil {
			return nil, err
		}
		if to.Tokens = own.Tokens(); m.maxTokens > 0 && to.Tokens > m.maxTokens {
			*to, own.Windows = Embedding{Err: &LengthError{own.Place, to.Tokens, m.maxTokens}}, nil
		} else if to.Tokens > maxBatchTokens {
			if err := m.run.machine.FitsText(m.run.Model, multitask.SizeOf(&own)); err != nil {
				*to, own.Windows = Embedding{Err: refused(&own, err)}, nil
			}
		}
	}
	if err := m.embedding.Do(ctx, all...); err != nil {
		return nil, err
	}
	embeddings := make([]Embedding, len(all))
	for i, r := range all {
		embeddings[i] = r.embedding
	}
	return embeddings, nil
}

func (m *Model) embedAll(all []*stateReading) error {
	all = slices.DeleteFunc(slices.Clone(all), func(r *stateReading) bool { return r.embedding.Err != nil })
	if len(all) == 0 {
		return nil
	}
	examples := make([]*corpus.Example, len(all))
	for i, r := range all {
		examples[i] = r.Example
	}
	states, err := m.embedder.statesOf(examples)
	for i := range states {
		if bad := checkFinite(all[i].Example, states[i]); bad != nil {
			all[i].embedding = Embedding{Err: bad}
			continue
		}
		all[i].embedding.Vector = all[i].pool.Of(states[i])
	}
	return err
}

// Pool makes one vector [D] of the states [T D] of a text's tokens.
type Pool string

// Pools.
const (
	MeanPool Pool = "mean" // of all tokens
	ClsPool  Pool = "cls"  // the first token's state
)

// Check returns an error for a name that is none of the pools.
func (p Pool) Check() error {
	if p != MeanPool && p != ClsPool {
		return fmt.Errorf("pool %q: want %s or %s", string(p), MeanPool, ClsPool)
	}
	return nil
}

// Of returns the vector of states; those of a mean are summed in their order.
func (p Pool) Of(states [][]float32) []float32 {
	vector := make([]float32, len(states[0]))
	if p == ClsPool {
		copy(vector, states[0])
		return vector
	}
	for _, state := range states {
		for d, v := range state {
			vector[d] += v / float32(len(states))
		}
	}
	return vector
}
