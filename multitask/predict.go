package multitask

import (
	"context"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
)

// Predict returns the predictions of group g for examples, whose Windows are set: predictions[h][b] is that of the
// group's head h for example b. It resets p.
func (m *Model) Predict(p *nn.Pass, g *Group, examples []*corpus.Example) ([][]corpus.Prediction, error) {
	p.Reset(0)
	p.Training = false
	cached := Cached{Model: m, Mode: encoders.Mode{Precision: m.Precision}}
	a, err := cached.Forward(p, g, g.Prepared(corpus.Pack(examples), nil))
	if err != nil {
		return nil, err
	}
	if err := p.Forward(); err != nil {
		return nil, err
	}
	return a.predictions(g, examples), nil
}

// predictions returns the predictions of all heads of g, after the pass's Forward.
func (a Forwarded) predictions(g *Group, examples []*corpus.Example) [][]corpus.Prediction {
	var all [][]corpus.Prediction
	types := g.types()
	for h, head := range g.Heads() {
		predicted := head.Head.Predict(a.logits[h])
		for b, p := range predicted {
			types[h].Output().NamePrediction(p, examples[b], head.Labels)
		}
		all = append(all, predicted)
	}
	return all
}

// Logits returns the logits of the heads of group g that have a heads.Calibrator, for examples whose Windows are set:
// [heads][examples][windows][labels], nil for other heads. A logit that is not finite is an error. batchSize,
// batchTokens and done are those of Evaluate.
func (m *Model) Logits(ctx context.Context, g *Group, examples []*corpus.Example, batchSize, batchTokens int,
	done func(n int)) ([][][][]float32, error) {
	of := g.Heads()
	all := make([][][][]float32, len(of))
	for h, head := range of {
		if head.Head.Describe().Calibrator != nil {
			all[h] = make([][][]float32, len(examples))
		}
	}
	batches := evaluationBatches(Lengths(examples), batchSize, batchTokens)
	visit := func(pass *nn.Pass, at int, _ *corpus.Batch, a Forwarded) error {
		if err := pass.Forward(); err != nil {
			return err
		}
		for h, head := range of {
			if all[h] == nil {
				continue
			}
			for i, windows := range heads.WindowLogits(a.logits[h]) {
				e := batches[at][i]
				if c, ok := notFinite(windows); ok {
					return fmt.Errorf("%s: head %q: the logit of label %q is not a finite number", examples[e].Place,
						head.Name, head.Labels.Name(c))
				}
				all[h][e] = windows
			}
		}
		if done != nil {
			done(len(batches[at]))
		}
		return nil
	}
	return all, Cached{Model: m}.forEachBatch(ctx, g, examples, batches, visit)
}

func notFinite(windows [][]float32) (label int, ok bool) {
	for _, z := range windows {
		if c := floats.NotFinite(z); c >= 0 {
			return c, true
		}
	}
	return 0, false
}

// Computed is a batch of one group that was computed, with what gradients of its logits need.
type Computed struct {
	Rows nn.Rows // of the batch

	model    *Model
	pass     *nn.Pass
	group    *Group
	examples []*corpus.Example
	at       [][]float32 // memory for gradients at the encoder's states; nil before the first
	Forwarded
}

// Words returns the word embeddings of tokens [T E]; nil if the encoder has none to compute with, or is quantized, so
// that it has no gradients.
func (m *Model) Words(ids ...int32) ([]float32, error) {
	encoder := m.Encoder.Describe()
	if encoder.Words == nil || encoder.Precision != nn.Float32 {
		return nil, nil
	}
	return encoder.Words.Embed(ids)
}

// Compute computes the logits of group g for examples, whose Windows are set, in float32. p has been reset. With words
// [T E], these take the place of the tokens' word embeddings, and Gradient can be called; the encoder must
// have encoders.Words.
func (m *Model) Compute(p *nn.Pass, g *Group, examples []*corpus.Example, words []float32) (*Computed, error) {
	p.Training = false
	batch := g.Prepared(corpus.Pack(examples), nil)
	g.observe(p, batch.Tokens.Rows)
	layers, err := m.Encoder.Encode(p, batch.Tokens, encoders.Mode{Layers: m.wanted(), Words: words,
		Adapter: g.Adapter, Unpacked: m.Precision != nn.Float32})
	if err != nil {
		return nil, err
	}
	c := &Computed{Rows: batch.Tokens.Rows, model: m, pass: p, group: g, examples: examples,
		Forwarded: m.above(p, g, batch.Tokens.Rows, layers)}
	return c, p.Forward()
}

// Predictions returns those of all heads: see Model.Predict.
func (c *Computed) Predictions() [][]corpus.Prediction { return c.predictions(c.group, c.examples) }

// Shape returns the shape of the first node of logits of the group's head h.
func (c *Computed) Shape(h int) []int { return c.logits[h].Nodes[0].Shape() }

// Logits returns the values of that node.
func (c *Computed) Logits(h int) []float32 { return nn.Values(c.logits[h].Nodes[0]) }

// Gradient returns the gradient of the sum of some of those values at the words [T E], valid until the next call; nil
// if the encoder receives none from the head.
func (c *Computed) Gradient(h int, indices []int) ([]float32, error) {
	sum := nn.Operation{
		Name: "sum of logits",
		Forward: func(in [][]float32, out []float32) {
			for _, i := range indices {
				out[0] += in[0][i]
			}
		},
		Backward: func(_ [][]float32, _, dOut []float32, dIn [][]float32) {
			for _, i := range indices {
				dIn[0][i] += dOut[0]
			}
		},
	}.Apply(c.logits[h].Nodes[0])
	if c.at == nil {
		for range c.Border {
			c.at = append(c.at, c.pass.Scratch(c.Rows.Tokens()*c.model.Encoder.Describe().Width))
		}
	}
	for _, d := range c.at {
		clear(d)
	}
	if err := c.pass.Backward(sum, 1, nn.Gradients{}, c.Border, c.at); err != nil {
		return nil, err
	}
	isNotZero := func(v float32) bool { return v != 0 }
	if !slices.ContainsFunc(c.at, func(d []float32) bool { return slices.ContainsFunc(d, isNotZero) }) {
		return nil, nil
	}
	return c.model.Encoder.Describe().Words.Backward(c.pass, c.at), nil
}
