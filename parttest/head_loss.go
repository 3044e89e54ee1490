package parttest

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

func checkTrains(t *testing.T, m maker, b batch) {
	const steps = 60
	s := m.subject(t, 1)
	before := s.run(t, b, false, true).value(t)
	s.train(t, b, steps)
	after := s.run(t, b, false, true).value(t)
	if !(after <= 0.7*before) {
		t.Errorf("%d steps take the loss from %.4g to %.4g, want at most %.4g: are all parameters in "+
			"Operation.Params or Pass.Param?",
			steps, before, after, 0.7*before)
	}
}

// checkGradients compares each parameter's gradient with central differences of the loss, along the gradient and along
// a random direction. through says that the encoder receives a gradient from the head.
func checkGradients(t *testing.T, m maker, b batch, through bool) {
	s := m.subject(t, 1)
	learning := slices.DeleteFunc(slices.Clone(s.params), func(w *nn.Param) bool { return w.Frozen })
	for i, w := range learning { // initial values are so small that errors would not show
		for j, x := range direction(uint64(i), len(w.Data)) {
			w.Data[j] += 0.3 * x
		}
	}
	p := s.run(t, b, true, true)
	p.value(t)
	into, dAt := s.backward(t, p)
	loss := func() float64 { return s.run(t, b, true, true).value(t) }

	total := 0.0
	for _, w := range learning {
		total += norm(into.Of(w)) * norm(into.Of(w))
	}
	total = math.Sqrt(total)
	for i, w := range learning {
		checkAlong(t, "parameter "+w.Name, w.Data, into.Of(w), into.Of(w), total, loss)
		checkAlong(t, "parameter "+w.Name, w.Data, into.Of(w), direction(uint64(i), len(w.Data)), total, loss)
	}
	if !through && norm(dAt[0]) != 0 {
		t.Error("the encoder has a gradient from a head that is detached")
	}
	if len(p.at) == 1 && through {
		checkAlong(t, "hidden states", b.states, dAt[0], dAt[0], norm(dAt[0]), loss)
		checkAlong(t, "hidden states", b.states, dAt[0], direction(99, len(b.states)), norm(dAt[0]), loss)
	}
}

// checkAlong compares the slope of the loss along a direction of x with the gradient's. The tolerance is relative to
// the gradient's norm, plus a small fraction of the norm of all gradients for rounding where a gradient is nearly 0.
func checkAlong(t *testing.T, what string, x, gradient, along []float32, total float64, loss func() float64) {
	t.Helper()
	length := norm(along)
	if length == 0 {
		along, length = direction(5, len(x)), norm(direction(5, len(x)))
	}
	const h = 5e-3
	saved := slices.Clone(x)
	at := func(step float64) float64 {
		for i := range x {
			x[i] = saved[i] + float32(step*float64(along[i])/length)
		}
		return loss()
	}
	slope := (at(h) - at(-h)) / (2 * h)
	copy(x, saved)
	predicted := 0.0
	for i, g := range gradient {
		predicted += float64(g) * float64(along[i]) / length
	}
	if !(math.Abs(slope-predicted) <= 0.01*norm(gradient)+1e-3*total+1e-4) {
		t.Errorf("gradient of %s: the loss changes by %.5g along a direction where Backward says %.5g", what, slope,
			predicted)
	}
}

// direction returns n values between -1 and 1 that are the same each time.
func direction(seed uint64, n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(math.Sin(float64(seed*1000+uint64(i)*7919) + 1))
	}
	return x
}

func norm(x []float32) float64 {
	sum := 0.0
	for _, v := range x {
		sum += float64(v) * float64(v)
	}
	return math.Sqrt(sum)
}

func checkFrozen(t *testing.T, m maker, b batch) {
	s := m.subject(t, 1)
	p := s.run(t, b, true, true)
	p.value(t)
	want, dAt := s.backward(t, p)
	into := nn.NewGradients(s.params)
	if err := p.Backward(p.loss, 1, into, nil, nil); err != nil {
		t.Fatalf("backward without the hidden states' gradient: %v", err)
	}
	for _, w := range s.params {
		if !slices.Equal(into.Of(w), want.Of(w)) {
			t.Errorf("parameter %s has another gradient where the input takes none", w.Name)
		}
	}
	again := make([][]float32, len(dAt))
	for i := range dAt {
		again[i] = make([]float32, len(dAt[i]))
	}
	if err := p.Backward(p.loss, 1, nn.Gradients{}, p.at, again); err != nil {
		t.Fatalf("backward with frozen parameters: %v", err)
	}
	if !reflect.DeepEqual(again, dAt) {
		t.Error("the hidden states have another gradient where the parameters take none")
	}
	into, dAt = s.backward(t, p)
	for _, w := range s.params {
		if !sameBits(into.Of(w), want.Of(w)) {
			t.Errorf("parameter %s has another gradient after a backward pass without parameters", w.Name)
		}
	}
	if !reflect.DeepEqual(again, dAt) {
		t.Error("the hidden states have another gradient after a backward pass without parameters")
	}
}

