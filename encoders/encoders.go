// Package encoders turns tokens into the hidden states that all tasks share.
//
// # The life of an encoder
//
// Registered. An init function calls Register with the name that experiments write as type, the defaults of its
// options, and its constructor.
//
// Chosen. The file's section is decoded over the defaults, each option within the range or choice of its tag (package
// plugin). Beside a base model, options that are SizedByBase must be the defaults.
//
// Built. The constructor receives the options and an Env: the base model's path, the sizes of tokenizer and texts, what
// is frozen, and the encoder's subtree of parameters, in which it makes all of its own. Env.Layers are for encoders
// that can be made of some of their model's layers (ChoosesLayers); others are refused. For a base model that takes
// shorter texts than Env.MaxLength it returns a *LengthError, wrapped with the name of the file that has the limit;
// where an option of Env is the mistake, as Freeze, it returns an *OptionError, of which the message has the place;
// other mistakes of the user are errors, too. Env.Device is for encoders that compute elsewhere than on the processor;
// one that does not reads nothing of it, and is refused where the user asks for such a device.
//
// Described. Describe returns a Description, from which the model is assembled: fusion and heads have Width, Layers,
// Attention and WordEmbeddings in their own Env; word vectors are copied into WordEmbeddings where the experiment has
// some; a warning is given for training options that the encoder does not support (MixedPrecision, Recomputes); a
// command without a length truncates texts to MaxTokens. Its functions are what the encoder can do beyond Encode; an
// encoder that is always frozen needs none of them.
//
// Estimated. Before training and before prediction Memory returns the memory that the largest batch takes, which must
// fit the machine. Encoders without it are not checked.
//
// Trained. Each step calls Encode with a pass of its own, then, if the encoder has a Backward and a parameter that
// learns, that with the gradient at the states that Encode returned. Backward adds to the gradients of the step's
// store and reports each level of parameters as final by nn.Gradients.Ready, last layer first, so that processes sum
// them while those of the lower layers are still computed. The training has the optimizer that updates them; only a
// Resident, whose parameters are in a memory of its own, provides a store with an optimizer (Store), and reports
// whether it learns (Learns), which for others follows from the parameters. Levels lists the parameters by layer:
// layers may have learning rates of their own (training.layer_decay), and may begin to learn later (nn.Param.Later), so
// that Encode drops out nothing in layers none of whose parameters LearnsNow, and Backward stops above them. The states
// of an encoder that learns nothing are computed once for each text and cached, as far as there is room.
//
// Saved. What Save returns writes the encoder to the folder of a checkpoint, while training goes on. One that learns
// nothing is not saved: the checkpoint names Description.Files with their checksums. An encoder for which neither is
// possible is an error before training.
//
// Opened and used. The same constructor receives the saved folder, or the original files, as Env.Model, with all
// parameters frozen. Encode may be called by many goroutines at once, each with its own pass: whatever it keeps is in
// the pass. Outside training it may leave out the states that are not read (Mode.Read).
//
// Closed. An encoder that holds files has a Close. It is called when the run or model that was opened is no longer
// used, and not while a call of Encode lasts.
//
// Package parttest tests that an encoder does all this, given its name and options that make it small.
package encoders

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Encoder turns a batch of tokens into hidden states, one vector per token.
type Encoder interface {
	// Encode maps packed tokens [T] to the states of the mode's layers, [T Width] each, embeddings first if they have
	// that width; the last of them are the encoder's output. In evaluation and when frozen there is no dropout. A
	// text's states are the same bits alone and in any batch. The error names the text and what is wrong with it.
	Encode(p *nn.Pass, tokens corpus.Tokens, mode Mode) ([][]float32, error)
	// Describe returns the encoder's description, the same at each call.
	Describe() Description
}

// Mode is how an encoder computes in a pass. It has nothing that the Description says the encoder cannot do.
type Mode struct {
	Layers nn.LayerSet // whose states are returned
	// Words [T E] take the place of the tokens' word embeddings, outside training, if they are not nil; all else, as
	// positions and token types, is that of tokens. With the tokens' own the states are the same bits as without.
	Words []float32
	// Recompute makes it keep little for Backward, which computes the rest again.
	Recompute bool
	// Precision is that in which it multiplies by its weights. All else is float32, including the products within
	// attention, which PyTorch's autocast rounds. Training is in Float32 or BFloat16.
	Precision nn.Precision
	// TF32 lets a GPU round the factors of float32 products to 10 bits of precision.
	TF32 bool
	// Unpacked makes it leave the weights that it keeps packed for other passes, of another precision, as they are.
	Unpacked bool
	// Read lists the rows of the last states that are read, ascending; nil for all. Outside training the encoder may
	// leave the others out, and sets them to NaN; in training only one that is Resident is asked, and sets them to 0.
	Read []int
	// Adapter names the changes of its weights that it applies, if it has several; "" for none.
	Adapter string
}

