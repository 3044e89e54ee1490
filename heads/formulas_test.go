package heads

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// These tests compute the formulas of docs/parts.md and docs/formulas.md in float64, apart from the heads' code.

// randomised draws all values of an env's parameters.
func randomised(env Env) map[string][]float32 {
	r, values := rand.New(rand.NewPCG(5, 6)), map[string][]float32{}
	for _, w := range env.Params.All() {
		for i := range w.Data {
			w.Data[i] = float32(r.NormFloat64())
		}
		w.Changed()
		values[w.Name] = w.Data
	}
	return values
}

// affine returns x·weight + bias, with a weight [in out].
func affine(x []float64, weight, bias []float32) []float64 {
	y := make([]float64, len(bias))
	for j := range y {
		y[j] = float64(bias[j])
		for i, v := range x {
			y[j] += v * float64(weight[i*len(bias)+j])
		}
	}
	return y
}

// y = V·gelu(W·x + b) + c    distance = Σ_i (x_i - y_i)²/D
func TestReconstructionFollowsItsFormula(t *testing.T) {
	env := anomalyEnv()
	head, err := newReconstruction(ReconstructionOptions{Hidden: 3, Pool: "max"}, env)
	if err != nil {
		t.Fatal(err)
	}
	w := randomised(env)
	states := []float32{1, -2, 0, 3, 0.5, -1, 2, 0, -1, 1, 0.25, 2, 1, -3, 1, 1} // two tokens
	x := make([]float64, 8)
	for i := range x {
		x[i] = float64(max(states[i], states[8+i]))
	}
	hidden := affine(x, w["in.weight"], w["in.bias"])
	for i, v := range hidden {
		hidden[i] = v * (1 + math.Erf(v/math.Sqrt2)) / 2
	}
	want := 0.0
	for i, y := range affine(hidden, w["back.weight"], w["back.bias"]) {
		want += (x[i] - y) * (x[i] - y) / 8
	}

	p := nn.NewPass(1)
	rows := nn.Rows{Starts: []int{0, 2}, Example: []int{0}}
	logits := head.Logits(p, nn.Hidden{States: p.Input(states, 2, 8), Rows: rows})
	if err := p.Forward(); err != nil {
		t.Fatal(err)
	}
	got := outputs.As[outputs.AnomalyPrediction](head.Predict(logits)[0]).Distance
	if !(math.Abs(got-want) <= 1e-5*want) {
		t.Errorf("distance %v, want %v", got, want)
	}
}

// x = Σ_i a_i·h_i with a = softmax(h·q/√D), and logits W·x + b
func TestAttentionPoolFollowsItsFormula(t *testing.T) {
	env := Env{Output: outputs.Label, Labels: []string{"a", "b"}, Width: 4, Params: nn.NewParams(1)}
	head, err := newLinear(LinearOptions{Pool: "attention", ObjectiveOptions: PlainObjective}, env)
	if err != nil {
		t.Fatal(err)
	}
	w := randomised(env)
	states := []float32{1, -2, 0, 3, 0.5, -1, 2, 0, -1, 1, 0.25, 2}
	weights, total := make([]float64, 3), 0.0
	for i := range weights {
		product := 0.0
		for j, q := range w["pool.query"] {
			product += float64(states[4*i+j]) * float64(q)
		}
		weights[i] = math.Exp(product / math.Sqrt(4))
		total += weights[i]
	}
	x := make([]float64, 4)
	for i, a := range weights {
		for j := range x {
			x[j] += a / total * float64(states[4*i+j])
		}
	}
	want := affine(x, w["score.weight"], w["score.bias"])

	p := nn.NewPass(1)
	rows := nn.Rows{Starts: []int{0, 3}, Example: []int{0}}
	logits := head.Logits(p, nn.Hidden{States: p.Input(states, 3, 4), Rows: rows})
	if err := p.Forward(); err != nil {
		t.Fatal(err)
	}
	for i, got := range nn.Values(logits.Nodes[0]) {
		if !(math.Abs(float64(got)-want[i]) <= 1e-5) {
			t.Errorf("logit %d is %v, want %v", i, got, want[i])
		}
	}
}

