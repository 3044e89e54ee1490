package predict

import (
	"errors"
	"reflect"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
)

func TestExplanationsDoNotDisturbPredictions(t *testing.T) {
	m := openModel(t, Options{})
	texts := []string{"the invoice came_late", "a menu hangs", "the card"}
	want := map[string]string{}
	for _, text := range texts {
		predictions, err := m.Predict(t.Context(), text)
		if err != nil {
			t.Fatal(err)
		}
		want[text] = jsonOf(t, predictions[0])
	}
	o := ExplainOptions{Attention: true, Gradients: true, Steps: 20}
	alone := map[string]Explanation{}
	for _, text := range texts {
		x, err := m.Explain(t.Context(), o, &corpus.Example{Text: text})
		if err != nil {
			t.Fatal(err)
		}
		alone[text] = x
	}
	var callers sync.WaitGroup
	for c := range 4 {
		callers.Go(func() {
			for round := range 12 {
				text := texts[(c+round)%len(texts)]
				predictions, err := m.Predict(t.Context(), text)
				if err != nil {
					t.Error(err)
				} else if got := jsonOf(t, predictions[0]); got != want[text] {
					t.Errorf("beside explanations %s, alone %s", got, want[text])
				}
			}
		})
		callers.Go(func() {
			for round := range 3 {
				text := texts[(c+round)%len(texts)]
				x, err := m.Explain(t.Context(), o, &corpus.Example{Text: text})
				if err != nil || !reflect.DeepEqual(x.Readings, alone[text].Readings) {
					t.Errorf("%q: another explanation than alone; %v", text, err)
				}
			}
		})
	}
	callers.Wait()
}

func TestExplanationsOfAClosedModelAreAnError(t *testing.T) {
	m := openModel(t, Options{})
	bad := ExplainOptions{Form: Form{Tasks: []string{"teams"}}}
	if _, err := m.Explain(t.Context(), bad, &corpus.Example{Text: "a menu"}); err == nil {
		t.Error("an explanation of a task that the model does not have")
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Explain(t.Context(), ExplainOptions{}, &corpus.Example{Text: "a"}); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
}
