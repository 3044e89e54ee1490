package parttest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// chosen returns what makes the part registered as name with options written as YAML.
func chosen[E, P any](t *testing.T, registry *plugin.Registry[E, P], name, options string) func(E) (P, error) {
	t.Helper()
	choice, err := registry.FromString(name, options)
	if err != nil {
		t.Fatalf("%s %q with options %q: %v", registry.Kind(), name, options, err)
	}
	checkOptions(t, choice.Options)
	return choice.Build
}

// built is chosen of a part that must be possible.
func built[E, P any](t *testing.T, registry *plugin.Registry[E, P], name, options string, env E) P {
	t.Helper()
	part, err := chosen(t, registry, name, options)(env)
	if err != nil {
		t.Fatalf("%s %q with options %q: %v", registry.Kind(), name, options, err)
	}
	return part
}

// maker makes the head under test, with its parameters below the root that it returns.
type maker func(seed uint64) (heads.Head, nn.Params, error)

type subject struct {
	heads.Head
	params []*nn.Param
	layers nn.LayerSet
}

func (m maker) subject(t *testing.T, seed uint64) subject {
	t.Helper()
	h, params, err := m(seed)
	if err != nil {
		t.Fatalf("made once, but not again: %v", err)
	}
	s := subject{Head: h, params: params.All()}
	if f, ok := h.(*fused); ok {
		s.layers = f.wanted
	}
	return s
}

func (s subject) fit(t *testing.T, b batch) {
	t.Helper()
	fitter := s.Describe().Fitter
	features := fitter.Features(s.run(t, b, false, false).logits)
	var rows [][]float32
	for _, e := range fitter.Choose(b.gold) {
		rows = append(rows, features[e])
	}
	if len(rows) == 0 {
		t.Fatal("Choose returns no text")
	}
	fitter.Fit(rows)
}

// pass is a forward pass of a batch through a head.
type pass struct {
	*nn.Pass
	at     []*nn.Node // the hidden states of each layer that the head receives
	seen   nn.Hidden
	logits heads.Logits
	loss   *nn.Node // nil: nothing is labelled
}

// run makes a forward pass of a batch, with the loss if loss is set.
func (s subject) run(t *testing.T, b batch, training, loss bool) pass {
	t.Helper()
	return s.runStep(t, 0, b, training, loss)
}

// runStep is run with the dropout masks of a step.
func (s subject) runStep(t *testing.T, step uint64, b batch, training, loss bool) pass {
	t.Helper()
	p := pass{Pass: nn.NewPass(7)}
	p.Reset(step)
	p.Training = training
	p.seen.Rows = b.rows
	given := 1
	if s.layers == nn.AllLayers {
		given = layers
	}
	for l := range given { // each layer differs from the last one by a factor
		states := slices.Clone(b.states)
		for i := range states {
			states[i] *= 1 + 0.5*float32(given-1-l)
		}
		p.at = append(p.at, p.Input(states, b.rows.Tokens(), width))
	}
	p.seen.States = p.at[given-1]
	if s.layers == nn.AllLayers {
		p.seen.Layers = p.at
	}
	if observe := s.Describe().Observe; observe != nil && !training {
		observe(p.Pass, b.rows)
		b.showAttention(p.Pass)
	}
	p.logits = s.Logits(p.Pass, p.seen)
	if len(p.logits.Nodes) == 0 {
		t.Fatal("Logits returns no nodes")
	}
	if loss {
		p.loss = s.Loss(p.Pass, p.logits, b.gold)
	}
	if err := p.Forward(); err != nil {
		t.Fatalf("forward: %v", err)
	}
	return p
}

// value returns the loss, which must not be nil.
func (p pass) value(t *testing.T) float64 {
	t.Helper()
	if p.loss == nil {
		t.Fatal("Loss is nil, yet the batch is labelled")
	}
	v := float64(nn.Values(p.loss)[0])
	if !floats.IsFinite(v) {
		t.Fatalf("the loss is %v", v)
	}
	return v
}

// predict returns the predictions for a batch outside of training.
func (s subject) predict(t *testing.T, b batch) []corpus.Prediction {
	t.Helper()
	return s.Predict(s.run(t, b, false, false).logits)
}

func (s subject) backward(t *testing.T, p pass) (nn.Gradients, [][]float32) {
	t.Helper()
	return p.gradients(t, s.params, p.at)
}

// gradients returns those of the loss at parameters and at nodes.
func (p pass) gradients(t *testing.T, params []*nn.Param, at []*nn.Node) (nn.Gradients, [][]float32) {
	t.Helper()
	into, dAt := nn.NewGradients(params), make([][]float32, len(at))
	for i, n := range at {
		dAt[i] = make([]float32, len(nn.Values(n)))
	}
	if err := p.Backward(p.loss, 1, into, at, dAt); err != nil {
		t.Fatalf("backward: %v", err)
	}
	return into, dAt
}