// Σ_c q_c·w_c·(1-p_c)^γ·(-log p_c), divided by Σ w_gold
func TestTheLossOfLabelsFollowsItsFormula(t *testing.T) {
	const smoothing, gamma = 0.2, 1.5
	weights := &nn.Param{Data: []float32{0.5, 3, 2}}
	objective := OneClass{loss: labelLoss{smoothing, gamma, weights}}
	logits := [][]float32{{1, 2, -1}, {0, 0.5, 3}, {2, 2, 2}}
	golds := []int{1, 0, corpus.Unknown} // a label that training does not have is no unit
	sum, units := 0.0, 0.0
	for i, gold := range golds[:2] {
		total := 0.0
		for _, x := range logits[i] {
			total += math.Exp(float64(x))
		}
		for c, x := range logits[i] {
			target, p := smoothing/3, math.Exp(float64(x))/total
			if c == gold {
				target += 1 - smoothing
			}
			sum += target * float64(weights.Data[c]) * math.Pow(1-p, gamma) * -math.Log(p)
		}
		units += float64(weights.Data[gold])
	}

	p := nn.NewPass(1)
	rows := nn.Rows{Starts: []int{0, 1, 2, 3}, Example: []int{0, 1, 2}}
	var gold []corpus.Target
	for _, id := range golds {
		gold = append(gold, label(id))
	}
	got := lossOf(t, p, objective.Loss(p, scoresOf(p, rows, logits...), gold)) / objective.Units(gold)
	if want := sum / units; !(math.Abs(got-want) <= 1e-6) {
		t.Errorf("loss %v, want %v", got, want)
	}
}

// A question in two windows: [CLS] q [SEP] c c [SEP] and [CLS] q [SEP] c [SEP].
func TestAnswersFollowTheirFormula(t *testing.T) {
	rows := nn.Rows{Starts: []int{0, 6, 11}, Example: []int{0, 0},
		Segment: []int8{0, 0, 0, 1, 1, 1, 0, 0, 0, 1, 1},
		Special: []bool{true, false, true, false, false, true, true, false, true, false, true}}
	logits := [][]float32{{1, 2}, {9, 9}, {9, 9}, {3, 0}, {1, 2}, {9, 9}, {0, 2.5}, {9, 9}, {9, 9}, {1, 4}, {9, 9}}
	// the best: start 3 and end 2 in the first window, start 1 and end 4 in the second, both 5; the first counts
	first := math.Exp(3) / (math.Exp(1) + math.Exp(3) + math.Exp(1))
	last := math.Exp(2) / (math.Exp(2) + math.Exp(0) + math.Exp(2))
	const none, best = 2.5, 5 // none is the least of 1 + 2 and 0 + 2.5
	answer := corpus.Span{Start: 3, End: 5}
	for _, c := range []struct {
		options     SpanOptions
		tokens      corpus.Span
		probability float64
	}{
		{SpanOptions{MaxAnswerTokens: 2}, answer, first * last},
		{SpanOptions{MaxAnswerTokens: 2, NoAnswer: true, Margin: none - best}, answer, first * last},
		{SpanOptions{MaxAnswerTokens: 2, NoAnswer: true, Margin: none - best - 0.1}, corpus.Span{},
			1 / (1 + math.Exp(best-none))},
	} {
		p := nn.NewPass(1)
		all := scoresOf(p, rows, logits...)
		if err := p.Forward(); err != nil {
			t.Fatal(err)
		}
		got := outputs.As[outputs.SpanPrediction]((&span{SpanOptions: c.options}).Predict(all)[0])
		if got.Tokens != c.tokens || got.Window != 0 ||
			!(math.Abs(float64(got.Probability)-c.probability) <= 1e-6) {
			t.Errorf("%+v: %+v, want tokens %v with probability %v", c.options, got, c.tokens, c.probability)
		}
	}
}

