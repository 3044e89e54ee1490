package predict

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// eachAnswer calls do with each answer of an explanation; windows are those that the answer is in, and of their
// attributions those of the answer.
func eachAnswer(x Explanation, do func(r Reading, name string, in []Attribution)) (names []string) {
	for _, r := range x.Readings {
		for _, task := range r.Tasks {
			together := strings.HasPrefix(task, "alike") // a pair's score is that of both windows
			for b, w := range r.Windows {
				for head, answers := range w.Answers[task] {
					for n, one := range answers {
						in := []Attribution{one}
						if together && b > 0 {
							continue
						} else if together {
							in = append(in, r.Windows[1].Answers[task][head][n])
						}
						name := task + "/" + head
						names = append(names, name)
						do(r, fmt.Sprintf("%s %q in window %d", name, one.Label, b), in)
					}
				}
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func TestGradientTimesInputIsTheSlopeOfTheLogit(t *testing.T) {
	for _, model := range []string{"model.fusion={type: attention, scale: residual}", "model.fusion={type: mix}",
		"model.encoder={type: bilstm, embedding: 10, layers: 2, hidden: 5}"} {
		run := kinds(t, model)
		m, found, windows := run.asked(t), map[string]bool{}, 0
		for _, e := range explainedExamples {
			m.run.Model = run.Model
			x, err := m.Explain(t.Context(), ExplainOptions{Gradients: true}, &e)
			if err != nil {
				t.Fatal(err)
			}
			windows = max(windows, x.Prediction.Windows)
			of := &explainer{Model: m, Explanation: x, reading: readAll(t, m, &e)}
			for _, one := range of.encodings() {
				checkSlopes(t, of, one, found)
			}
		}
		if windows < 2 {
			t.Errorf("%s: a long context is read in %d windows", model, windows)
		}
		if len(found) != 9 {
			t.Errorf("%s: slopes of %d heads, want 9: %v", model, len(found), found)
		}
	}
}

// embedWords returns the word embeddings of an encoding.
func embedWords(t *testing.T, m *Model, one encoding) []float32 {
	t.Helper()
	words, err := m.run.Model.Words(corpus.Pack([]*corpus.Example{one.example}).Tokens.IDs...)
	if err != nil {
		t.Fatal(err)
	}
	return words
}

// checkSlopes compares each token's gradient × input with the slope of the logit along the token's embedding.
func checkSlopes(t *testing.T, x *explainer, one encoding, found map[string]bool) {
	t.Helper()
	words := embedWords(t, x.Model, one)
	compute := func(words []float32) *multitask.Computed {
		c, err := x.run.Model.Compute(nn.NewPass(0), &one.group, []*corpus.Example{one.example}, words)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	base := compute(words)
	a := &attributor{explainer: x, encoding: one, computed: base,
		predicted: base.Predictions()}
	if err := a.attribute(); err != nil {
		t.Fatal(err)
	}
	width := len(words) / base.Rows.Tokens()
	slopes := make([][]float64, len(a.answers)) // [T]
	for row := range base.Rows.Tokens() {
		const h = 2e-3
		at := func(factor float32) *multitask.Computed {
			moved := slices.Clone(words)
			for i := range moved[row*width:][:width] {
				moved[row*width+i] *= factor
			}
			return compute(moved)
		}
		up, down := at(1+h), at(1-h)
		for i, to := range a.answers {
			slope := (sumOf(up.Logits(to.h), to.Logits) - sumOf(down.Logits(to.h), to.Logits)) / (2 * h)
			slopes[i] = append(slopes[i], slope)
		}
	}
	for i, to := range a.answers {
		found[to.task+"/"+to.head] = true
		var got []float64
		for _, b := range to.Texts {
			got = append(got, attributionOf(t, x.Explanation, one, b, to).GradientInput...)
		}
		var want []float64
		largest := 0.0
		for _, b := range to.Texts {
			want = append(want, slopes[i][base.Rows.Starts[b]:base.Rows.Starts[b+1]]...)
		}
		for _, v := range want {
			largest = max(largest, math.Abs(v))
		}
		if largest < 1e-3 || len(got) != len(want) {
			t.Errorf("%s/%s %q: slopes %v, gradients %v", to.task, to.head, to.Label, want, got)
			continue
		}
		for k := range want {
			if !(math.Abs(got[k]-want[k]) <= 1e-2*largest+1e-3) {
				t.Errorf("%s/%s %q: token %d: gradient × input %v, the slope is %v", to.task, to.head, to.Label, k,
					got[k], want[k])
			}
		}
	}
}

// attributionOf finds an answer in an explanation.
func attributionOf(t *testing.T, x Explanation, one encoding, window int, to attributed) Attribution {
	t.Helper()
	for _, r := range x.Readings {
		if !slices.Contains(r.Tasks, to.task) {
			continue
		}
		for _, a := range r.Windows[window].Answers[to.task][to.head] {
			if a.Label == to.Label && math.Abs(a.Logit-to.whole.Logit) < 1e-9 && (a.Word == nil) == (to.Word < 0) &&
				(a.Word == nil || *a.Word == to.Word) {
				return a
			}
		}
	}
	t.Fatalf("%s/%s: no answer %q of %v", to.task, to.head, to.Label, one.group.Tasks)
	return Attribution{}
}

func TestIntegratedGradientsAddUpToTheDifferenceOfLogits(t *testing.T) {
	run, heads := kinds(t, "model.fusion={type: attention, scale: residual}"), map[string]bool{}
	for _, e := range explainedExamples {
		x, err := run.asked(t).Explain(t.Context(), ExplainOptions{Gradients: true, Steps: 300}, &e)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range eachAnswer(x, func(r Reading, name string, in []Attribution) {
			checkAddsUp(t, r, name, in)
		}) {
			heads[name] = true
		}
	}
	if len(heads) != 9 {
		t.Errorf("integrated gradients of %v, want 9 heads", heads)
	}
}

// checkAddsUp checks that the integrated gradients of an answer add up to its logit minus that of the baseline, and are
// 0 for special tokens, which the baseline has too.
func checkAddsUp(t *testing.T, r Reading, name string, in []Attribution) {
	t.Helper()
	sum, special := 0.0, 0.0
	for k, one := range in {
		for i, v := range one.IntegratedGradients {
			sum += v
			if r.Windows[k].Tokens[i].In == "special" {
				special = max(special, math.Abs(v))
			}
		}
	}
	difference := in[0].Logit - *in[0].Baseline
	away := math.Abs(sum-difference) / max(1, math.Abs(difference))
	if !(away <= 1e-3) || special != 0 {
		t.Errorf("%s: attributions add up to %v, the difference of logits is %v; of special tokens %v", name, sum,
			difference, special)
	}
	t.Logf("%s: difference of logits %.3f, the sum is %.2g of max(1, it) away", name, difference, away)
}

func TestPathPointsIntegrate(t *testing.T) {
	for _, n := range []int{1, 20, 300} {
		whole, mean := 0.0, 0.0 // the integrals of 1 and of α
		for _, p := range pathPoints(n) {
			whole += p.weight
			mean += p.weight * p.alpha
		}
		// of ∫ 2u³ du the midpoint rule lacks 1/(4n²)
		if !(math.Abs(whole-1) < 1e-12) || !(math.Abs(mean-(0.5-0.25/float64(n*n))) < 1e-12) {
			t.Errorf("%d points: the integral of 1 is %v, that of α %v", n, whole, mean)
		}
	}
}
