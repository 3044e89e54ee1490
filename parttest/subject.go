package parttest

import (
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/internal/floats"
	"github.com/jenga-nlp/jenga/nn"
)

// maker makes the head under test, with its parameters below the root that it returns.
type maker func(seed uint64) (heads.Head, nn.Params, error)

// subject is a head under test.
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

// fit fits the head to a batch.
func (s subject) fit(t *testing.T, b batch) {
	t.Helper()
	fitter := s.Head.(heads.Fitter)
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
	if w, watches := s.Head.(heads.Observer); watches && !training {
		w.Observe(p.Pass, b.rows)
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

// backward returns the gradients of the loss at the parameters and at the hidden states.
func (s subject) backward(t *testing.T, p pass) (nn.Gradients, [][]float32) {
	t.Helper()
	into, dAt := nn.NewGradients(s.params), make([][]float32, len(p.at))
	for i, n := range p.at {
		dAt[i] = make([]float32, len(nn.Values(n)))
	}
	if err := p.Backward(p.loss, 1, into, p.at, dAt); err != nil {
		t.Fatalf("backward: %v", err)
	}
	return into, dAt
}

// train updates the head's parameters; if it has none, the hidden states are trained instead.
func (s subject) train(t *testing.T, b batch, steps int) {
	t.Helper()
	optimizer := nn.NewAdamW(0)
	if len(s.params) == 0 {
		states := nn.NewParams(1).Zeros("states", len(b.states))
		for step := range steps {
			copy(states.Data, b.states)
			p := s.runStep(t, uint64(step), b, true, true)
			p.value(t)
			_, dAt := s.backward(t, p)
			into := nn.NewGradients([]*nn.Param{states})
			copy(into.Of(states), dAt[0])
			optimizer.Step([]*nn.Param{states}, into, 1, 0.05)
			copy(b.states, states.Data)
		}
		return
	}
	for step := range steps {
		p := s.runStep(t, uint64(step), b, true, true)
		p.value(t)
		into, _ := s.backward(t, p)
		optimizer.Step(s.params, into, 1, 0.05)
	}
}
