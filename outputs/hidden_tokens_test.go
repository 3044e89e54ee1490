package outputs_test

import (
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

func TestMaskInSeveralWindowsHasOnePrediction(t *testing.T) {
	window := func(pair bool, starts ...int) corpus.Encoding {
		w := corpus.Encoding{Second: pair}
		for _, start := range starts {
			w.IDs, w.Segments = append(w.IDs, 3), append(w.Segments, 0)
			w.Offsets = append(w.Offsets, corpus.Span{Start: start, End: start + 1})
		}
		return w
	}
	windows := []corpus.Encoding{window(true, 7), window(false, 0, 1, 2, 3), window(false, 2, 3, 4, 5)}
	e := &corpus.Example{Windows: windows}
	guess := func(window, token int, probability float32) outputs.HiddenToken {
		guesses := []outputs.Guess{{ID: 3, Probability: probability}}
		return outputs.HiddenToken{Window: window, Token: token, Guesses: guesses}
	}
	tokenizer, err := corpus.TrainWordPiece(slices.Values([]string{"a"}), 100, true)
	if err != nil {
		t.Fatal(err)
	}
	p := &outputs.HiddenPrediction{Tokens: []outputs.HiddenToken{
		guess(0, 0, 0.1), guess(1, 3, 0.2), guess(1, 2, 0.3), guess(2, 1, 0.4), guess(2, 0, 0.5),
	}}
	got := outputs.HiddenTokens.JSON(p, outputs.Input{Example: e, Tokenizer: tokenizer}).(outputs.HiddenAnswer).Hidden
	want := []struct {
		start       int
		pair        bool
		probability float32
	}{{2, false, 0.3}, {3, false, 0.4}, {7, true, 0.1}} // each from the window with more context
	if len(got) != len(want) {
		t.Fatalf("%d predictions, want %d: %+v", len(got), len(want), got)
	}
	for i, w := range want {
		probability := got[i].Guesses[0].Probability
		if got[i].Start != w.start || got[i].InPair != w.pair || probability != outputs.Probability(w.probability) {
			t.Errorf("prediction %d is %+v, want %+v", i, got[i], w)
		}
	}
}
