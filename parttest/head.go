package parttest

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// Head checks the head registered as name, made with options written as YAML ("dropout: 0.2"; "" for the defaults),
// for each kind of outputs that it has.
func Head(t *testing.T, name, options string) {
	t.Helper()
	made := chosen(t, heads.Registry(), name, options)
	served, refusals := 0, []string{}
	for _, kind := range sampled() {
		build := func(seed uint64) (heads.Head, nn.Params, error) {
			params := nn.NewParams(seed)
			h, err := made(headEnv(kind, params))
			return h, params, err
		}
		h, _, err := build(1)
		if err != nil {
			refusals = append(refusals, err.Error())
			continue
		}
		served++
		check := checkHead
		if h.Describe().Fitter != nil {
			check = checkFitter
		}
		t.Run(kind.String(), func(t *testing.T) { check(t, kind, build) })
	}
	if served == 0 {
		t.Fatalf("head %q refuses each kind of outputs with a sample (AddSample adds one of a kind of your own):\n%s",
			name, strings.Join(refusals, "\n"))
	}
}

func headEnv(kind *outputs.Kind, params nn.Params) heads.Env {
	env := heads.Env{Task: "task", Name: "head", Output: kind, Labels: labels, Width: width,
		Dropout: 0.1, Training: heads.Training{Units: 6, Counts: []int{2, 2, 2}, Mean: 0.9, Deviation: 0.8},
		Attention: attention, Params: params.In("heads").In("head")}
	if kind.HidesTokens {
		env.Mask, env.Words = 1, params.In("encoder").Normal("words", 1, len(labels), width)
	}
	return env
}

// sampled lists the kinds of outputs that have test data.
func sampled() []*outputs.Kind {
	return slices.DeleteFunc(outputs.Kinds(), func(k *outputs.Kind) bool { return samples[k].Text == nil })
}

func checkHead(t *testing.T, kind *outputs.Kind, m maker) {
	texts := labelledTexts(kind)
	t.Run("it trains: the loss falls", func(t *testing.T) { checkTrains(t, m, pack(texts...)) })
	t.Run("gradients agree with differences of the loss, dropout on", func(t *testing.T) {
		checkGradients(t, m, pack(texts...), !samples[kind].Detached)
	})
	t.Run("a frozen input changes no gradient", func(t *testing.T) { checkFrozen(t, m, pack(texts...)) })
	t.Run("a text of one token has a prediction", func(t *testing.T) { checkOneToken(t, m, kind) })
	t.Run("unlabelled texts have predictions but no loss", func(t *testing.T) {
		checkUnlabelled(t, m, kind, texts)
	})
	t.Run("the loss is a sum over texts, or compares them", func(t *testing.T) { checkSum(t, m, texts) })
	t.Run("the loss does not change the logits", func(t *testing.T) { checkLogitsUnchanged(t, m, pack(texts...)) })
	t.Run("its description is consistent", func(t *testing.T) { checkHeadDescription(t, m.untrained(t), kind) })
	t.Run("a text in two windows has the gradients of one", func(t *testing.T) {
		if kind.HidesTokens {
			t.Skip("each window hides tokens of its own")
		}
		checkGradients(t, m, packWindows(kind, 1.5, texts...), !samples[kind].Detached)
	})
	t.Run("it reads the states that Reads returns, and no others",
		func(t *testing.T) { checkReads(t, m.untrained(t), pack(texts...)) })
	checkPredictions(t, kind, m, m.untrained, func(s subject) { s.train(t, pack(texts...), 3) })
}

// checkPredictions checks what the head that made makes predicts, and that what learn changes is saved.
func checkPredictions(t *testing.T, kind *outputs.Kind, m maker, made func(t *testing.T) subject, learn func(subject)) {
	texts := labelledTexts(kind)
	t.Run("predictions are of the required kind",
		func(t *testing.T) { checkKinds(t, made(t), kind, pack(texts...)) })
	t.Run("it saves, loads and predicts the same", func(t *testing.T) {
		trained := made(t)
		learn(trained)
		checkLoaded(t, trained, m.subject(t, 2), pack(texts...))
	})
	t.Run("predictions do not depend on the rest of the batch", func(t *testing.T) { checkCompany(t, made(t), texts) })
	if !kind.HidesTokens { // each window hides tokens of its own
		t.Run("a text in two windows is one example", func(t *testing.T) { checkWindows(t, made(t), kind, texts) })
	}
	t.Run("NaN does not make it panic", func(t *testing.T) { checkNaN(t, made(t), pack(texts...)) })
}

