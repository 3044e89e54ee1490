package predict

import (
	"cmp"
	"context"
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
	// Explanation. Explain returns its error.
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

// check returns an error for options that are outside their bounds.
func (o ExplainOptions) check() error {
	switch {
	case o.Steps < 0 || o.Steps > MaxSteps:
		return fmt.Errorf("steps %d: want a number from 0 to %d", o.Steps, MaxSteps)
	case o.Steps > 0 && !o.Gradients:
		return fmt.Errorf("steps %d: integrated gradients are gradients, which are turned off", o.Steps)
	}
	return nil
}

// Explain returns the predictions for an example, and what the model computed on the way to them, in float32, of a
// quantized run in int8. It is an error if the example's text is empty or not UTF-8, if no task reads it, or it has too
// many tokens. Explain ends early where ctx does.
func (p *Predictor) Explain(ctx context.Context, o ExplainOptions, e *corpus.Example) (Explanation, error) {
	r, err := p.readExplained(o, e)
	if err != nil {
		return Explanation{}, err
	}
	return p.explain(ctx, o, r)
}

// readExplained encodes an example that is explained. Several goroutines may call it at once.
func (p *Predictor) readExplained(o ExplainOptions, e *corpus.Example) (reading, error) {
	if err := o.check(); err != nil {
		return reading{}, err
	}
	if err := checkTexts(e); err != nil {
		return reading{}, &ExampleError{err}
	}
	r := p.read(e, o.Form)
	if r.err != nil {
		return reading{}, &ExampleError{r.err}
	}
	if most := cmp.Or(o.MaxTokens, DefaultExplainTokens); r.tokens > most {
		return reading{}, &LengthError{e.Place, r.tokens, most}
	}
	if !o.Attention || o.Reserve == nil {
		return r, nil
	}
	weights := int64(0)
	for _, one := range p.encodings(r) {
		weights += p.attentionWeights(one.example)
	}
	return r, o.Reserve(4 * weights)
}

// explain explains an example that was read.
func (p *Predictor) explain(ctx context.Context, o ExplainOptions, r reading) (Explanation, error) {
	x := &explainer{Predictor: p, ctx: ctx, options: o}
	x.Prediction, x.Readings = newPrediction(r), []Reading{}
	for _, by := range r.by {
		x.Prediction.Truncated = max(x.Prediction.Truncated, by.truncated)
		x.Prediction.Windows = max(x.Prediction.Windows, by.windows)
	}
	for _, one := range p.encodings(r) {
		if err := x.read(one); err != nil {
			return Explanation{}, err
		}
	}
	return x.explanation(), nil
}

// ExampleError is the error of an example that has no explanation or embedding.
type ExampleError struct{ Err error }

func (e *ExampleError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *ExampleError) Unwrap() error { return e.Err }

// explainer collects the explanation of one example.
type explainer struct {
	*Predictor
	Explanation
	ctx     context.Context
	options ExplainOptions
}

// explanation returns the whole.
func (x *explainer) explanation() Explanation {
	for task, figures := range x.model.FusionFigures() {
		if x.Prediction.Tasks[task] == nil {
			continue
		}
		if x.FusionFigures == nil {
			x.FusionFigures = map[string][]float32{}
		}
		x.FusionFigures[task] = figures
	}
	about := x.model.Encoder.Describe()
	if x.options.Attention && about.Attention == (encoders.AttentionMaps{}) {
		x.note("the encoder has no attention maps that can be read")
	}
	_, ok := x.model.Encoder.(encoders.Attributable)
	switch {
	case !x.options.Gradients:
	case about.Precision != nn.Float32:
		x.note("a quantized encoder has no gradients; the run that it was made of has them")
	case !ok:
		x.note("the encoder has no gradients; a transformer with safetensors weights, or a bilstm, has them")
	}
	return x.Explanation
}

// note adds a note, once.
func (x *explainer) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(x.Notes, text) {
		x.Notes = append(x.Notes, text)
	}
}

// encoding is an example with its tokens, and the tasks that read it so.
type encoding struct {
	group   multitask.Group
	example *corpus.Example
}

// encodings returns the encodings of an example that was read, for the tasks that its form asks for.
func (p *Predictor) encodings(r reading) (all []encoding) {
	for at, by := range r.by {
		for _, one := range p.groups[at].encodings(by) {
			one.group.Tasks = slices.DeleteFunc(slices.Clone(one.group.Tasks), func(t multitask.Task) bool {
				return !r.Paired && t.Pairs || !r.form.writes(t.Name)
			})
			if len(one.group.Tasks) > 0 {
				all = append(all, one)
			}
		}
	}
	return all
}

// encodings returns the encodings of an example that was read.
func (g *windowGroup) encodings(by groupReading) (all []encoding) {
	if by.text != nil && by.words != nil && sameTokens(by.text, by.words) {
		both := multitask.Group{Tasks: slices.Concat(g.text.Tasks, g.words.Tasks), Adapter: g.adapter}
		return []encoding{{both, by.words}}
	}
	if by.text != nil {
		all = append(all, encoding{g.text, by.text})
	}
	if by.words != nil {
		all = append(all, encoding{g.words, by.words})
	}
	return all
}

// attentionWeights returns the number of weights of the encoder's attention maps for all windows of an example.
func (p *Predictor) attentionWeights(e *corpus.Example) (n int64) {
	maps := p.model.Encoder.Describe().Attention
	for _, w := range e.Windows {
		n += int64(maps.Layers) * int64(maps.Heads) * int64(len(w.IDs)) * int64(len(w.IDs))
	}
	return n
}

// fits returns an error for an encoding whose explanation is too large.
func (x *explainer) fits(one encoding) error {
	size := multitask.SizeOf(one.example)
	how, weights := encoders.Workload{Words: x.options.Gradients}, int64(0)
	if x.options.Attention {
		how.Mapped, weights = size.Longest, x.attentionWeights(one.example)
	}
	if weights > maxWeights {
		return &ExampleError{fmt.Errorf("the attention maps of %d tokens have %d weights, at most %d are possible; "+
			"leave attention out, or explain a shorter text", size.Tokens, weights, maxWeights)}
	}
	if x.options.Steps > 0 {
		size.Tokens = max(size.Tokens, explainTokens)
	}
	if err := x.machine.FitsExplanation(x.model, size, how, 4*weights); err != nil {
		return &ExampleError{err}
	}
	return nil
}
