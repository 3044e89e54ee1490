package predict

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// kinds prepares an experiment with heads of many kinds, whose weights are so large that tokens matter.
func kinds(t *testing.T, model string) trained {
	t.Helper()
	run, err := prepare(t, "\n"+sample.KindsTasks, sample.KindsFiles(), model)
	if err != nil {
		t.Fatal(err)
	}
	for i, w := range run.Model.Params.All() {
		for k := range w.Data {
			w.Data[k] = 3*w.Data[k] + float32(0.3*math.Sin(float64(1000*i+k)))
		}
		w.Changed()
	}
	return run
}

var explainedExamples = []corpus.Example{
	{Text: "so good, a bad day [MASK]"},
	{Text: "so good", Pair: "a bad day so", Paired: true},
	{Text: "so good", Pair: "a " + strings.Repeat("bad day so ", 10), Paired: true}, // in windows
}

func TestAnExplanationHasThePredictionsOfPredict(t *testing.T) {
	run := kinds(t, "model.fusion={type: attention, scale: residual}")
	for _, e := range explainedExamples {
		want, err := run.answer(t, Form{}, []*corpus.Example{&e})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []ExplainOptions{{}, {Attention: true, Gradients: true}} {
			x, err := run.asked(t).Explain(t.Context(), o, &e)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := jsonOf(t, x.Prediction), jsonOf(t, want[0]); got != want {
				t.Errorf("%+v: %s\nwant %s", o, got, want)
			}
			checkParts(t, x, o)
		}
	}
}

// checkParts checks attention, fusion and lenses.
func checkParts(t *testing.T, x Explanation, o ExplainOptions) {
	t.Helper()
	sumsToOne := func(what string, weights []float32, n int) {
		sum := 0.0
		for _, v := range weights {
			sum += float64(v)
		}
		if len(weights) != n || !(math.Abs(sum-1) < 1e-5) {
			t.Errorf("%s: %d weights for %d tokens, which add up to %v", what, len(weights), n, sum)
		}
	}
	lenses := 0
	for _, r := range x.Readings {
		for _, w := range r.Windows {
			n := len(w.Tokens)
			if (len(w.Attention) == 1) != o.Attention {
				t.Errorf("%d layers of attention, asked for: %v", len(w.Attention), o.Attention)
			}
			for _, layer := range w.Attention {
				if len(layer) != 2 || len(layer[0]) != n {
					t.Fatalf("attention of %d heads and %d tokens, want 2 and %d", len(layer), len(layer[0]), n)
				}
				for _, head := range layer {
					for i, row := range head {
						sumsToOne(fmt.Sprint("attention of token ", i), row, n)
					}
				}
			}
			for _, task := range r.Tasks {
				sumsToOne("fusion of "+task, w.Fusion[task], n)
			}
			for _, lens := range w.Lenses["mood"] {
				lenses++
				if len(lens.Centre) != 2 || len(lens.Aperture) != 2 || len(lens.Centre[1]) != n ||
					len(lens.Aperture[0]) != n || lens.Aperture[0][0] <= 0 {
					t.Errorf("lens %+v of %d tokens, want 2 of each", lens, n)
				}
			}
		}
	}
	if lenses != 1 {
		t.Errorf("%d windows have a lens, want 1", lenses)
	}
}

func TestTokensOfAnExplanationHaveTheirPlaces(t *testing.T) {
	run := kinds(t, "model.fusion={type: none}")
	e := corpus.Example{Text: "äh so", Pair: "so ba", Paired: true}
	x, err := run.asked(t, "who").Explain(t.Context(), ExplainOptions{}, &e)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, token := range x.Readings[0].Windows[0].Tokens {
		text := map[string]string{"text": e.Text, "pair": e.Pair}[token.In]
		got = append(got, token.In+":"+string([]rune(text)[token.Start:token.End]))
	}
	joined := strings.Join(got, " ")
	for _, want := range []string{"special:", "text:s", "pair:s"} {
		if !strings.Contains(joined, want) {
			t.Errorf("tokens %q have no %q", joined, want)
		}
	}
	if x.Readings[0].Windows[0].Tokens[0].In != "special" {
		t.Errorf("the first token is %+v", x.Readings[0].Windows[0].Tokens[0])
	}
}

func TestAnExplanationEndsWithItsContext(t *testing.T) {
	run := kinds(t, "model.fusion={type: none}")
	ctx, cancel := context.WithCancel(t.Context())
	o := ExplainOptions{Gradients: true, Steps: MaxSteps, Progress: func(done, of int) {
		if done > 0 {
			cancel()
		}
		if done == of {
			t.Error("all points were computed")
		}
	}}
	if _, err := run.asked(t).Explain(ctx, o, &explainedExamples[0]); !errors.Is(err, context.Canceled) {
		t.Errorf("Explain: %v", err)
	}
}

// wordless is an encoder without gradients at its word embeddings.
type wordless struct {
	encoders.Encoder
	device string
}