// Description describes an encoder: what it is, and what it can do beyond Encode. A field's zero value means that the
// encoder lacks what the field is about, or cannot do it. An encoder that wraps another returns the other's description
// with what it changes.
type Description struct {
	Width int // of the hidden states, in numbers
	// Layers is the number of layers whose states Encode returns for nn.AllLayers, embeddings included if it returns
	// them; 0: it returns those of the last layer only.
	Layers int
	// Attention is the number of attention maps that Encode passes for each text to the observers of nn.AttentionMaps,
	// [heads T T] of each layer.
	Attention AttentionMaps
	// MaxTokens is the largest length of a text, in tokens, special ones included; 0: any length.
	MaxTokens int
	// Files are the paths of all files that were read from Env.Model; none for an encoder from scratch. A run does not
	// copy an encoder that learns nothing: it names these files, with their checksums.
	Files []string
	// WordEmbeddings [V E] may be initialised from word vectors. Heads may share them where E is Width.
	WordEmbeddings *nn.Param
	// Levels are all parameters: those of the embeddings, then those of each layer, from the first one up. Layers may
	// have learning rates of their own.
	Levels         [][]*nn.Param
	MixedPrecision bool // it supports all values of Mode.Precision
	Recomputes     bool // it supports Mode.Recompute
	ChoosesLayers  bool // it supports Env.Layers, and Save
	// Device is the one that it computes on, a value of Env.Device; "": the processor.
	Device string
	// NoDevice is why an encoder for AutoDevice computes on the processor of a machine with a GPU.
	NoDevice error
	// Precision is that of its weights, and where it is below float32 of their products in all passes: that of a
	// quantized model, which does not learn.
	Precision nn.Precision

	// Backward adds the parameters' gradients to into, given the loss's gradient at the states that Encode returned for
	// p (nil for a layer without one). It is called once per step, or once per task where a weighting compares
	// gradients. It leaves the pass as it is; each call costs a whole backward pass. Each parameter that learns is
	// reported to into by Ready once, when its gradient is final, level by level from the last layer down.
	Backward func(p *nn.Pass, at [][]float32, into nn.Gradients)
	// Words are passes from word embeddings (Mode.Words), with which predictions are explained.
	Words *Words
	// Resident has the parameters of an encoder that keeps them in a memory of its own.
	Resident *Resident

	// Save returns what writes config.json and model.safetensors to a folder, which Env.Model may then name, and which
	// transformers' AutoModel reads where it has such an encoder. The tokenizer writes its own files beside them. What
	// learns has its present values: they are copied, to the memory of copies, which may be nil, so that the encoder
	// goes on learning meanwhile. That memory must not be used again before write has returned.
	Save func(copies *nn.Copies) (write func(folder string) error)
	// Quantized is Save of the encoder with weights in int8, but for those of the levels keep, by their places in
	// Levels. adapter is the name of the changes that its weights then have, "" for none. It copies all values.
	Quantized func(adapter string, keep ...int) (write func(folder string) error)

	// Memory returns the bytes that a batch's Encode and, in training, Backward take of a pass, and what Encode makes
	// of the parameters once, before any of it is allocated. Parameters, their gradients and the optimizer's state are
	// not counted.
	Memory func(b Workload) int64
	// Close releases what the encoder holds, such as mapped files. The encoder must not be used afterwards.
	Close func() error
}

// Words are passes of an encoder that is differentiable with respect to its word embeddings, even where all of it is
// frozen.
type Words struct {
	// Embed returns a copy of the word embeddings of tokens [T E], or an error where they cannot be read.
	Embed func(ids []int32) ([]float32, error)
	// Backward returns a loss's gradient at Mode.Words [T E], which is valid until the next call, given that at the
	// states that Encode returned for p (nil for a layer without one). It may be called several times for p.
	Backward func(p *nn.Pass, at [][]float32) []float32
}