func checkFitter(t *testing.T, kind *outputs.Kind, m maker) {
	texts := labelledTexts(kind)
	fitted := func(t *testing.T) subject {
		s := m.subject(t, 1)
		s.fit(t, pack(texts...))
		return s
	}
	t.Run("fitting changes what it predicts", func(t *testing.T) {
		b := pack(texts...)
		without, with := m.untrained(t), fitted(t)
		if reflect.DeepEqual(without.predict(t, b), with.predict(t, b)) {
			t.Error("it predicts the same: fitted values must be in its env's Params")
		}
	})
	t.Run("it has no loss", func(t *testing.T) {
		b := pack(texts...)
		s := fitted(t)
		if p := s.run(t, b, true, true); p.loss != nil || s.Units(b.gold) != 0 {
			t.Error("a head that is fitted learns nothing by gradients")
		}
	})
	checkPredictions(t, kind, m, fitted, func(subject) {})
}

func (m maker) untrained(t *testing.T) subject { t.Helper(); return m.subject(t, 1) }

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
	shift(learning)
	p := s.run(t, b, true, true)
	p.value(t)
	into, dAt := s.backward(t, p)
	loss := func() float64 { return s.run(t, b, true, true).value(t) }
	checkSlopes(t, learning, into, loss)
	if !through && norm(dAt[0]) != 0 {
		t.Error("the encoder has a gradient from a head that is detached")
	}
	if len(p.at) == 1 && through {
		checkSlope(t, "hidden states", b.states, dAt[0], 99, norm(dAt[0]), loss)
	}
}

// shift takes parameters far from their initial values, which are so small that errors would not show.
func shift(params []*nn.Param) {
	for i, w := range params {
		for j, x := range direction(uint64(i), len(w.Data)) {
			w.Data[j] += 0.3 * x
		}
		w.Changed()
	}
}

// checkSlopes compares the slope of the loss with the gradient of each parameter, and returns the norm of all.
func checkSlopes(t *testing.T, params []*nn.Param, into nn.Gradients, loss func() float64) (total float64) {
	t.Helper()
	for _, w := range params {
		total = math.Hypot(total, norm(into.Of(w)))
	}
	for i, w := range params {
		checkSlope(t, "parameter "+w.Name, w.Data, into.Of(w), uint64(i), total, loss)
	}
	return total
}

