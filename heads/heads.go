package heads

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// Head maps hidden states to logits, with an objective over them.
type Head interface {
	// Logits maps hidden states to logits; a head may need several nodes (arcs and labels, start and end).
	Logits(p *nn.Pass, seen nn.Hidden) Logits
	Objective
}

// Objective computes the loss and the predictions from a head's logits. Most heads embed a predefined one and implement
// only Logits.
//
// gold has the target of each example of the batch, nil for one without a label. An example has several texts if it is
// divided into windows or is a pair whose texts are encoded separately: text b of logits.Rows belongs to example
// logits.Rows.Example[b], that is to gold[logits.Rows.Example[b]]. A long example has the weight of a short one: its
// loss is the mean over its windows and counts as one unit, and its prediction merges those of its windows, as their
// mean. Objectives of words count a word once, in one of its windows (outputs.WordRows); of spans, each window is a
// unit.
type Objective interface {
	// Units is the number of labelled units (texts, words, spans; each times its class weight) in gold.
	Units(gold []corpus.Target) float64
	// Loss is the sum over them, nil if there are none. The loop divides by the units of the whole step, accumulation
	// included. A ranking loss over pairs of examples is not such a sum: it is the loss of the batch times its units,
	// 0 for a batch of one example.
	Loss(p *nn.Pass, logits Logits, gold []corpus.Target) *nn.Node
	// Predict turns logits, after p.Forward, into one prediction per example.
	Predict(logits Logits) []corpus.Prediction
	// Describe returns what a head is and can do beyond these methods, the same at each call. A head that can do more
	// than the objective that it embeds returns the objective's description with more fields.
	Describe() Description
}

// Description is what a head is and can do. For the simplest head it is the zero value: what is nil, the head cannot do
// or does not need.
type Description struct {
	// Output is the kind of outputs of a head that is registered without kinds.
	Output *outputs.Kind
	// Warnings are about options that are valid, but maybe not intended.
	Warnings []string
	// CheckTarget returns an error for a target of the head's kind that it cannot predict. The target may be nil; its
	// labels are numbered.
	CheckTarget func(t corpus.Target) error
	// Reads returns the rows of the states that Logits reads, such as each text's first, in any order. In evaluation
	// the encoder may leave the others out: their states are NaN. Where it is nil or returns nil, all may be read.
	Reads func(rows nn.Rows) []int
	// Observe requests values that other parts emit for a batch, such as attention maps, from p, before the batch with
	// these rows is encoded. It is not called in training.
	Observe func(p *nn.Pass, rows nn.Rows)
	// Prepare returns the batch to encode instead of batch, with targets in copies of the examples, of a head that
	// makes its targets from each batch. source returns the random source of an example by its index in the batch; if
	// it is nil, no token is changed, and the mask tokens of the texts are the hidden tokens.
	Prepare func(batch *corpus.Batch, source func(example int) rand.Source) *corpus.Batch

	Fitter     Fitter
	Tuner      Tuner
	Calibrator Calibrator
	// Soft makes the head a teacher, or a student that learns from a teacher's probabilities.
	Soft *Soft
}

// Fitter fits a head to features of training examples before each evaluation on dev, in place of learning by gradients.
// The Traits of its options are Fitted.
type Fitter interface {
	// Choose returns the indices of the training examples to fit to, ascending, given the targets of all, nil where
	// there is none.
	Choose(targets []corpus.Target) []int
	// Features copies the features of each example, after p.Forward.
	Features(logits Logits) [][]float32
	// Fit sets the head's parameters from the features of one or more examples.
	Fit(features [][]float32)
}

// Tuner chooses the thresholds by which a head predicts from its predictions on dev. They are parameters.
type Tuner interface {
	// Tune chooses the thresholds from the targets of dev, nil where there is none, and the predictions, and updates
	// the predictions by them.
	Tune(gold []corpus.Target, predicted []corpus.Prediction)
	// Thresholds returns the least probability at which each label holds, or the distance above which an alarm is
	// raised; nil for none.
	Thresholds() []float32
	// Untuned returns two sentences without a full stop for a head of a name that no evaluation tunes: what is not
	// done, and what holds instead.
	Untuned(name string) (what, then string)
}

// HasTraits is implemented by the options of a head that has traits.
type HasTraits interface {
	// Traits returns the traits of the head with these options, the same at each call.
	Traits() Traits
}

// Traits are the properties of a head that are needed before it is made. Most heads have none, the zero value.
type Traits struct {
	Fitted   bool   // it has a Fitter, and so no loss
	Compares bool   // its loss is over pairs of a batch's examples, so that a single example has none
	Lenses   Lenses // of its attention; Name is that of a subtree of its parameters
	Words    bool   // it multiplies by the encoder's word embeddings, Env.Words
	Maps     bool   // it reads the encoder's attention maps, where that has some
}

// TraitsOf returns the traits of a head with these options.
func TraitsOf(options any) Traits {
	if o, ok := options.(HasTraits); ok {
		return o.Traits()
	}
	return Traits{}
}

// Lenses are the Gaussian lenses of a focus head's attention.
type Lenses struct {
	Name  string // see nn.FocusCentre and nn.FocusAperture
	Count int
}