// train updates the head's parameters; if it has none, the hidden states are trained instead.
func (s subject) train(t *testing.T, b batch, steps int) {
	t.Helper()
	optimizer, params := nn.NewAdamW(0), s.params
	if len(params) == 0 {
		params = []*nn.Param{nn.NewParams(1).Zeros("states", len(b.states))}
		params[0].Data = b.states
	}
	for step := range steps {
		p := s.runStep(t, uint64(step), b, true, true)
		p.value(t)
		into, dAt := s.backward(t, p)
		if len(s.params) == 0 {
			into = nn.NewGradients(params)
			copy(into.Of(params[0]), dAt[0])
		}
		optimizer.Step(params, into, 1, 0.05)
	}
}

const (
	width  = 8 // of the hidden states
	layers = 3 // whose states a fusion may read
)

// text is one text as an encoder would return it.
type text struct {
	SampleText
	states, second []float32 // [T width] of its tokens, and of those of its second text
	gold           corpus.Target
}

// lengths are the words of the labelled texts.
var lengths = []int{3, 1, LongestSample, 2, 4, 5}

// labelledTexts returns texts of 1 to 7 words whose states signal the target. The longest is truncated: its last word
// has no row.
func labelledTexts(kind *outputs.Kind) []text {
	r := rand.New(rand.NewPCG(1, 2))
	set := corpus.NewLabels(labels)
	texts := make([]text, len(lengths))
	for i, words := range lengths {
		x := &texts[i]
		x.gold, x.SampleText = samples[kind].Text(i, words, set)
		x.second, x.states = statesOf(r, x.Second), statesOf(r, x.Tokens)
	}
	return texts
}

// statesOf returns the states of tokens: noise, and 2 more in the features that are raised.
func statesOf(r *rand.Rand, tokens []SampleToken) []float32 {
	states := make([]float32, len(tokens)*width)
	for row, token := range tokens {
		for j := range width {
			states[row*width+j] = float32(r.NormFloat64())
		}
		for _, feature := range token.Signals {
			states[row*width+feature] += 2
		}
	}
	return states
}

// lone is a text truncated to its first special token.
func lone(kind *outputs.Kind) text {
	x := labelledTexts(kind)[0]
	x.states, x.Tokens = x.states[:width], x.Tokens[:1]
	if truncate := samples[kind].FirstToken; truncate != nil {
		x.gold = truncate(x.gold)
	}
	return x
}

// attention is the number of attention maps of a text.
var attention = heads.Attention{Layers: 2, Heads: 1}

// showAttention emits maps of each text that depend on its states.
func (b batch) showAttention(p *nn.Pass) {
	for text := range b.rows.Texts() {
		lo, hi := b.rows.Starts[text], b.rows.Starts[text+1]
		tokens := hi - lo
		for layer := range attention.Layers {
			maps := make([]float32, 0, tokens*tokens)
			for i := range tokens {
				row := make([]float32, tokens)
				for j := range row {
					row[j] = b.states[(lo+i)*width+layer] * b.states[(lo+j)*width+layer+1]
				}
				maps = append(maps, nn.Softmax(row)...)
			}
			p.Emit(nn.AttentionMaps(layer), text, []int{attention.Heads, tokens, tokens}, maps)
		}
	}
}

type batch struct {
	states []float32 // [T width]
	rows   nn.Rows
	gold   []corpus.Target
}

func pack(texts ...text) batch {
	b := batch{rows: nn.Rows{Starts: []int{0}}}
	for i, x := range texts {
		b.addExample(i, x)
	}
	return b
}

// packWindows packs each text of a kind as two windows of one example. The states of the second are those of the first
// times by. Second texts of pairs have one window.
func packWindows(kind *outputs.Kind, by float32, texts ...text) batch {
	b := batch{rows: nn.Rows{Starts: []int{0}}}
	for i, x := range texts {
		b.add(x, i, false)
		x.states = slices.Clone(x.states)
		for k := range x.states {
			x.states[k] *= by
		}
		if in := samples[kind].InWindows; in != nil {
			x.gold = in(x.gold, 2)
		}
		b.addExample(i, x)
	}
	return b
}

// addExample appends the last window of example number i, and its second text if it is a pair.
func (b *batch) addExample(i int, x text) {
	b.add(x, i, false)
	b.gold = append(b.gold, x.gold)
	if x.Second != nil {
		b.add(text{SampleText: SampleText{Tokens: x.Second}, states: x.second}, i, true)
	}
}

func (b *batch) add(x text, i int, second bool) {
	rows := &b.rows
	for k, token := range x.Tokens {
		row := rows.Tokens() + k
		if token.Word >= 0 {
			rows.Words, rows.WordIndex = append(rows.Words, row), append(rows.WordIndex, token.Word)
		}
		if token.Hidden && x.gold != nil {
			rows.Hidden = append(rows.Hidden, row)
		}
		rows.Segment = append(rows.Segment, token.Segment)
	}
	b.states = append(b.states, x.states...)
	rows.Starts = append(rows.Starts, len(b.states)/width)
	rows.WordCount = append(rows.WordCount, x.WordCount)
	rows.Example, rows.Second = append(rows.Example, i), append(rows.Second, second)
}
