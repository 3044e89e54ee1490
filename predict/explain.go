package predict

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// ExplainOptions are what an explanation has.
type ExplainOptions struct {
	Form
	Attention bool // the encoder's attention maps
	Gradients bool // gradient × input of each answer
	// Steps is the number of points of the path of integrated gradients, at most MaxSteps; 0: there are none.
	Steps int
	// MaxTokens is the most tokens of a text in all its windows, 0 for DefaultExplainTokens.
	MaxTokens int
	// Progress, if not nil, is called with how many of the points of a path are done, at first with 0.
	Progress func(done, of int)
	// Reserve, if not nil, is called before the attention maps are computed, with the bytes that they take in an
	// Explanation. Explain returns its error. Where the context has ended, it may be called after Explain has returned.
	Reserve func(bytes int64) error
}

// Bounds of explanations.
const (
	DefaultExplainTokens = 512
	MaxSteps             = 10_000
	maxAnswers           = 64      // of a head with attributions
	maxWeights           = 1 << 25 // of all attention maps, 128 MiB
	explainTokens        = 1024    // of a pass of several points of a path
)

func (o ExplainOptions) check() error {
	switch {
	case o.Steps < 0 || o.Steps > MaxSteps:
		return &CallError{fmt.Errorf("steps: %d: want a number from 0 to %d", o.Steps, MaxSteps)}
	case o.Steps > 0 && !o.Gradients:
		return &CallError{errors.New("steps: integrated gradients need gradients")}
	}
	return nil
}

// ExampleError is the error of an example that a model does not read: a text that is empty or not UTF-8, of a form that
// no task has, or of more tokens than fit into memory.
type ExampleError struct{ Err error }

func (e *ExampleError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ExampleError) Unwrap() error { return e.Err }

type explainer struct {
	*Model
	Explanation
	ctx     context.Context
	options ExplainOptions
	reading *reading
}

func (x *explainer) explain() error {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	all := x.encodings()
	if x.options.Attention && x.options.Reserve != nil {
		weights := int64(0)
		for _, one := range all {
			weights += x.attentionWeights(one.example)
		}
		if err := x.options.Reserve(4 * weights); err != nil {
			return err
		}
	}
	x.Readings = []Reading{}
	for _, one := range all {
		err := x.compute(one)
		if bad := new(multitask.StatesError); errors.As(err, &bad) {
			return refused(one.example, errors.New(multitask.NotFinite))
		}
		if err != nil {
			return err
		}
	}
	x.Prediction = x.reading.prediction

	for task, figures := range x.run.Model.FusionFigures() {
		if x.Prediction.Tasks[task] == nil {
			continue
		}
		if x.FusionFigures == nil {
			x.FusionFigures = map[string][]float32{}
		}
		x.FusionFigures[task] = figures
	}
	about := x.run.Model.Encoder.Describe()
	if x.options.Attention && about.Attention == (encoders.AttentionMaps{}) {
		x.note("the encoder has no attention maps that can be read")
	}
	switch {
	case !x.options.Gradients:
	case about.Precision != nn.Float32:
		x.note("a quantized encoder has no gradients; the run that it was made of has them")
	case about.Words == nil && about.Device != "":
		x.note("the encoder has no gradients on %s; device: cpu has them", about.Device)
	case about.Words == nil:
		x.note("the encoder has no gradients; a transformer with safetensors weights, or a bilstm, has them")
	}
	return nil
}

func (x *explainer) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(x.Notes, text) {
		x.Notes = append(x.Notes, text)
	}
}

type encoding struct {
	group   multitask.Group
	example *corpus.Example
}

// encodings returns the encodings of the example, for the tasks that the form asks for.
func (x *explainer) encodings() (all []encoding) {
	for at, by := range x.reading.by {
		for way, e := range by.encoded {
			if e == nil {
				continue
			}
			group := x.groups[at].tasks[way]
			group.Tasks = slices.DeleteFunc(slices.Clone(group.Tasks), func(t multitask.Task) bool {
				return !x.reading.paired && t.Pairs || !x.reading.form.writes(t.Name)
			})
			if len(group.Tasks) > 0 {
				all = append(all, encoding{group, e})
			}
		}
	}
	return all
}

// attentionWeights returns the number of weights of the encoder's attention maps for all windows of an example.
func (m *Model) attentionWeights(e *corpus.Example) (n int64) {
	maps := m.run.Model.Encoder.Describe().Attention
	for _, w := range e.Windows {
		n += int64(maps.Layers) * int64(maps.Heads) * int64(len(w.IDs)) * int64(len(w.IDs))
	}
	return n
}

