package encoders

import (
	"fmt"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Encoder turns a batch of tokens into hidden states, one vector a token.
type Encoder interface {
	// Encode maps packed tokens [T] to the states of the layers asked for, [T Width] each, embeddings first if they
	// have that width; the last of them are the encoder's output. In evaluation and when frozen, nothing is dropped
	// out. A text's states are the same bits alone and in any batch. The error names the text and what is wrong with
	// it.
	Encode(p *nn.Pass, tokens corpus.Tokens, layers nn.Wanted) ([][]float32, error)
	// Describe returns what the encoder is, the same at each call.
	Describe() Description
}

// Description is what an encoder says of itself. Each field's zero value is right for an encoder that lacks what the
// field is about.
type Description struct {
	Width int // of the hidden states, in numbers
	// Layers is how many layers' states Encode gives for nn.AllLayers, the embeddings counted if it gives them; 0: it
	// gives the last layer's alone.
	Layers int
	// Attention is what Encode gives of each text to whoever watches "attention", as [layers heads T T].
	Attention AttentionMaps
	// MaxTokens is how long a text may be, in tokens, special ones included; 0: of any length.
	MaxTokens int
	// Files are the paths of all files that were read of Env.Model; none of an encoder from scratch. A run does not
	// copy an encoder that learns nothing: it names these files, with their sums.
	Files []string
	// WordEmbeddings [V E] may start from vectors of words. Heads may share them where E is Width.
	WordEmbeddings *nn.Param
	MixedPrecision bool // it heeds nn.Pass.BFloat16
	Recomputes     bool // it heeds nn.Pass.Recompute
}

// AttentionMaps is how many attention maps an encoder gives of a text; none is the zero value.
type AttentionMaps struct{ Layers, Heads int }

// Trainable is an Encoder that learns.
type Trainable interface {
	Encoder
	// Backward adds the parameters' gradients to into, given the loss's gradient at the states that p's Encode gave
	// (nil for a layer's that has none). Called once a step, or once a task where a weighting compares gradients: it
	// leaves the pass as it is; each call costs a whole backward. Parameters whose gradients are final are reported to
	// into by Ready, level by level from the last layer down.
	Backward(p *nn.Pass, at [][]float32, into nn.Gradients)
}

// Resident is a Trainable whose parameters lie in a memory of its own, as a device's: none of them that learns is in
// the tree of parameters, and its Backward adds to the gradients in its store.
type Resident interface {
	Trainable
	// Learns tells whether any of its parameters learns.
	Learns() bool
	// Store makes zero gradients and an optimizer, AdamW with that weight decay, for the parameters that learn. With
	// tasks above 0 the gradients are kept by so many tasks, and the store is an nn.TaskStore.
	Store(weightDecay float64, tasks int) nn.Store
}

// Saver is an Encoder that can be saved and opened again.
type Saver interface {
	// Save writes config.json and model.safetensors to folder, which Env.Model may name then, and which transformers'
	// AutoModel reads where it has such an encoder. The tokenizer writes its own files beside them.
	Save(folder string) error
}

// MemoryEstimator is an Encoder that tells how much memory a batch takes, before it takes it.
type MemoryEstimator interface {
	// Memory returns the bytes that a batch's Encode and, in training, Backward take of a pass, and what Encode makes
	// of the parameters once. What the parameters, their gradients and the optimizer take is not counted.
	Memory(b Load) int64
}

// Load is what a batch asks of an encoder.
type Load struct {
	Tokens    int       // of all its texts
	Layers    nn.Wanted // whose states are asked for
	Training  bool
	Recompute bool // see nn.Pass
}

// BaseChecker is options of an encoder, some of which a base model settles.
type BaseChecker interface {
	// CheckBase returns what is wrong with the options beside a base model.
	CheckBase() error
}

// LengthError is the error of an encoder that is opened for longer texts than it takes.
type LengthError struct{ Max, Length int } // in tokens: what it takes, and Env.MaxLength

// Error names the keys of config.json and of an experiment that say the lengths.
func (e *LengthError) Error() string {
	return fmt.Sprintf("max_position_embeddings is %d, but max_length is %d", e.Max, e.Length)
}

// LoRA says how weights are changed by what learns beside them, which stay as they are (Hu et al. 2022).
type LoRA struct {
	Rank    int      `yaml:"r" range:"[1,1024]" doc:"rank of the changes"`
	Alpha   float64  `yaml:"alpha" range:"(0,)" doc:"a change is multiplied by alpha / r"`
	Targets []string `yaml:"targets" choice:"query|key|value|output|up|down" doc:"the weights that are changed: of attention, and up and down of the feed-forward layer"`
}

// Env is what an encoder is told.
type Env struct {
	Model      string    // folder or .onnx file of the weights, "" from scratch
	Vocabulary int       // how many token ids the tokenizer has
	MaxLength  int       // the longest text in tokens
	Dropout    float64   // model.dropout, a share: hidden states and attention weights
	DropoutSet bool      // the experiment names a dropout; else the model's own config holds
	LoRA       LoRA      // changes that learn in the place of weights; of rank 0: none
	Freeze     string    // none | embeddings | all | a number N: the first N layers and the embeddings
	Params     nn.Params // the encoder's corner of the parameters
}

var registry = plugin.NewRegistry[Env, Encoder]("encoder")

// Registry lists the registered encoders.
func Registry() *plugin.Registry[Env, Encoder] { return registry }

// Register makes an encoder known as `type: name`. defaults are its options where a file is silent; New makes it.
func Register[O any](name string, defaults O, New func(O, Env) (Encoder, error)) {
	plugin.Register(registry, name, defaults, New)
}
