package predict

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
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
	process := m.predicting.Process
	m.predicting.Process = func(all []*reading) error {
		for _, r := range all {
			if r.prediction.Text == "bad" {
				panic("a bad text")
			}
		}
		return process(all)
	}
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
	taken, goes, read, explained := make(chan struct{}), make(chan struct{}), make(chan *reading), make(chan *reading)
	m.predicting.Process = func(all []*reading) error {
		close(taken)
		<-goes
		read <- all[0]
		return errors.New("the test ends")
	}
	m.explaining.Process = func(all []*explainer) error {
		close(taken)
		<-goes
		explained <- all[0].reading
		return errors.New("the test ends")
	}
	for _, call := range []struct {
		do   func(context.Context, Form, *corpus.Example) error
		read chan *reading
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
		of := r.by[0].encoded[byWords]
		if of.Text != "the card" || of.Words[0].End != 3 || r.form.Tasks[0] != "team" ||
			r.form.MinProbability["team"] != 0.5 || r.form.Thresholds["team"][""] != 0.25 {
			t.Errorf("the queue has %+v in the form %+v", of, r.form)
		}
	}
}

// What a batch has is processed again for each of its calls after an error, and counts once.
func TestTextsCountOnceAfterAnErrorOfTheirBatch(t *testing.T) {
	texts, tokens := 0, 0
	m := openModel(t, Options{Observe: func(n, size int, _ time.Duration) { texts, tokens = texts+n, tokens+size }})
	process, began, goes := m.predicting.Process, make(chan struct{}), make(chan struct{})
	first := 0 // texts of the first batch: one, or what came by the time it was taken
	m.predicting.Process = func(all []*reading) error {
		if first == 0 {
			first = len(all)
			close(began)
			<-goes
		}
		if err := process(all); err != nil || len(all) == 1 {
			return err
		}
		return errors.New("an error of the batch")
	}
	long := strings.Repeat("the card came late ", 40) // truncated
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			if _, err := m.Predict(t.Context(), long); err != nil {
				t.Error(err)
			}
		})
	}
	<-began
	for first+m.Waiting() < 4 {
		time.Sleep(time.Millisecond)
	}
	close(goes)
	callers.Wait()
	if m.texts != 4 || m.groups[0].truncated != 4 || texts != 4 || tokens != 4*64 {
		t.Errorf("%d texts, %d truncated; observed %d texts of %d tokens; want 4 of 64 each, once", m.texts,
			m.groups[0].truncated, texts, tokens)
	}
	if got := m.TextWarnings(); len(got) != 1 || !strings.Contains(got[0].String(), "4 of 4 texts") {
		t.Errorf("warnings %q", got)
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

// A text whose turn to be divided into tokens does not come, and one in the middle of which the caller leaves, are
// errors of the context.
func TestATextWaitsForItsTokensUntilTheContextEnds(t *testing.T) {
	m := openModel(t, Options{MaxTextTokens: 1 << 14})
	for range cap(m.reader) {
		m.reader <- struct{}{}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	_, predicted := m.Predict(ctx, "the card")
	_, embedded := m.Embed(ctx, MeanPool, &corpus.Example{Text: "the card"})
	_, explained := m.Explain(ctx, ExplainOptions{}, &corpus.Example{Text: "the card"})
	for what, err := range map[string]error{"Predict": predicted, "Embed": embedded, "Explain": explained} {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v", what, err)
		}
	}
	<-m.reader
	if _, err := m.Predict(t.Context(), "the card"); err != nil {
		t.Error(err)
	}
}

// Where a text has a most of tokens, what is not read is counted as without, up to as many as a text may have at least.
func TestTruncatedTokensAreCountedAsWithoutABound(t *testing.T) {
	count := func(most int, text string) int {
		predictions, err := openModel(t, Options{MaxTextTokens: most}).Predict(t.Context(), text)
		if err != nil || predictions[0].Err != nil {
			t.Fatal(err, predictions[0].Err)
		}
		return predictions[0].Truncated
	}
	long := strings.Repeat("the card came late ", 4000)
	for _, most := range []int{100, 1 << 14} {
		text := long[:len(long)/2]
		if got, want := count(most, text), count(0, text); got != want || got < 5000 {
			t.Errorf("at most %d: %d tokens are truncated; want %d, as without a bound", most, got, want)
		}
		if got := count(most, strings.Repeat(long, 9)); got < 1<<14-100 || got > 1<<14 {
			t.Errorf("at most %d: %d tokens of a long text are truncated; want those of %d", most, got, 1<<14)
		}
	}
}