func (e wordless) Describe() encoders.Description {
	d := e.Encoder.Describe()
	d.Words, d.Device = nil, e.device
	return d
}

func TestAnEncoderWithoutGradientsIsNoted(t *testing.T) {
	run := kinds(t, "model.fusion={type: none}")
	own := run.Model.Encoder
	for device, want := range map[string]string{
		"":       "the encoder has no gradients; a transformer",
		"cuda:0": "the encoder has no gradients on cuda:0; device: cpu",
	} {
		run.Model.Encoder = wordless{own, device}
		x := explainedWithout(t, run)
		if len(x.Notes) != 1 || !strings.HasPrefix(x.Notes[0], want) {
			t.Errorf("on %q: notes %q, want %s", device, x.Notes, want)
		}
	}
}

// explainedWithout returns an explanation by an encoder without gradients.
func explainedWithout(t *testing.T, run trained) Explanation {
	t.Helper()
	x, err := run.asked(t).Explain(t.Context(), ExplainOptions{Gradients: true, Steps: 3}, &explainedExamples[0])
	if err != nil {
		t.Fatal(err)
	}
	eachAnswer(x, func(_ Reading, name string, in []Attribution) {
		if in[0].GradientInput != nil || in[0].IntegratedGradients != nil {
			t.Errorf("%s has attributions", name)
		}
	})
	return x
}

func TestMistakesOfExplanations(t *testing.T) {
	run := kinds(t, "model.fusion={type: none}")
	m := run.asked(t)
	long := corpus.Example{Text: strings.Repeat("so good ", 40)}
	for want, o := range map[string]ExplainOptions{
		"steps: 10001: want a number from 0 to 10000":     {Gradients: true, Steps: 10_001},
		"steps: integrated gradients need gradients":      {Steps: 1},
		"the text is read as 210 tokens; want at most 20": {MaxTokens: 20},
	} {
		if _, err := m.Explain(t.Context(), o, &long); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := m.Explain(ended, ExplainOptions{Gradients: true, Steps: 9}, &long)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v after the context has ended", err)
	}
}

func TestTheJSONOfAttentionHasSixDecimals(t *testing.T) {
	weights := AttentionWeights{{{{0, 1, 0.0123456789, 1e-7, 0.9999999}, {1.0 / 3, 0.5}}, {}}}
	const want = `[[[[0,1,0.012346,0,1],[0.333333,0.5]],[]]]`
	if got := jsonOf(t, weights); got != want {
		t.Errorf("the JSON is %s, want %s", got, want)
	}
}

func TestTheJSONInPartsIsThatOfTheWhole(t *testing.T) {
	weights := func(v float32) AttentionWeights { return AttentionWeights{{{{v, 2}}}} }
	x := Explanation{Run: "a<b", Notes: []string{`"attention":[[[[2]]]]`},
		FusionFigures: map[string][]float32{"attention": {2}},
		Prediction:    Prediction{Text: "<", Fields: map[string]any{"attention": [][][][]int{{{{2}}}}}},
		Readings: []Reading{{}, {Tasks: []string{"attention"}, Windows: []Window{{Attention: weights(0.25)}, {},
			{Attention: weights(0.5), Fusion: map[string][]float32{"attention": {2}}}}}}}
	line, err := JSONOf(x)
	if err != nil {
		t.Fatal(err)
	}
	var got, want bytes.Buffer
	if err := line.Write(&got); err != nil {
		t.Fatal(err)
	}
	e := json.NewEncoder(&want)
	e.SetEscapeHTML(false)
	if err := e.Encode(x); err != nil {
		t.Fatal(err)
	}
	if got.String() != want.String() || x.Readings[1].Windows[0].Attention[0][0][0][0] != 0.25 {
		t.Errorf("in parts %s, want %s", &got, &want)
	}
	if _, err := JSONOf(Explanation{FusionFigures: map[string][]float32{"a": {float32(math.NaN())}}}); err == nil {
		t.Error("no error for a number that is not finite")
	}
}

func TestAttentionIsReservedBeforeItIsComputed(t *testing.T) {
	run := kinds(t, "model.fusion={type: none}")
	for _, e := range explainedExamples {
		reserved := int64(0)
		o := ExplainOptions{Attention: true, Reserve: func(bytes int64) error { reserved += bytes; return nil }}
		x, err := run.asked(t).Explain(t.Context(), o, &e)
		if err != nil {
			t.Fatal(err)
		}
		weights := int64(0)
		for _, r := range x.Readings {
			for _, w := range r.Windows {
				for _, layer := range w.Attention {
					for _, head := range layer {
						weights += int64(len(slices.Concat(head...)))
					}
				}
			}
		}
		if weights == 0 || reserved != 4*weights {
			t.Errorf("%d bytes are reserved for %d weights", reserved, weights)
		}
		refusal := errors.New("no room")
		o.Reserve = func(int64) error { return refusal }
		if _, err := run.asked(t).Explain(t.Context(), o, &e); !errors.Is(err, refusal) {
			t.Errorf("error %v, want that of Reserve", err)
		}
	}
}
