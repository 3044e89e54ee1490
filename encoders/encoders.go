// Package encoders turns tokens into the hidden states that all tasks share.
package encoders

import (
	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Encoder turns a batch of tokens into hidden states, one vector a token.
type Encoder interface {
	// Encode maps packed tokens [T] to the states of the layers asked for, [T Width] each, embeddings first if they have
	// that width; the last of them is the encoder's answer. In evaluation and when frozen, nothing is dropped out. A text's states are the
	// same bits alone and in any batch. The error names the text and what is wrong with it.
	Encode(p *nn.Pass, tokens corpus.Tokens, layers nn.Wanted) ([][]float32, error)
	Width() int
}

// Trainable is an Encoder that learns.
type Trainable interface {
	Encoder
	// Backward adds the parameters' gradients to into, given the loss's gradient at the states that p's Encode gave
	// (nil for a layer's that has none). Called once a step, or once a task where a weighting compares gradients: it
	// leaves the pass as it is; each call costs a whole backward. Parameters whose gradients are final are reported to
	// into by Ready, level by level from the last layer down.
	Backward(p *nn.Pass, at [][]float32, into nn.Gradients)
}

// Resident is a Trainable whose parameters lie in a memory of its own, as a device's: none of them that learns is in the
// tree of parameters, and its Backward adds to the gradients in its store.
type Resident interface {
	Trainable
	// Learns tells whether any of its parameters learns.
	Learns() bool
	// Store makes zero gradients and an optimizer, AdamW with that weight decay, for the parameters that learn. With tasks
	// above 0 the gradients are kept by so many tasks, and the store is an nn.TaskStore.
	Store(weightDecay float64, tasks int) nn.Store
}

// Saver is an Encoder that can be written to a folder from which Site.Model can be opened again: config.json and
// model.safetensors, which transformers' AutoModel reads where it has such an encoder. The tokenizer writes its own files
// beside them.
type Saver interface {
	Save(folder string) error
}

// Sourced is an Encoder that tells what it was opened from. One that learns nothing is not copied into a run, which
// knows it again by those files.
type Sourced interface {
	Files() []string // paths of all files that were read of Site.Model; none of an encoder from scratch
}

// Economical is an Encoder that heeds a pass's BFloat16 and Recompute.
type Economical interface{ Economical() }

// Sized is options of an encoder that say what a base model says of itself.
type Sized interface {
	// CheckBase returns what is wrong with the options beside a base model.
	CheckBase() error
}

// Bounded is an Encoder that takes texts up to a length.
type Bounded interface {
	MaxTokens() int // special ones included
}

// Deep is an Encoder that tells how many layers it gives the states of.
type Deep interface {
	Layers() int // the embeddings counted, if Encode gives them
}

// Attentive is an Encoder that shows its attention maps [layers heads T T] of a text to whoever watches "attention".
type Attentive interface {
	Attention() (layers, heads int)
}

// Weighed is an Encoder that tells how much memory a batch takes.
type Weighed interface {
	// Memory returns the bytes that a batch's Encode and, in training, Backward take of a pass, and what Encode makes of
	// the parameters once. What the parameters, their gradients and the optimizer take is not counted.
	Memory(b Load) int64
}

// Load is what a batch asks of an encoder.
type Load struct {
	Tokens    int       // of all its texts
	Layers    nn.Wanted // whose states are asked for
	Training  bool
	Recompute bool // see nn.Pass
}

// Tied is an Encoder with word embeddings that a head may share.
type Tied interface {
	Words() *nn.Param // [V D]
}

// Embedded is an Encoder whose word embeddings may begin with vectors of words.
type Embedded interface {
	Embeddings() *nn.Param // [V E]
}

// LoRA says how weights are changed by what learns beside them, which stay as they are (Hu et al. 2022).
type LoRA struct {
	Rank    int      `yaml:"r" range:"[1,1024]" doc:"rank of the changes"`
	Alpha   float64  `yaml:"alpha" range:"(0,)" doc:"a change is multiplied by alpha / r"`
	Targets []string `yaml:"targets" choice:"query|key|value|output|up|down" doc:"the weights that are changed: of attention, and up and down of the feed-forward layer"`
}

// Site is what an encoder is told.
type Site struct {
	Model      string    // folder or .onnx file of the weights, "" from scratch
	Vocabulary int       // how many token ids the tokenizer has
	MaxLength  int       // the longest text in tokens
	Dropout    float64   // model.dropout, a share: hidden states and attention weights
	DropoutSet bool      // the experiment names a dropout; else the model's own config holds
	LoRA       LoRA      // changes that learn in the place of weights; of rank 0: none
	Freeze     string    // none | embeddings | all | a number N: the first N layers and the embeddings
	Params     nn.Params // the encoder's corner of the parameters
}

var registry = plugin.NewRegistry[Site, Encoder]("encoder")

// Registry lists the registered encoders.
func Registry() *plugin.Registry[Site, Encoder] { return registry }

// Register makes an encoder known as `type: name`. defaults are its options where a file is silent; New makes it.
func Register[O any](name string, defaults O, New func(O, Site) (Encoder, error)) {
	plugin.Register(registry, name, defaults, New)
}
