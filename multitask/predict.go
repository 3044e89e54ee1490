package multitask

import (
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
)

// Predict returns the predictions of group g for examples, whose Windows are set: predictions[h][b] is that of the
// group's head h for example b. It resets p.
func (m *Model) Predict(p *nn.Pass, g *Group, examples []*corpus.Example) ([][]corpus.Prediction, error) {
	a, err := m.computed(p, g, examples)
	if err != nil {
		return nil, err
	}
	return a.predictions(examples), nil
}

// computed returns the graph of a batch after its Forward. It resets p.
func (m *Model) computed(p *nn.Pass, g *Group, examples []*corpus.Example) (Graph, error) {
	p.Reset(0)
	p.Training = false
	cached := Cached{Model: m, Mode: encoders.Mode{Precision: m.Precision}, Finite: true}
	a, err := cached.Build(p, g, g.Prepared(corpus.Pack(examples), nil))
	if err == nil {
		err = p.Forward()
	}
	return a, err
}

// Answers returns what the heads of group g predict for examples, whose Windows are set, as teachers: answers at a
// temperature, [heads][examples], nil of a head without heads.Soft, and the predictions of Predict. It resets p.
func (m *Model) Answers(p *nn.Pass, g *Group, examples []*corpus.Example, temperature float64) ([][]heads.Answer,
	[][]corpus.Prediction, error) {
	a, err := m.computed(p, g, examples)
	if err != nil {
		return nil, nil, err
	}
	answers := make([][]heads.Answer, len(a.logits))
	for h, head := range g.Heads() {
		if soft := head.Head.Describe().Soft; soft != nil {
			answers[h] = soft.Answers(a.logits[h], examples, temperature)
		}
	}
	return answers, a.predictions(examples), nil
}

// States returns the last states of the encoder for the tokens of examples, whose Windows are set: of each example
// [T D], window after window. It resets p.
func (m *Model) States(p *nn.Pass, g *Group, examples []*corpus.Example) ([][]float32, error) {
	p.Reset(0)
	p.Training = false
	batch := corpus.Pack(examples)
	layers, err := m.Encoder.Encode(p, batch.Tokens, encoders.Mode{Precision: m.Precision, Adapter: g.Adapter})
	if err == nil {
		err = m.checkStates(batch, layers, nil)
	}
	if err != nil {
		return nil, err
	}
	all, width := make([][]float32, len(examples)), m.Encoder.Describe().Width
	for b := range examples {
		from, to := batch.Rows(b)
		all[b] = slices.Clone(layers[len(layers)-1][from*width : to*width])
	}
	return all, nil
}

// StatesError is the error of examples for which the encoder computes states that are no finite numbers, though its
// weights are: predictions would be of the first label, whatever the text is.
type StatesError struct {
	Examples []*corpus.Example
	Numbers  []int // of the examples in their batch, ascending
}

func (s *StatesError) Error() string {
	texts := &BadStep{Texts: s.Examples}
	return NotFinite + ": " + strings.Join(texts.Places(textsShown), ", ")
}

// NotFinite is the error of a text of which the encoder's states are no finite numbers.
const NotFinite = "the encoder's states are not finite: its weights are too large for the text"

// checkStates returns a *StatesError for states of layers [T D] that are not finite, in the rows of the last layer that
// are read, nil for all.
func (m *Model) checkStates(batch *corpus.Batch, layers [][]float32, read []int) error {
	width, rows, states := m.Encoder.Describe().Width, batch.Tokens.Rows, layers[len(layers)-1]
	bad := &StatesError{}
	for text, example := range rows.Example {
		from, to := rows.Starts[text], rows.Starts[text+1]
		finite := true
		if read == nil {
			finite = floats.NotFinite(states[from*width:to*width]) < 0
		}
		for ; len(read) > 0 && read[0] < to; read = read[1:] {
			finite = finite && floats.NotFinite(states[read[0]*width:(read[0]+1)*width]) < 0
		}
		if !finite && !slices.Contains(bad.Numbers, example) {
			bad.Numbers = append(bad.Numbers, example)
			bad.Examples = append(bad.Examples, batch.Examples[example])
		}
	}
	if len(bad.Examples) > 0 {
		return bad
	}
	return nil
}

// predictions returns the predictions of all heads, after the pass's Forward.
func (a Graph) predictions(examples []*corpus.Example) [][]corpus.Prediction {
	var all [][]corpus.Prediction
	types := a.group.types()
	for h, head := range a.group.Heads() {
		predicted := head.Head.Predict(a.logits[h])
		for b, p := range predicted {
			types[h].Output().NamePrediction(p, examples[b], head.Labels)
		}
		all = append(all, predicted)
	}
	return all
}

// Computed is a batch of one group that was computed, with what gradients of its logits need.
type Computed struct {
	Rows nn.Rows // of the batch

	model    *Model
	pass     *nn.Pass
	examples []*corpus.Example
	at       [][]float32 // memory for gradients at the encoder's states; nil before the first
	Graph
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
	layers, err := m.Encoder.Encode(p, batch.Tokens, encoders.Mode{Layers: m.Fusion.Describe().Layers, Words: words,
		Adapter: g.Adapter, Unpacked: m.Precision != nn.Float32})
	if err == nil {
		err = m.checkStates(batch, layers, nil)
	}
	if err != nil {
		return nil, err
	}
	c := &Computed{Rows: batch.Tokens.Rows, model: m, pass: p, examples: examples,
		Graph: m.above(p, g, batch.Tokens.Rows, layers)}
	return c, p.Forward()
}

// Predictions returns those of all heads: see Model.Predict.
func (c *Computed) Predictions() [][]corpus.Prediction { return c.predictions(c.examples) }

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