// Resident has the parameters of an encoder that keeps them in a memory of its own, such as a device's: none that
// learns is in the tree of parameters, and its Backward adds to the gradients in its store.
type Resident struct {
	Learns bool        // whether any of its parameters learns
	Params []*nn.Param // all, whose values may be out of date
	// Memory returns how many bytes of its memory were allocated at once, at most.
	Memory func() int64
	// Frozen returns copies of those that do not learn, with the values that the memory has, in the order of Params;
	// nil: there are none.
	Frozen func() ([]*nn.Param, error)
	// Reserve allocates memory for the training passes of batches of up to so many tokens, in a mode; nil: passes do
	// so.
	Reserve func(tokens int, mode Mode) error
	// Store makes zero gradients and an optimizer, AdamW with that weight decay, for the parameters that learn. With
	// tasks above 0 the gradients of each task are kept separately, and the store is an nn.TaskStore. Each training has
	// a store of its own, which it closes if that is an io.Closer.
	Store func(weightDecay float64, tasks int) nn.Store
}

// ErrQuantized is the error of a quantized encoder that would have to learn, or to be saved as one that did.
var ErrQuantized = errors.New("the encoder is quantized to int8: it predicts, and is neither trained nor merged; " +
	"want the model or run that it was made of")

// AttentionMaps is the number of attention maps that an encoder has for a text; zero for none.
type AttentionMaps struct{ Layers, Heads int }

// Close closes an encoder, if it has something to release.
func Close(e Encoder) error {
	if release := e.Describe().Close; release != nil {
		return release()
	}
	return nil
}

// Workload is a batch whose memory is estimated, and how it is encoded.
type Workload struct {
	Tokens    int         // of all its texts
	Layers    nn.LayerSet // whose states are required
	Training  bool
	Recompute bool // see Mode
	Words     bool // from word embeddings, with Backward of Description.Words
	Mapped    int  // tokens of the longest text whose attention maps are observed; 0: none are
}

// Lowest returns the lowest of an encoder's levels that Backward goes to, len(levels) where there is none.
func (b Workload) Lowest(levels [][]*nn.Param) int {
	switch {
	case b.Words:
		return 0
	case b.Training:
		return LowestLearning(levels, (*nn.Param).Learns)
	}
	return len(levels)
}

// SizedByBase is options of an encoder, all of which are fixed by a base model. An experiment has none of their keys
// beside one, not even with the defaults.
type SizedByBase interface {
	SizedByBase()
}

// ErrSized is the error of options that are SizedByBase beside a base model.
var ErrSized = errors.New("its sizes are the base model's; leave out the keys beside type, " +
	"or leave out base_model to train from scratch")

// LengthError is the error of an encoder that is opened for longer texts than it takes.
type LengthError struct {
	Max, Length int // in tokens: the encoder's limit, and Env.MaxLength
	Before      int // positions that the encoder has before the first token's
}

// Error names the keys of config.json and of the experiment that have the lengths.
func (e *LengthError) Error() string {
	if e.Before > 0 {
		return fmt.Sprintf("max_position_embeddings is %d, %d of them before a text's first token, but max_length "+
			"is %d", e.Max+e.Before, e.Before, e.Length)
	}
	return fmt.Sprintf("max_position_embeddings is %d, but max_length is %d", e.Max, e.Length)
}

// OptionError is the error of an option of Env that the encoder cannot have. Its text begins with the option.
type OptionError struct {
	Key string // in the experiment's section model: freeze, lora or lora.r; or device, of the section training
	Err error
}

func (e *OptionError) Error() string { return e.Err.Error() }

// Unwrap returns the error without the key.
func (e *OptionError) Unwrap() error { return e.Err }

// BadOption returns an OptionError with a text.
func BadOption(key, format string, args ...any) error {
	return &OptionError{key, fmt.Errorf(format, args...)}
}

// LoRA are the options of low-rank changes that are learned while the weights themselves stay frozen (Hu et al. 2022).
type LoRA struct {
	Rank    int      `yaml:"r" range:"[1,1024]" doc:"rank of the changes: number of columns of A"`
	Alpha   float64  `yaml:"alpha" range:"(0,)" doc:"a change is multiplied by the factor alpha / r"`
	Targets []string `yaml:"targets" choice:"query|key|value|output|up|down|gate" doc:"the weights that are changed: of attention, up and down of the feed-forward layer, and its gate where it has one"`
	PerTask bool     `yaml:"per_task,omitempty" doc:"whether each group of tasks that read the same texts has changes of its own"`
}

// Env is the environment that an encoder is made in.
type Env struct {
	Model      string  // folder or .onnx file of the weights, "" from scratch
	Vocabulary int     // number of the tokenizer's token ids
	MaxLength  int     // the longest text in tokens
	Dropout    float64 // model.dropout, the rate for hidden states and attention weights
	DropoutSet bool    // the experiment has a dropout; else the model's own config applies
	LoRA       LoRA    // changes that are learned instead of weights; of rank 0: none
	// Adapters are the names of the changes with LoRA.PerTask, of which a pass names the one that applies
	// (Mode.Adapter). The parameters of each are those below AdapterParams.
	Adapters []string
	// Layers are those of Model that the encoder has, numbered from 0, in this order; nil: all. There are none from
	// scratch, and none where a saved encoder is opened.
	Layers []int
	Freeze string    // none | embeddings | all | a number N: the first N layers and the embeddings
	Params nn.Params // the encoder's subtree of parameters
	// Device is the one that it computes on: "" or CPU, the processor; cuda:N, where it is an OptionError, of the key
	// device, if that cannot be used; AutoDevice, cuda:0 if that can be used and has all that the encoder is asked for
	// here, else the processor.
	Device string
}

