package predict

import (
	"context"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// openModel trains the small sample and opens it.
func openModel(t *testing.T, o Options) *Model {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder)
	m, err := Open(t.Context(), folder, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func TestCallsThatMeetHaveTheAnswersThatTheyHaveAlone(t *testing.T) {
	m := openModel(t, Options{BatchTokens: 40})
	var texts, want []string
	for _, subject := range []string{"the invoice", "a menu", "the card", "a window", "the fee"} {
		for _, end := range []string{"", " came_late", " hangs", " is wrong and nobody knows why, so look at it"} {
			texts = append(texts, subject+end)
		}
	}
	for _, text := range texts {
		predictions, err := m.run.answer(t, Form{}, []*corpus.Example{{Text: text}})
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, jsonOf(t, predictions[0]))
	}
	var callers sync.WaitGroup
	for c := range 16 {
		callers.Go(func() {
			for round := range 20 {
				first := (7*c + 3*round) % len(texts)
				own := slices.Concat(texts[first:], texts[:first])[:1+(c+round)%6]
				predictions, err := m.Predict(t.Context(), own...)
				if err != nil {
					t.Error(err)
					return
				}
				for i, p := range predictions {
					if got := jsonOf(t, p); got != want[(first+i)%len(texts)] {
						t.Errorf("got %s, alone %s", got, want[(first+i)%len(texts)])
					}
				}
			}
		})
	}
	callers.Wait()
}

func TestAnswersAreTyped(t *testing.T) {
	m := openModel(t, Options{})
	predictions, err := m.Predict(t.Context(), "the card came_late")
	if err != nil {
		t.Fatal(err)
	}
	team, err := Answer[outputs.LabelAnswer](predictions[0], "team", "team")
	if err != nil || team.Label != "billing" || team.Probability < 0.5 || team.Top != nil {
		t.Errorf("the team is %+v, %v", team, err)
	}
	things, err := Answer[outputs.TagsAnswer](predictions[0], "things", "things")
	if err != nil || len(things.Spans) != 1 || things.Spans[0].Text != "card" {
		t.Errorf("the things are %+v, %v", things, err)
	}
	for name, want := range map[[2]string]string{
		{"things", "things"}: `the answer of task "things" and head "things" is of type outputs.TagsAnswer, not ` +
			"outputs.LabelAnswer",
		{"team", "other"}: `task "team": no head "other"; available: team`,
		{"other", "team"}: `no answer of task "other" and head "team"; there are those of team, things`,
	} {
		if _, err := Answer[outputs.LabelAnswer](predictions[0], name[0], name[1]); fmt.Sprint(err) != want {
			t.Errorf("%v: error %v, want %s", name, err, want)
		}
	}
	refused := Prediction{Err: ErrBusy}
	if _, err := Answer[outputs.LabelAnswer](refused, "team", "team"); !errors.Is(err, ErrBusy) {
		t.Errorf("of a text with an error: %v", err)
	}
}

func TestFormOfPredictions(t *testing.T) {
	m := openModel(t, Options{})
	form := Form{Tasks: []string{"team"}, Top: 2, Unit: corpus.Bytes}
	predictions, err := m.PredictExamples(t.Context(), form, &corpus.Example{Text: "the card"})
	if err != nil {
		t.Fatal(err)
	}
	team, _ := Answer[outputs.LabelAnswer](predictions[0], "team", "team")
	if len(predictions[0].Tasks) != 1 || len(team.Top) != 2 {
		t.Errorf("the answer is %+v", predictions[0].Tasks)
	}
	if _, err := m.PredictExamples(t.Context(), Form{Tasks: []string{"teams"}}); err == nil ||
		!strings.Contains(err.Error(), `did you mean "team"`) {
		t.Errorf("an unknown task: error is %v", err)
	}
}

func TestAnEmptyFormIsCheckedWithoutListsOfHeads(t *testing.T) {
	m := openModel(t, Options{})
	if n := testing.AllocsPerRun(10, func() {
		if err := m.checkForm(Form{}); err != nil {
			t.Error(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

func TestCallsThatAreNotAnswered(t *testing.T) {
	m := openModel(t, Options{MaxWaiting: 2})
	if _, err := m.Predict(t.Context(), "a", "b", "c"); !errors.Is(err, ErrBusy) {
		t.Errorf("more texts than may wait: error is %v", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := m.Predict(ended, "a"); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: error is %v", err)
	}
	if predictions, err := m.Predict(t.Context()); err != nil || len(predictions) != 0 {
		t.Errorf("no text: %v, %v", predictions, err)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Predict(t.Context(), "a"); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: error is %v", err)
	}
}

func TestATextOfTooManyTokensIsAnErrorOfItsOwn(t *testing.T) {
	m := openModel(t, Options{MaxTextTokens: 10})
	predictions, err := m.Predict(t.Context(), "the card", strings.Repeat("a b ", 10))
	if err != nil {
		t.Fatal(err)
	}
	if err := predictions[0].Err; err != nil {
		t.Error(err)
	}
	var long *LengthError
	if err := predictions[1].Err; !errors.As(err, &long) || long.Tokens != 22 || long.Most != 10 {
		t.Errorf("error is %v", err)
	}
	const atLeast = "the text is read as at least 16386 tokens; want at most 10"
	if got := (&LengthError{Tokens: 16_386, Most: 10}).Error(); got != atLeast { // no more are counted
		t.Errorf("error is %q, want %q", got, atLeast)
	}
	embeddings, err := m.Embed(t.Context(), MeanPool, &corpus.Example{Text: strings.Repeat("a b ", 10)},
		&corpus.Example{Text: "the card"})
	if err != nil || len(embeddings[1].Vector) == 0 || embeddings[1].Err != nil {
		t.Fatalf("Embed: %+v, %v", embeddings, err)
	}
	if err := embeddings[0].Err; !errors.As(err, &long) || long.Tokens != 22 {
		t.Errorf("Embed: error is %v", err)
	}
}

func TestTextsThatAreEmptyOrNotUTF8AreErrors(t *testing.T) {
	m := openModel(t, Options{})
	const empty, bytes = "the text is empty", "the text is not UTF-8: byte 0xff at offset 2"
	const pair = "the pair is not UTF-8: byte 0xff at offset 2"
	examples := []*corpus.Example{{Text: "a card"}, {}, {Text: "a \xff"}, {Text: "a", Pair: "b \xff", Paired: true}}
	predictions, err := m.PredictExamples(t.Context(), Form{}, examples...)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"<nil>", empty, bytes, pair} {
		if got := fmt.Sprint(predictions[i].Err); got != want {
			t.Errorf("text %d: error is %s, want %s", i, got, want)
		}
	}
	for i, want := range map[int]string{1: empty, 2: bytes, 3: pair} {
		var refused *ExampleError
		if !errors.As(predictions[i].Err, &refused) {
			t.Errorf("text %d: error is a %T", i, predictions[i].Err)
		}
		all, err := m.Embed(t.Context(), MeanPool, examples[0], examples[i])
		if err != nil || all[0].Err != nil || !errors.As(all[1].Err, &refused) || all[1].Err.Error() != want {
			t.Errorf("Embed: %+v, %v, want %s", all, err, want)
		}
		if _, err := m.Explain(t.Context(), ExplainOptions{}, examples[i]); !errors.As(err, &refused) ||
			err.Error() != want {
			t.Errorf("Explain: %v, want %s", err, want)
		}
	}

	// no row of a file is lost
	predictions, err = m.PredictExamples(t.Context(), Form{Rows: true}, &corpus.Example{})
	if err != nil || predictions[0].Err != nil || len(predictions[0].Tasks) != 2 {
		t.Errorf("an empty text of a file: %+v, %v", predictions, err)
	}
}

func TestEmbedLeavesTheCallersExamples(t *testing.T) {
	m := openModel(t, Options{})
	e := &corpus.Example{Text: "the card"}
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for range 20 {
				ctx, cancel := context.WithCancel(t.Context())
				go cancel()
				if _, err := m.Embed(ctx, MeanPool, e); err != nil && !errors.Is(err, context.Canceled) {
					t.Error(err)
				}
				cancel()
			}
		})
	}
	callers.Wait()
	if e.Windows != nil {
		t.Error("Embed has changed the example")
	}
}

func TestAModelChangesNoSettingOfTheProcess(t *testing.T) {
	settings := func() string {
		limit, percent := debug.SetMemoryLimit(-1), debug.SetGCPercent(100)
		debug.SetGCPercent(percent)
		return fmt.Sprint(runtime.GOMAXPROCS(0), limit, percent)
	}
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(math.MaxInt64 / 2))
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	before := settings()
	m, err := Open(t.Context(), folder, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Predict(t.Context(), "the card"); err != nil {
		t.Fatal(err)
	}
	if during := settings(); during != before {
		t.Errorf("the settings are %s while a model is open, %s before", during, before)
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if after := settings(); after != before {
		t.Errorf("the settings are %s after a model, %s before", after, before)
	}
}

func TestOpenReportsMistakesOfItsOptions(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	if _, err := Open(t.Context(), folder, Options{Tasks: []string{"teams"}}); err == nil ||
		!strings.Contains(err.Error(), `did you mean "team"`) {
		t.Errorf("an unknown task: error is %v", err)
	}
	_, err := Open(t.Context(), filepath.Dir(folder), Options{})
	if err == nil || !strings.Contains(err.Error(), "no run") {
		t.Errorf("a folder without a run: error is %v", err)
	}
	m, err := Open(t.Context(), folder, Options{Precision: new(nn.Int8)})
	if want := nn.Int8.Check(); want != nil {
		if err == nil || !strings.Contains(err.Error(), want.Error()) {
			t.Errorf("error is %v, want %v", err, want)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	m.Close()
}