// The words of a text in windows are one chain of a crf, each with its logits of the window where it is furthest from
// the ends, the first of equals.
func TestTagsOfWindowsAreDecodedOnce(t *testing.T) {
	env := Env{Output: outputs.Tags, Labels: []string{"a", "b"}, Width: 2, Params: nn.NewParams(1)}
	made, err := newCRF(CRFOptions{Constraints: "none"}, env)
	if err != nil {
		t.Fatal(err)
	}
	randomised(env)
	// [CLS] 0 1 2 [SEP] and [CLS] 1 2 3 [SEP]: word 1 is in the middle of the first window, word 2 of the second
	windows := nn.Rows{Starts: []int{0, 5, 10}, Example: []int{0, 0}, WordCount: []int{4, 4},
		Words: []int{1, 2, 3, 6, 7, 8}, WordIndex: []int{0, 1, 2, 1, 2, 3}}
	whole := nn.Rows{Starts: []int{0, 6}, Example: []int{0}, WordCount: []int{4}, Words: []int{1, 2, 3, 4},
		WordIndex: []int{0, 1, 2, 3}}
	logits := [][]float32{{1, 0}, {0.5, 0}, {-9, 9}, {9, -9}, {0, 0.25}, {0, 1}}
	p := nn.NewPass(1)
	got := made.Predict(scoresOf(p, windows, logits...))
	want := made.Predict(scoresOf(p, whole, logits[0], logits[1], logits[4], logits[5]))
	a, b := outputs.As[outputs.TagsPrediction](got[0]), outputs.As[outputs.TagsPrediction](want[0])
	if !slices.Equal(a.IDs, b.IDs) || !slices.Equal(a.Probabilities, b.Probabilities) {
		t.Errorf("tags %v with %v, want %v with %v", a.IDs, a.Probabilities, b.IDs, b.Probabilities)
	}

	// a word as far from the ends in both windows
	equal := nn.Rows{Starts: []int{0, 3, 6}, Example: []int{0, 0}, WordCount: []int{1, 1}, Words: []int{1, 4},
		WordIndex: []int{0, 0}}
	if rows := outputs.WordRows(equal); rows[0][0] != 0 {
		t.Errorf("a word in two windows has logits %d, want those of the first", rows[0][0])
	}
}

// Where words are left out, constraints do not hold: a tag that needs a successor may be the last of a truncated text.
func TestConstraintsDoNotHoldAcrossWordsThatAreLeftOut(t *testing.T) {
	env := Env{Output: outputs.Tags, Labels: []string{"O", "B-x", "E-x"}, Width: 2, Params: nn.NewParams(1)}
	made, err := newCRF(CRFOptions{Constraints: "bio"}, env)
	if err != nil {
		t.Fatal(err)
	}
	for words, want := range map[int][]int{2: {0, 0}, 3: {0, 1, -1}} { // the third is beyond the end
		rows := nn.Rows{Starts: []int{0, 4}, Example: []int{0}, WordCount: []int{words}, Words: []int{1, 2},
			WordIndex: []int{0, 1}}
		all := scoresOf(nn.NewPass(1), rows, []float32{5, 0, 0}, []float32{0, 5, 0})
		if got := outputs.As[outputs.TagsPrediction](made.Predict(all)[0]).IDs; !slices.Equal(got, want) {
			t.Errorf("%d words: tags %v, want %v", words, got, want)
		}
	}
}

// An alarm is above the threshold: of equal distances fewer raise one.
func TestAlarmsOfEqualDistances(t *testing.T) {
	a, err := newAlarm(AlarmOptions{0.5}, anomalyEnv())
	if err != nil {
		t.Fatal(err)
	}
	gold := []corpus.Target{normalText, normalText, normalText, normalText}
	predicted := distances(1, 2, 2, 3)
	a.Tune(gold, predicted)
	if got := a.Thresholds(); got[0] != 2 || alarmed(predicted[1]) || alarmed(predicted[2]) || !alarmed(predicted[3]) {
		t.Errorf("threshold %v of 1, 2, 2 and 3; want 2, and an alarm for 3 alone", got)
	}
}
