// Package bench measures how fast this machine trains an encoder and encodes texts with it, and how fast its kernels
// multiply. Times are the best of a few rounds: other load on the machine only adds to them.
package bench

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/encoders/transformer"
	"github.com/jenga-nlp/jenga/fusion"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/predict"
	"github.com/jenga-nlp/jenga/tasks"
)

// Size makes an encoder of random weights, with the sizes of a published one.
type Size func(encoders.Env) (encoders.Encoder, error)

var sizes = map[string]Size{
	"tiny":       BERT(2, 128, 2, 512),    // Turc et al. 2019
	"minilm":     BERT(6, 384, 12, 1536),  // Wang et al. 2020
	"distilbert": BERT(6, 768, 12, 3072),  // Sanh et al. 2019
	"bert":       BERT(12, 768, 12, 3072), // Devlin et al. 2019, base
	"bilstm":     biLSTM(2, 256),          // the Focus Mechanism's
}

// SizeNames returns the names of the encoders of random weights that OpenNetwork makes.
func SizeNames() []string { return slices.Sorted(maps.Keys(sizes)) }

// BERT returns a size in BERT's layout.
func BERT(layers, width, heads, feedForward int) Size {
	o := transformer.Options{
		Layers: layers, Width: width, Heads: heads, FeedForward: feedForward, MaxPositions: positions,
		InitializerRange: 0.02,
	}
	return func(env encoders.Env) (encoders.Encoder, error) {
		return encoders.Registry().Build("transformer", o, env)
	}
}

// biLSTM returns a size of bidirectional LSTM layers; width is that of the embeddings and of each direction.
func biLSTM(layers, width int) Size {
	o := encoders.BiLSTMOptions{Embedding: width, Layers: layers, Hidden: width}
	return func(env encoders.Env) (encoders.Encoder, error) {
		return encoders.Registry().Build("bilstm", o, env)
	}
}

// BERT's values, which all sizes have.
const (
	vocabulary = 30522 // tokens
	positions  = 512   // tokens of the longest text
)

// seed is the seed of random weights, tokens and orders of texts.
const seed = 1

const labels = "0123456" // of a character each

// Network is an encoder with a head that labels texts by their first token's state.
type Network struct {
	// Precision is that in which the encoder multiplies: not Int8 in training.
	Precision nn.Precision
	// Batch is the number of texts of a batch; 0: as many of Full as have 2048 tokens, 32 of Data.
	Batch int

	model      *multitask.Model
	tokenizer  corpus.Tokenizer // nil for none
	vocabulary int              // number of token ids
	longest    int              // length of the longest text, in tokens
}

// NewNetwork makes a network of random weights, with a group of each task. If tokenizer is not nil, the network has an
// embedding for each of its tokens.
func NewNetwork(size Size, tokenizer corpus.Tokenizer, tasks ...string) (*Network, error) {
	return newNetwork(size, tokenizer, encoders.CPU, tasks...)
}

func newNetwork(size Size, tokenizer corpus.Tokenizer, device string, tasks ...string) (*Network, error) {
	n := &Network{vocabulary: vocabulary, longest: positions, tokenizer: tokenizer}
	if tokenizer != nil {
		n.vocabulary = max(vocabulary, tokenizer.Size())
	}
	params := nn.NewParams(seed)
	env := encoders.Env{Vocabulary: n.vocabulary, Params: multitask.EncoderParams(params), Device: device}
	encoder, err := size(env)
	if err != nil {
		return nil, err
	}
	return n, n.build(encoder, params, tasks...)
}

// SetPrecision makes the encoder multiply in a precision, another than its own where it has several.
func (n *Network) SetPrecision(precision nn.Precision) (err error) {
	n.Precision, err = predict.PrecisionOf(n.model.Encoder, precision)
	return err
}

// OpenNetwork makes a network of one of SizeNames, or opens the encoder of a model or run, to learn or as predictions
// do, which holds less memory. It tokenizes texts with the model's own tokenizer if the given one is nil. The encoder
// computes on a device: a value of encoders.Env.Device.
func OpenNetwork(ctx context.Context, name string, tokenizer corpus.Tokenizer, learns bool, device string) (
	*Network, error,
) {
	if size := sizes[name]; size != nil {
		return newNetwork(size, tokenizer, device, "bench")
	}
	params := nn.NewParams(seed)
	env := encoders.Env{Params: multitask.EncoderParams(params), Device: device}
	if !learns {
		env.Freeze = encoders.FreezeAll
	}
	encoder, own, err := predict.OpenEncoder(ctx, name, env)
	if err != nil {
		return nil, err
	}
	if tokenizer != nil && tokenizer.Size() > own.Size() {
		return nil, fmt.Errorf("the tokenizer has %d tokens; %s has %d", tokenizer.Size(), name, own.Size())
	}
	n := &Network{vocabulary: own.Size(), longest: cmp.Or(encoder.Describe().MaxTokens, positions)}
	n.tokenizer = cmp.Or(tokenizer, own)
	return n, n.build(encoder, params, "bench")
}