func (x *explainer) fits(one encoding) error {
	size := multitask.SizeOf(one.example)
	how, weights := encoders.Workload{Words: x.options.Gradients}, int64(0)
	if x.options.Attention {
		how.Mapped, weights = size.Longest, x.attentionWeights(one.example)
	}
	if weights > maxWeights {
		return refused(one.example, fmt.Errorf("the attention maps of %d tokens have %d weights, at most %d are "+
			"possible; leave attention out, or explain a shorter text", size.Tokens, weights, maxWeights))
	}
	if x.options.Steps > 0 {
		size.Tokens = max(size.Tokens, explainTokens)
	}
	if err := x.run.machine.FitsExplanation(x.run.Model, size, how, 4*weights); err != nil {
		return refused(one.example, err)
	}
	return nil
}

// Explain returns the predictions for an example, and what the model computed on the way to them, in float32 whatever
// Options.Precision is, but of a quantized run in int8. It is an error if the example's text is empty or not UTF-8, if
// no task reads it, or it has too many tokens. Calls at the same time are answered one after the other, beside
// predictions. Where ctx ends before, Explain returns the context's error.
func (m *Model) Explain(ctx context.Context, o ExplainOptions, example *corpus.Example) (Explanation, error) {
	if err := cmp.Or(m.checkForm(o.Form), o.check(), checkTexts(example)); err != nil {
		return Explanation{}, err
	}
	o.Form = *o.Form.clone()
	reading, err := m.read(ctx, example, &o.Form, cmp.Or(o.MaxTokens, DefaultExplainTokens))
	if err != nil {
		return Explanation{}, err
	}
	x := &explainer{Model: m, ctx: ctx, options: o, reading: reading}
	if err := x.reading.prediction.Err; err != nil {
		return Explanation{}, err
	}
	if err := m.explaining.Do(ctx, x); err != nil {
		return Explanation{}, err
	}
	return x.Explanation, nil
}

// Explanation is what the model computed for one text on the way to its predictions.
type Explanation struct {
	Run        string     `json:"run,omitempty"` // its name, where several are served
	Prediction Prediction `json:"prediction"`
	// Readings are the ways in which the text was encoded; tasks that read the same tokens have one together.
	Readings []Reading `json:"readings"`
	// FusionFigures are the fusion's own by task, whatever the text is: those of mix are the weights of the layers.
	FusionFigures map[string][]float32 `json:"fusion_figures,omitempty"`
	// Notes say what the explanation lacks, and why.
	Notes []string `json:"notes,omitempty"`
}

// Reading is one encoding of a text, for the tasks that read it so.
type Reading struct {
	Tasks []string `json:"tasks"`
	// Windows has one, unless the text is long; a pair whose texts are encoded separately has one for each.
	Windows []Window `json:"windows"`
}

// Window is a part of a text that the encoder read at once, of T tokens.
type Window struct {
	Tokens []Token `json:"tokens"`
	// Attention is nil if it was not asked for, or the encoder has none.
	Attention AttentionWeights `json:"attention,omitempty"`
	// Fusion has the weight of each token [T], by task; nil for a fusion without weights.
	Fusion map[string][]float32 `json:"fusion,omitempty"`
	// Lenses are those of focus heads, by task and head.
	Lenses map[string]map[string]Lens `json:"lenses,omitempty"`
	// Answers are the predicted answers and what each token adds to them, by task and head.
	Answers map[string]map[string][]Attribution `json:"answers,omitempty"`
}

// AttentionWeights has the weight of token j (the last index) for token i, [layers][heads][T][T]. They are most of an
// explanation, and their JSON has six decimals.
type AttentionWeights [][][][]float32

// Token is a token as the model reads it.
type Token struct {
	Token string `json:"token"` // of the vocabulary
	In    string `json:"in"`    // special, text or pair
	// Start and End are the token's span of the text or pair, in the unit that was asked for; 0 of special tokens.
	Start int `json:"start"`
	End   int `json:"end"`
}

// Lens is where each token's Gaussian lens is and how wide, both in lengths of the window: position 0 is its first
// token, 1 its last.
type Lens struct {
	Centre   [][]float32 `json:"centre"`   // [lenses][T]
	Aperture [][]float32 `json:"aperture"` // [lenses][T]
}

// Attribution says how much each token adds to the logit of an answer.
type Attribution struct {
	Label string  `json:"label"`          // the answer: a label, a number, the text of a span
	Word  *int    `json:"word,omitempty"` // the word that it is about; nil: the text
	Logit float64 `json:"logit"`          // of a span the sum of those of its start and its end
	// GradientInput is the product of the logit's gradient and the token's word embedding, summed over its features,
	// [T]; nil if it was not asked for, or no gradient reaches the encoder.
	GradientInput []float64 `json:"gradient_input,omitempty"`
	// IntegratedGradients are those from Baseline, the logit with [PAD] in place of all but special tokens, [T]
	// (Sundararajan et al. 2017, equation 1); nil if they were not asked for. Over all windows that the answer is in,
	// they add up to Logit - Baseline.
	IntegratedGradients []float64 `json:"integrated_gradients,omitempty"`
	Baseline            *float64  `json:"baseline,omitempty"`
}
