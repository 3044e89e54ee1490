package heads

import (
	"fmt"
	"math/rand/v2"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// Head answers one question about each example: scores, and an objective over them.
type Head interface {
	// Scores maps hidden states to raw scores; a head may need several nodes (arcs and labels, start and end).
	Logits(p *nn.Pass, seen nn.Hidden) Logits
	Objective
}

// Objective is what a head's scores are for. Most heads embed a finished one and write only Scores.
type Objective interface {
	// Units is how many labelled units (texts, words, spans; class weights counted in) gold holds.
	Units(gold []corpus.Target) float64
	// Loss is the sum over them, nil if there are none. The loop divides by the units of the whole step, accumulation
	// included. A loss over pairs of examples, of which one is to score higher than the other, is no sum over them: it
	// is that of the batch times its units, 0 for an example by itself.
	Loss(p *nn.Pass, scores Logits, gold []corpus.Target) *nn.Node
	// Predict reads scores, after p.Forward, as one prediction an example.
	Predict(scores Logits) []corpus.Prediction
}

// Outputter is a Head that says which kind of outputs it has, as one that embeds a finished objective does. Only a head
// that was registered without kinds of outputs is asked for it.
type Outputter interface {
	Output() *outputs.Kind
}

// Accepter is a Head that cannot learn every target of its kind.
type Accepter interface {
	// Accepts says what is wrong with a target, which may be nil and whose labels are numbered, that the head cannot
	// predict.
	Accepts(t corpus.Target) error
}

// Tuner is a Head that decides by thresholds, which it chooses from its predictions on dev. They are parameters.
type Tuner interface {
	// Tune chooses the thresholds by the targets of dev, nil where there is none, and the predictions, and decides
	// those anew.
	Tune(gold []corpus.Target, predicted []corpus.Prediction)
	// Thresholds returns the probability from which on each label holds, or the distance above which an alarm is
	// raised; nil for none.
	Thresholds() []float32
	// Untuned says in two sentences without a full stop what is not done where no evaluation tunes the head of a name,
	// and what holds then.
	Untuned(name string) (what, then string)
}

// Watcher is a Head that reads what other parts keep of a batch.
type Watcher interface {
	// Watch asks p for it, before the batch whose rows are given is encoded, except in training.
	Watch(p *nn.Pass, rows nn.Rows)
}

// Fitter is a Head that is fitted to features of training texts before each evaluation on dev, in place of learning by
// gradients. Its options are a Describer that says so.
type Fitter interface {
	// Choose lists the training examples to fit to, rising, by the targets of all, nil where there is none.
	Choose(targets []corpus.Target) []int
	// Features copies the features of each example, after p.Forward.
	Features(scores Logits) [][]float32
	// Fit sets the head's parameters by the features of some texts, of which there is one at least.
	Fit(features [][]float32)
}

// Preparer is a Head whose targets are in a batch that it changes.
type Preparer interface {
	// Prepare returns what is read in the place of batch, its targets in copies of the examples.
	// source gives the randomness of an example by its place in the batch; where it is nil, nothing is changed, and the
	// targets are what the texts themselves hide.
	Prepare(batch *corpus.Batch, source func(example int) rand.Source) *corpus.Batch
}

// Describer is options of a head that has traits.
type Describer interface {
	// Describe returns what the head is with these options, the same at each call.
	Describe() Traits
}

// Traits are what has to be known of a head before it is made. Most heads have none, the zero value.
type Traits struct {
	Fitted   bool   // it is a Fitter, and so has no loss
	Compares bool   // its loss is over pairs of a batch's examples, so that one alone has none
	Lenses   Lenses // it looks at texts through them; Name is that of a corner of its parameters
}

// TraitsOf returns the traits of the head that options are of.
func TraitsOf(options any) Traits {
	if d, ok := options.(Describer); ok {
		return d.Describe()
	}
	return Traits{}
}

// Lenses are what a head looks at texts through.
type Lenses struct {
	Name  string // see nn.FocusCentre and nn.FocusAperture
	Count int
}

// Scores are a head's raw scores for a batch.
type Logits struct {
	Nodes []*nn.Node
	Rows  nn.Rows
}

// LogitsOf returns the scores that nodes hold of what was seen.
func LogitsOf(seen nn.Hidden, nodes ...*nn.Node) Logits { return Logits{nodes, seen.Rows} }

// Env is what a head is told.
type Env struct {
	Task, Name string        // of the task and of the head
	Output     *outputs.Kind // what the task asks for
	Labels     []string      // in the order of their numbers
	Width      int           // of the hidden states
	Dropout    float64       // model.dropout: the default of a head's own
	Training   Training      // what it is told of its training data; empty where a trained head is opened
	Params     nn.Params     // the head's corner of the parameters
	Words      *nn.Param     // the encoder's word embeddings [V D] to tie to, or nil
	Mask       int32         // token that stands for a hidden one; below 0: there is none
	Attention  Attention     // that the encoder shows
	Lenses     []Lenses      // of heads that read the same texts
}

// Attention is how many attention maps an encoder shows of a text.
type Attention struct{ Layers, Heads int }

// Refuse is the error of a head whose outputs are not of the kind that its task asks for.
func (s Env) Refuse(can *outputs.Kind) error {
	return fmt.Errorf("it answers %s, but task %q asks for %s", can, s.Task, s.Output)
}

var registry = plugin.NewRegistry[Env, Head]("head")

// Registry lists the registered heads.
func Registry() *plugin.Registry[Env, Head] { return registry }

// Register makes a head known as `type: name`. defaults are its options where a file is silent; New makes it. It can
// have outputs of the kinds in can: under a task that asks for another it is refused when the file is read. Where none
// are named, New refuses, or the head does if it is an Outputter.
func Register[O any](name string, defaults O, New func(O, Env) (Head, error), can ...*outputs.Kind) {
	plugin.Register(registry, name, defaults, func(o O, s Env) (Head, error) {
		if err := CheckOutput(name, s.Output); err != nil {
			return nil, err
		}
		h, err := New(o, s)
		if err != nil {
			return nil, err
		}
		if o, ok := h.(Outputter); ok && len(can) == 0 && o.Output() != s.Output {
			return nil, s.Refuse(o.Output())
		}
		return h, nil
	})
	if len(can) > 0 {
		kindsOf[name] = can
	}
}