// Logits are a head's outputs for a batch.
type Logits struct {
	Nodes []*nn.Node
	Rows  nn.Rows
}

// LogitsOf returns nodes as the logits of the hidden states seen.
func LogitsOf(seen nn.Hidden, nodes ...*nn.Node) Logits { return Logits{nodes, seen.Rows} }

// Env is what the constructor of a head receives beside its options.
type Env struct {
	Task, Name string        // of the task and of the head
	Output     *outputs.Kind // that the task requires
	Labels     []string      // in the order of their numbers
	Width      int           // of the hidden states
	Dropout    float64       // model.dropout: the default of a head's own
	Training   Training      // statistics of its training data; empty where a trained head is opened
	Params     nn.Params     // the head's subtree of the parameters
	Words      *nn.Param     // the encoder's word embeddings [V D] to tie to, or nil
	Mask       int32         // the mask token; below 0: there is none
	Attention  Attention     // maps of the encoder
	Lenses     []Lenses      // of heads that read the same texts
}

// Attention is the number of attention maps that an encoder returns for a text.
type Attention struct{ Layers, Heads int }

// fixed returns a parameter of the head that gradients do not change.
func (s Env) fixed(name string, values ...float32) *nn.Param {
	w := s.Params.Zeros(name, len(values))
	copy(w.Data, values)
	w.Frozen = true
	return w
}

// LabelsError is the error of a head that needs more labels than Env has.
type LabelsError struct {
	Want int
	Have []string
}

func (e *LabelsError) Error() string {
	have := "none"
	if len(e.Have) > 0 {
		have = fmt.Sprintf("%q", e.Have)
	}
	return fmt.Sprintf("want at least %s, have %s", plugin.Count(e.Want, "label"), have)
}

var registry = plugin.NewRegistry[Env, Head]("head")

// Registry lists the registered heads.
func Registry() *plugin.Registry[Env, Head] { return registry }

// Register registers a head as `type: name`. defaults are the options that a file leaves out; New makes the head. can
// lists the kinds of outputs that it can have: under a task that requires another kind it is refused when the file is
// read. If can is empty, the head's Description has its kind of outputs.
func Register[O any](name string, defaults O, New func(O, Env) (Head, error), can ...*outputs.Kind) {
	plugin.Register(registry, name, defaults, func(o O, s Env) (Head, error) {
		if err := CheckOutput(name, s.Output); err != nil {
			return nil, err
		}
		h, err := New(o, s)
		if err != nil {
			return nil, err
		}
		if own := h.Describe().Output; len(can) == 0 && own != nil && own != s.Output {
			return nil, fmt.Errorf("its output is %s, but task %q requires %s", own, s.Task, s.Output)
		}
		return h, nil
	})
	if len(can) > 0 {
		kindsOf[name] = can
	}
}

// kindsOf are the kinds of outputs of registered heads, by their names; a head registered without kinds has no entry.
var kindsOf = map[string][]*outputs.Kind{}

// CheckOutput returns an error if the head registered as name was registered without outputs of the kind.
func CheckOutput(name string, kind *outputs.Kind) error {
	can, found := kindsOf[name]
	if !found || slices.Contains(can, kind) {
		return nil
	}
	kinds := make([]string, len(can))
	for i, k := range can {
		kinds[i] = k.String()
	}
	return fmt.Errorf("its output is %s, but the task requires %s, the output of %s",
		strings.Join(kinds, " or "), kind, strings.Join(outputting(kind), ", "))
}

// outputting lists the heads that are registered with outputs of a kind, sorted.
func outputting(kind *outputs.Kind) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(kindsOf)) {
		if slices.Contains(kindsOf[name], kind) {
			names = append(names, name)
		}
	}
	return names
}

// defaults are the heads of tasks whose experiment names none.
var defaults = map[*outputs.Kind]string{}

// DefaultFor makes the head registered as name the default of tasks with outputs of one of the kinds.
func DefaultFor(name string, kinds ...*outputs.Kind) {
	for _, k := range kinds {
		defaults[k] = name
	}
}

// Default returns the name of the head of a task with outputs of a kind whose experiment names none: the kind's
// default, else the first by name of the heads that have such outputs, else "".
func Default(kind *outputs.Kind) string {
	if name, ok := defaults[kind]; ok {
		return name
	}
	if names := outputting(kind); len(names) > 0 {
		return names[0]
	}
	return ""
}

// Training is the statistics of a head's training data.
type Training struct {
	Units  int   // labelled units: texts, or words where words have tags
	Counts []int // of the units of each label
	// Mean and Deviation are those of the gold numbers; the deviation is 1 where all are equal.
	Mean, Deviation float64
}

// balance is the factor that gives label c the same total weight as the others; 1 for a label without training data.
func (t Training) balance(c int, many bool) float64 {
	if c >= len(t.Counts) || t.Counts[c] == 0 {
		return 1
	}
	n, all := float64(t.Counts[c]), float64(t.Units)
	if many {
		return math.Max(all-n, 1) / n
	}
	return all / (float64(len(t.Counts)) * n)
}