func checkOneToken(t *testing.T, m maker, kind *outputs.Kind) {
	s := m.subject(t, 1)
	b := pack(lone(kind))
	p := s.run(t, b, true, true)
	if p.loss != nil {
		p.value(t)
		s.backward(t, p)
	}
	if got := s.Predict(p.logits); len(got) != 1 {
		t.Errorf("%d predictions, want 1", len(got))
	}
}

func checkUnlabelled(t *testing.T, m maker, kind *outputs.Kind, texts []text) {
	s := m.subject(t, 1)
	without := make([]text, len(texts))
	for i, x := range texts {
		without[i] = unlabelled(x)
	}
	b := pack(without...)
	if units := s.Units(b.gold); units != 0 {
		t.Errorf("Units = %v, want 0", units)
	}
	p := s.run(t, b, true, true)
	if p.loss != nil {
		t.Error("Loss is not nil")
	}
	if got := s.Predict(p.logits); len(got) != len(texts) {
		t.Errorf("%d predictions, want %d", len(got), len(texts))
	}
	learned := 0
	for _, x := range texts {
		if kind.Sample().Learned(x.gold) {
			learned++
		}
	}
	if units := s.Units(pack(texts...).gold); units < float64(learned) {
		t.Errorf("Units = %v for %d labelled texts", units, learned)
	}
}

func checkSum(t *testing.T, m maker, texts []text) {
	s := m.subject(t, 1)
	want := 0.0
	for _, x := range texts {
		if s.Units(pack(x).gold) > 0 {
			want += s.run(t, pack(x), false, true).value(t)
		}
	}
	got := s.run(t, pack(texts...), false, true).value(t)
	if want == 0 {
		want = got // a loss that compares texts has none for a single one
	}
	if !(math.Abs(got-want) <= 1e-4*math.Abs(want)) {
		t.Errorf("the loss of all texts is %.6g, the sum of each text's %.6g", got, want)
	}
	more := append(slices.Clone(texts), unlabelled(texts[0]))
	if got := s.run(t, pack(more...), false, true).value(t); !(math.Abs(got-want) <= 1e-4*math.Abs(want)) {
		t.Errorf("a text without a label takes the loss from %.6g to %.6g", want, got)
	}
}

// checkWindows compares texts in two equal windows with the same texts in one.
func checkWindows(t *testing.T, s subject, kind *outputs.Kind, texts []text) {
	t.Helper()
	once, twice := pack(texts...), packWindows(kind, 1, texts...)
	one, two := s.run(t, once, false, true), s.run(t, twice, false, true)
	if got, want := s.Predict(two.logits), s.Predict(one.logits); !reflect.DeepEqual(got, want) {
		t.Errorf("of texts in two windows that are alike it predicts\n%s\nof the same in one\n%s", show(got...),
			show(want...))
	}
	if (one.loss == nil) != (two.loss == nil) {
		t.Fatal("in two windows there is a loss, in one there is none, or the other way round")
	}
	if one.loss == nil {
		return
	}
	want, got := one.value(t)/s.Units(once.gold), two.value(t)/s.Units(twice.gold)
	if !(math.Abs(got-want) <= 1e-4*math.Abs(want)) {
		t.Errorf("the loss of a unit is %.6g in two windows that are alike, %.6g in one", got, want)
	}
}

func checkLogitsUnchanged(t *testing.T, m maker, b batch) {
	s := m.subject(t, 1)
	without := s.run(t, b, false, false)
	with := s.run(t, b, false, true)
	s.backward(t, with)
	for i, n := range with.logits.Nodes {
		if !sameBits(nn.Values(n), nn.Values(without.logits.Nodes[i])) {
			t.Errorf("logits node %d differs from that without the loss", i)
		}
	}
}
