package serve

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/predict"
	"github.com/jenga-nlp/jenga/experiments/quantize"
)

// quantized trains the small sample, quantizes it, and returns the folder.
func quantized(t *testing.T, name string) string {
	t.Helper()
	s, err := quantize.Open(trained(t, name), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	folder := filepath.Join(t.TempDir(), name)
	if err := s.Write(folder, false, nil); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestAQuantizedRunIsServed(t *testing.T) {
	folder := quantized(t, "mails")
	s := start(t, options(), folder)
	if got := s.Precisions(); !slices.Equal(got, []string{"int8"}) {
		t.Errorf("precisions %q", got)
	}
	opened, err := predict.OpenRun(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	predictions, err := opened.Predictor().Predict([]*corpus.Example{{Text: "the card came_late"}})
	if err != nil {
		t.Fatal(err)
	}
	want, err := json.Marshal(predictions[0])
	if err != nil {
		t.Fatal(err)
	}
	const body = `{"text": "the card came_late"}`
	got := post[predicted](t, s, "/v1/predict", body).Predictions[0]
	if !bytes.Equal(compact(t, got), compact(t, want)) {
		t.Errorf("the prediction is %s, want %s", got, want)
	}
	var x struct {
		explanation
		Prediction json.RawMessage
		Notes      []string
	}
	answer := post[json.RawMessage](t, s, "/v1/explain", body)
	if err := json.Unmarshal(answer, &x); err != nil || !bytes.Equal(compact(t, x.Prediction), compact(t, want)) {
		t.Errorf("%v: the explained prediction is %s, want %s", err, x.Prediction, want)
	}
	if w := x.Readings[0].Windows[0]; len(w.Attention) != 1 || len(w.Answers) != 2 ||
		w.Answers["team"]["team"][0].GradientInput != nil {
		t.Errorf("want attention and answers without gradients: %s", answer)
	}
	if len(x.Notes) != 1 || !strings.Contains(x.Notes[0], "a quantized encoder has no gradients") {
		t.Errorf("notes %q", x.Notes)
	}
}

func TestThePageSaysWhyAQuantizedRunHasNoGradients(t *testing.T) {
	s := start(t, options(), quantized(t, "mails"))
	p := open(t, browser(t), s.url, desk)
	p.predict("the invoice came_late")
	p.look()
	const why = "a quantized encoder has no gradients; the run that it was made of has them"
	want := []string{"There are none for this answer: " + why + ".", why}
	for _, method := range []string{"integrated_gradients", "gradient_input"} {
		p.choose("Method", method)
		got := js[[]string](p, `[...document.querySelectorAll('#look .hint')].map((one) => one.textContent)`)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the hints are %q, want %q", method, got, want)
		}
	}
}
