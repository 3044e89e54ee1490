package predict

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/batch"
)

func TestCallsThatAreMistakes(t *testing.T) {
	m := openModel(t, Options{Tasks: []string{"team"}})
	for want, form := range map[string]Form{
		"top: -1: want a number from 0 on":                                     {Top: -1},
		"offsets: unit 9: want one of characters, bytes, utf16":                {Unit: 9},
		"offsets: unit -1: want one of characters, bytes, utf16":               {Unit: -1},
		`tasks: task "things" is not computed; the model was opened with team`: {Tasks: []string{"things"}},
	} {
		_, err := m.PredictExamples(t.Context(), form, &corpus.Example{Text: "a"})
		_, explainErr := m.Explain(t.Context(), ExplainOptions{Form: form}, &corpus.Example{Text: "a"})
		for _, err := range []error{err, explainErr} {
			if err == nil || err.Error() != want {
				t.Errorf("%+v: error is %v, want %s", form, err, want)
			}
		}
	}
	_, err := m.Embed(t.Context(), "max", &corpus.Example{Text: "a"})
	if err == nil || err.Error() != `pool "max": want mean or cls` {
		t.Errorf("an unknown pool: error is %v", err)
	}
}

func TestAPanicOfOneCallIsNoErrorOfTheOthers(t *testing.T) {
	m := openModel(t, Options{})
	m.queue.Close()
	m.queue = batch.New(batch.Options{Size: 1000}, func(r reading) int { return r.tokens },
		func(all []reading) ([]Prediction, error) {
			for _, r := range all {
				if r.Text == "bad" {
					panic("a bad text")
				}
			}
			return m.predictor.predictAll(all)
		})
	var callers sync.WaitGroup
	for c := range 8 {
		callers.Go(func() {
			for range 20 {
				text := "the card"
				if c == 0 {
					text = "bad"
				}
				if _, err := m.Predict(t.Context(), text); (err != nil) != (c == 0) {
					t.Errorf("%s: error is %v", text, err)
				}
			}
		})
	}
	callers.Wait()
}

// A call whose context has ended leaves its texts to the batch that they are in.
func TestWhatACallIsGivenMayChangeAfterIt(t *testing.T) {
	m := openModel(t, Options{})
	m.queue.Close()
	m.explained.Close()
	taken, goes, read := make(chan struct{}), make(chan struct{}), make(chan reading)
	m.queue = batch.New(batch.Options{Size: 1}, func(reading) int { return 1 },
		func(all []reading) ([]Prediction, error) {
			close(taken)
			<-goes
			read <- all[0]
			return nil, errors.New("the test ends")
		})
	explained := make(chan reading)
	m.explained = batch.New(batch.Options{Size: 1}, func(explaining) int { return 1 },
		func(all []explaining) ([]Explanation, error) {
			close(taken)
			<-goes
			explained <- all[0].reading
			return nil, errors.New("the test ends")
		})
	for _, call := range []struct {
		do   func(context.Context, Form, *corpus.Example) error
		read chan reading
	}{
		{func(ctx context.Context, form Form, e *corpus.Example) error {
			_, err := m.PredictExamples(ctx, form, e)
			return err
		}, read},
		{func(ctx context.Context, form Form, e *corpus.Example) error {
			_, err := m.Explain(ctx, ExplainOptions{Form: form}, e)
			return err
		}, explained},
	} {
		taken, goes = make(chan struct{}), make(chan struct{})
		e := &corpus.Example{Text: "the card", Words: []corpus.Span{{Start: 0, End: 3}, {Start: 4, End: 8}}}
		form := Form{Tasks: []string{"team"}, MinProbability: map[string]float64{"team": 0.5},
			Thresholds: map[string]map[string]float64{"team": {"": 0.25}}}
		ctx, cancel := context.WithCancel(t.Context())
		go func() {
			<-taken
			cancel()
		}()
		if err := call.do(ctx, form, e); !errors.Is(err, context.Canceled) {
			t.Fatalf("error is %v", err)
		}
		e.Text, e.Words[0], form.Tasks[0] = "other", corpus.Span{}, "things"
		form.MinProbability["team"], form.Thresholds["team"][""] = 1, 1
		close(goes)
		r := <-call.read
		if r.Text != "the card" || r.Words[0].End != 3 || r.prediction.form.Tasks[0] != "team" ||
			r.prediction.form.MinProbability["team"] != 0.5 || r.prediction.form.Thresholds["team"][""] != 0.25 {
			t.Errorf("the queue has %+v in the form %+v", r.Example, r.prediction.form)
		}
	}
}

func TestChosenTasksThatDoNotReadATextAreAnError(t *testing.T) {
	m, err := New(kinds(t, "model.fusion={type: none}").Opened, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	pairs := Form{Tasks: []string{"alike"}}
	for form, want := range map[*Form]string{{}: "", &pairs: "no pair: the model needs two texts"} {
		predictions, err := m.PredictExamples(t.Context(), *form, &corpus.Example{Text: "so good"})
		if err != nil {
			t.Fatal(err)
		}
		_, explainErr := m.Explain(t.Context(), ExplainOptions{Form: *form}, &corpus.Example{Text: "so good"})
		for _, err := range []error{predictions[0].Err, explainErr} {
			if (err != nil) != (want != "") || err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("tasks %v: error is %v, want %q", form.Tasks, err, want)
			}
		}
	}
}