// checkSlope compares the slope of the loss with the gradient at x, along it and along the direction of a seed.
func checkSlope(t *testing.T, what string, x, gradient []float32, seed uint64, total float64, loss func() float64) {
	t.Helper()
	checkAlong(t, what, x, gradient, gradient, total, loss)
	checkAlong(t, what, x, gradient, direction(seed, len(x)), total, loss)
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
		t.Errorf("gradient of %s: the loss changes by %.5g along a direction where Backward says %.5g (by steps of "+
			"%g: a right gradient fails too where the loss has a kink, such as that of a maximum, or bends within "+
			"them)", what, slope, predicted, h)
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
	want, wantAt := s.backward(t, p)
	compare := func(when string, params []*nn.Param, at []*nn.Node) {
		t.Helper()
		into, dAt := p.gradients(t, params, at)
		for _, w := range params {
			if !sameBits(into.Of(w), want.Of(w)) {
				t.Errorf("parameter %s has another gradient %s", w.Name, when)
			}
		}
		if at != nil && !slices.EqualFunc(dAt, wantAt, sameBits) {
			t.Errorf("the hidden states have another gradient %s", when)
		}
	}
	compare("where the input takes none", s.params, nil)
	compare("where the parameters take none", nil, p.at)
	compare("after a backward pass without parameters", s.params, p.at)
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
	without := slices.Clone(texts)
	for i := range without {
		without[i].gold = nil
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
		if learns := samples[kind].Learned; learns == nil || learns(x.gold) {
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
	more := append(slices.Clone(texts), texts[0])
	more[len(texts)].gold = nil
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

// numbered is a tokenizer whose tokens are their ids.
type numbered struct{ corpus.Tokenizer }

func (numbered) Token(id int32) string { return strconv.Itoa(int(id)) }

func checkKinds(t *testing.T, s subject, kind *outputs.Kind, b batch) {
	logits := s.run(t, b, false, false).logits
	got := s.Predict(logits)
	if len(got) != len(b.gold) {
		t.Fatalf("%d predictions for %d examples", len(got), len(b.gold))
	}
	shape, values := []int(logits.Nodes[0].Shape()), nn.Values(logits.Nodes[0])
	for e, p := range got {
		if check := samples[kind].Check; check != nil {
			if err := check(p, b.rows, e, len(labels)); err != nil {
				t.Errorf("prediction %d: %v", e, err)
			}
		}
		checkPredictionBytes(t, kind, p)
		in := outputs.Input{Labels: corpus.NewLabels(labels), Tokenizer: numbered{}}
		for _, answer := range kind.Answers(p, in, b.rows, e, shape) {
			for _, i := range answer.Logits {
				if i < 0 || i >= len(values) {
					t.Errorf("prediction %d: logit %d of %d", e, i, len(values))
				}
			}
			for _, text := range answer.Texts {
				if b.rows.Example[text] != e {
					t.Errorf("prediction %d: an answer is about text %d, of another example", e, text)
				}
			}
		}
	}
}

// show formats predictions, which are pointers.
func show(predictions ...corpus.Prediction) string {
	all := make([]string, len(predictions))
	for i, p := range predictions {
		all[i] = fmt.Sprintf("%+v", p)
	}
	return strings.Join(all, "\n")
}

// checkLoaded gives loaded the parameters of trained, and compares what they predict.
func checkLoaded(t *testing.T, trained, loaded subject, b batch) {
	saved := map[string]*nn.Param{}
	for _, w := range trained.params {
		saved[w.Name] = w
	}
	if len(loaded.params) != len(trained.params) {
		t.Fatalf("made twice it has %d and %d parameters", len(trained.params), len(loaded.params))
	}
	for _, w := range loaded.params {
		from := saved[w.Name]
		if from == nil || !slices.Equal(from.Shape, w.Shape) {
			t.Fatalf("parameter %s %v is not among those of the same head made before", w.Name, w.Shape)
		}
		copy(w.Data, from.Data)
	}
	got, want := loaded.predict(t, b), trained.predict(t, b)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("loaded it predicts\n%s\nwhere the trained one predicts\n%s\nAll that it learns must be in its env's "+
			"Params", show(got...), show(want...))
	}
}

func checkCompany(t *testing.T, s subject, texts []text) {
	all := s.predict(t, pack(texts...))
	backwards := slices.Clone(texts)
	slices.Reverse(backwards)
	reversed := s.predict(t, pack(backwards...))
	slices.Reverse(reversed)
	for i, x := range texts {
		alone := s.predict(t, pack(x))[0]
		if !reflect.DeepEqual(all[i], alone) {
			t.Errorf("text %d: in a batch %s, alone %s", i, show(all[i]), show(alone))
		}
		if !reflect.DeepEqual(all[i], reversed[i]) {
			t.Errorf("text %d: %s, in a batch of another order %s", i, show(all[i]), show(reversed[i]))
		}
	}
}

func checkHeadDescription(t *testing.T, s subject, kind *outputs.Kind) {
	d := s.Describe()
	if d.Output != nil && d.Output != kind {
		t.Errorf("its output is %s, made for %s", d.Output, kind)
	}
	if c := d.Calibrator; c != nil && c.Exclusive() != kind.OneLabel {
		t.Errorf("its Calibrator for %s has one label of a text: %v", kind, c.Exclusive())
	}
}

func checkReads(t *testing.T, s subject, b batch) {
	reads := s.Describe().Reads
	if reads == nil {
		return
	}
	read := reads(b.rows)
	if read == nil {
		return
	}
	want := s.predict(t, b)
	b.states = leftOut(b.states, read)
	if got := s.predict(t, b); !reflect.DeepEqual(got, want) {
		t.Errorf("it predicts\n%s\nwith NaN in all rows but %v, else\n%s", show(got...), read, show(want...))
	}
}

// leftOut returns a copy of states of the common width with NaN in all rows but those that are read.
func leftOut(states []float32, read []int) []float32 {
	left := make([]float32, len(states))
	for i := range left {
		left[i] = float32(math.NaN())
		if slices.Contains(read, i/width) {
			left[i] = states[i]
		}
	}
	return left
}

func checkNaN(t *testing.T, s subject, b batch) {
	b.states = slices.Clone(b.states)
	for i := range b.states {
		b.states[i] = float32(math.NaN())
	}
	p := s.run(t, b, false, true)
	if got := s.Predict(p.logits); len(got) != len(b.gold) {
		t.Errorf("%d predictions, want %d", len(got), len(b.gold))
	}
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}