// AdapterParams returns the subtree of an adapter in an encoder's subtree of parameters.
func AdapterParams(encoder nn.Params, adapter string) nn.Params {
	return encoder.In("lora").In(adapter)
}

var registry = plugin.NewRegistry[Env, Encoder]("encoder")

func init() {
	for _, name := range []string{"transformer", "hugot"} {
		registry.SetPackage(name, "github.com/jenga-nlp/jenga/encoders/"+name)
	}
	registry.SetDefault("transformer")
}

// Registry lists the registered encoders.
func Registry() *plugin.Registry[Env, Encoder] { return registry }

// Register registers an encoder as `type: name`. defaults are the options that an experiment leaves out; New makes it.
// One that does not compute on the CUDA device that Env asks for is an OptionError.
func Register[O any](name string, defaults O, New func(O, Env) (Encoder, error)) {
	plugin.Register(registry, name, defaults, func(o O, env Env) (Encoder, error) {
		e, err := New(o, env)
		if err != nil {
			return nil, err
		}
		if err := cmp.Or(env.checkDevice(name, e), env.checkLayers(name, e)); err != nil {
			return nil, errors.Join(err, Close(e))
		}
		return e, nil
	})
}

// checkLayers returns an error for an encoder that has all layers of its model where some of them are wanted.
func (env Env) checkLayers(name string, e Encoder) error {
	if d := e.Describe(); env.Layers == nil || d.ChoosesLayers && d.Save != nil {
		return nil
	}
	return BadOption("encoder.layers", "encoder: layers: encoder %q has all layers of its model; leave layers out, or "+
		"take a model whose config.json has a model_type of a transformer, as docs/models.md lists them", name)
}

// CheckTokens returns an error if a batch has token ids outside the vocabulary, or a text of more than most tokens (0:
// of any length).
func CheckTokens(tokens corpus.Tokens, vocabulary, most int) error {
	for b := range tokens.Rows.Texts() {
		lo, hi := tokens.Rows.Starts[b], tokens.Rows.Starts[b+1]
		if most > 0 && hi-lo > most {
			return fmt.Errorf("text %d of the batch has %d tokens; the encoder takes %d", b+1, hi-lo, most)
		}
		for _, id := range tokens.IDs[lo:hi] {
			if id < 0 || int(id) >= vocabulary {
				return fmt.Errorf("text %d of the batch: token id %d is outside the encoder's vocabulary of %d",
					b+1, id, vocabulary)
			}
		}
	}
	return nil
}

// The values of Env.Freeze besides a number of layers.
const (
	FreezeNone       = "none"       // everything learns
	FreezeEmbeddings = "embeddings" // the layers learn
	FreezeAll        = "all"        // nothing learns
)

// FreezeWords lists the values of Env.Freeze that are words.
func FreezeWords() []string { return []string{FreezeNone, FreezeEmbeddings, FreezeAll} }

// LowestLearning returns the lowest of an encoder's levels that has a parameter that learns, or len(levels) if there is
// none. The embeddings are level 0.
func LowestLearning(levels [][]*nn.Param, learns func(*nn.Param) bool) int {
	for i, level := range levels {
		if slices.ContainsFunc(level, learns) {
			return i
		}
	}
	return len(levels)
}

// Freeze freezes the levels of an encoder, the embeddings and the layers above them, that Env.Freeze names.
func Freeze(freeze string, levels [][]*nn.Param) error {
	frozen := 0
	switch freeze {
	case "", FreezeNone:
	case FreezeEmbeddings:
		frozen = 1
	case FreezeAll:
		frozen = len(levels)
	default:
		n, err := strconv.Atoi(freeze)
		if err != nil || n < 0 || n >= len(levels) {
			return BadOption("freeze", "freeze: %q is not known; available: %s, and a number of layers from 0 to %d",
				freeze, strings.Join(FreezeWords(), ", "), len(levels)-1)
		}
		frozen = n + 1
	}
	for _, level := range levels[:frozen] {
		for _, w := range level {
			w.Frozen = true
		}
	}
	return nil
}
