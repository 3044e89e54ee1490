package predict

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// overflowing is an encoder whose last state of a token is not finite: that of the longest text of a batch.
type overflowing struct {
	encoders.Encoder
	value float32
}

func (o overflowing) Encode(p *nn.Pass, t corpus.Tokens, mode encoders.Mode) ([][]float32, error) {
	layers, err := o.Encoder.Encode(p, t, mode)
	if err != nil {
		return nil, err
	}
	last := slices.Clone(layers[len(layers)-1])
	for text := range t.Rows.Example {
		if from, to := t.Rows.Starts[text], t.Rows.Starts[text+1]; to-from > 12 {
			last[(from+1)*o.Describe().Width-1] = o.value // of the first token, which all heads read
		}
	}
	layers = slices.Clone(layers)
	layers[len(layers)-1] = last
	return layers, nil
}

// A text of which the encoder's states overflow has an error that names it, beside others' answers: not the first label.
func TestStatesThatAreNotFiniteAreErrors(t *testing.T) {
	long := strings.Repeat("the card came late ", 6)
	for _, value := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		m := openModel(t, Options{})
		bad := overflowing{m.run.Model.Encoder, value}
		m.run.Model.Encoder, m.embedder.encoder = bad, bad
		predictions, err := m.Predict(t.Context(), "the card", long, "late", long)
		if err != nil {
			t.Fatal(err)
		}
		for i, p := range predictions {
			var refused *ExampleError
			if wrong := errors.As(p.Err, &refused); wrong != (i%2 == 1) {
				t.Errorf("%v: text %d: %v", value, i, p.Err)
			}
		}
		if answer, err := JSONOf(predictions[1]); err != nil || !strings.Contains(string(answer.texts[0]), "finite") ||
			strings.Contains(string(answer.texts[0]), "tasks") {
			t.Errorf("%v: %v, %s", value, err, answer.texts)
		}
		embeddings, err := m.Embed(t.Context(), MeanPool, &corpus.Example{Text: "the card"},
			&corpus.Example{Text: long, Place: corpus.Place{File: "a.txt", Line: 3}})
		if err != nil || embeddings[0].Err != nil || embeddings[1].Err == nil ||
			!strings.Contains(embeddings[1].Err.Error(), `a.txt:3 "the card`) {
			t.Errorf("%v: vectors %+v, %v", value, embeddings, err)
		}
		_, err = m.Explain(t.Context(), ExplainOptions{Attention: true}, &corpus.Example{Text: long})
		if err == nil || !strings.Contains(err.Error(), multitask.NotFinite) {
			t.Errorf("%v: an explanation: %v", value, err)
		}
	}
}