// build makes the model of an encoder, with a head for each of the tasks.
func (n *Network) build(encoder encoders.Encoder, params nn.Params, names ...string) error {
	about := encoder.Describe()
	n.model = &multitask.Model{Encoder: encoder, Fusion: fusion.NewNone(), Params: params}
	n.Precision = about.Precision
	known := strings.Split(labels, "")
	for _, name := range names {
		o := heads.LinearOptions{Pool: "cls", ObjectiveOptions: heads.PlainObjective}
		head, err := heads.Registry().Build("linear", o, heads.Env{
			Task: name, Name: "label", Output: outputs.Label, Labels: known, Width: about.Width,
			Params: multitask.HeadParams(params, name, "label"),
		})
		if err != nil {
			return err
		}
		n.model.Groups = append(n.model.Groups, multitask.Group{Name: name, Tasks: []multitask.Task{{
			Name: name, Type: tasks.NewClassification(tasks.Env{Heads: []string{"label"}}),
			Heads: []multitask.Head{{Name: "label", Head: head, Labels: corpus.NewLabels(known), Weight: 1}},
		}}})
	}
	return nil
}

// Learns reports whether the encoder can be trained.
func (n *Network) Learns() bool {
	return n.model.Encoder.Describe().Backward != nil
}

// Device returns what the encoder computes on, as encoders.Description does; "" for the processor.
func (n *Network) Device() string { return n.model.Encoder.Describe().Device }

// DeviceMemory returns the most bytes of a device's memory that were allocated at once, 0 on the processor.
func (n *Network) DeviceMemory() int64 {
	if resident := n.model.Encoder.Describe().Resident; resident != nil {
		return resident.Memory()
	}
	return 0
}

// peak returns the loop that the network's speed is compared with, nil on a device, which has none.
func (n *Network) peak() kernel.Loop {
	if n.Device() != "" {
		return nil
	}
	return kernel.MultiplyAdds(n.Precision)
}

// Longest returns the number of tokens of the longest text that the encoder reads.
func (n *Network) Longest() int { return n.longest }

// Parameters returns the number of the network's parameters.
func (n *Network) Parameters() int {
	sum := 0
	for _, w := range n.model.AllParams() {
		sum += w.Size()
	}
	return sum
}

// products returns the weights that layers multiply their rows by. Embeddings are not among them.
func (n *Network) products() []*nn.Param {
	var weights []*nn.Param
	encoder := multitask.EncoderParams(n.model.Params)
	for _, w := range n.model.AllParams() {
		if multitask.IsIn(encoder, w) && len(w.Shape) == 2 && !w.Table {
			weights = append(weights, w)
		}
	}
	return weights
}

// Multiplied returns the number of weights that each token is multiplied by: a token costs twice as many floating-point
// operations to encode and six times as many to train on, without the products within attention.
func (n *Network) Multiplied() int {
	sum := 0
	for _, w := range n.products() {
		sum += w.Size()
	}
	return sum
}

// The shapes of the works, which are those of the programs that jenga is compared with.
const (
	TextTokens  = 128             // of each text of full, unless it is asked for others; at most of a text of data
	batchTokens = 16 * TextTokens // of full
	dataTexts   = 32              // of a batch
	oneTokens   = 16              // of OneText
)

// Work is batches of texts, each with a label. The first of several batches warms up.
type Work struct {
	Name    string
	Batches [][]*corpus.Example
}

func (w Work) timed() [][]*corpus.Example {
	if len(w.Batches) > 1 {
		return w.Batches[1:]
	}
	return w.Batches
}

// Texts returns the number of texts in the measured batches.
func (w Work) Texts() int {
	sum := 0
	for _, batch := range w.timed() {
		sum += len(batch)
	}
	return sum
}

// Tokens returns the number of tokens in the measured batches, special ones included.
func (w Work) Tokens() int {
	sum := 0
	for _, batch := range w.timed() {
		for _, e := range batch {
			sum += e.Tokens()
		}
	}
	return sum
}

// StepTokens returns the mean number of tokens of a measured batch.
func (w Work) StepTokens() float64 { return float64(w.Tokens()) / float64(len(w.timed())) }

// Full returns so many measured batches of texts that have a number of random tokens each, at most the encoder's
// Longest.
func (n *Network) Full(batches, tokens int) Work {
	r := rand.New(rand.NewPCG(seed, 0))
	w := Work{Name: "full"}
	for range batches + 1 {
		var batch []*corpus.Example
		for range cmp.Or(n.Batch, max(1, batchTokens/tokens)) {
			batch = append(batch, n.random(r, min(tokens, n.longest)))
		}
		w.add(batch)
	}
	return w
}

// Data returns so many measured batches of the texts, in their order, fewer if there are not enough, truncated to
// 128 tokens.
func (n *Network) Data(texts []*corpus.Example, batches int) Work {
	if n.tokenizer == nil {
		panic("bench: texts for a network without a tokenizer")
	}
	size := cmp.Or(n.Batch, dataTexts)
	texts = texts[:min(len(texts), (batches+1)*size)]
	w := Work{Name: "data"}
	for from := 0; from < len(texts); from += size {
		batch := texts[from:min(from+size, len(texts))]
		for _, e := range batch {
			e.Windows = []corpus.Encoding{n.tokenizer.Encode(e, min(TextTokens, n.longest))}
		}
		w.add(batch)
	}
	return w
}

// add adds a batch, with all labels in turn.
func (w *Work) add(batch []*corpus.Example) {
	for i, e := range batch {
		e.Targets = []corpus.Target{&outputs.LabelTarget{ID: i % len(labels)}}
	}
	w.Batches = append(w.Batches, batch)
}

func (n *Network) random(r *rand.Rand, tokens int) *corpus.Example {
	text := corpus.Encoding{
		IDs: make([]int32, tokens), Segments: make([]int8, tokens), Offsets: make([]corpus.Span, tokens),
		Words: make([]int32, tokens),
	}
	for i := range tokens {
		text.IDs[i] = r.Int32N(int32(n.vocabulary))
		text.Words[i] = -1
	}
	return &corpus.Example{Windows: []corpus.Encoding{text}}
}
