package tasks_test

import (
	"encoding/json"
	"math"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

func newQA() tasks.Task { return tasks.NewQuestionAnswering(tasks.Env{Heads: []string{"answer"}}) }

func TestTextBesideQuestionIsAnError(t *testing.T) {
	for first, want := range map[string]string{
		"text":   `data.jsonl:7: field "text" is read before question and context; write data: {question: question, context: context} to read these`,
		"answer": "",
	} {
		_, err := newQA().Example(record(map[string]any{first: "a title", "question": "who", "context": "a long day",
			"answers": []any{"day"}}))
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("%s: error %v, want %q", first, err, want)
		}
	}
}

// The goldens are from torchmetrics, which copies the functions of the official script of SQuAD:
// scripts/fixtures/squad.py.
func TestAnswerMetricsMatchTorchmetrics(t *testing.T) {
	data, err := os.ReadFile("testdata/squad.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Gold      []string
		Predicted string
		Exact, F1 float64
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) != 21 {
		t.Fatalf("%d cases, %v; want 21", len(cases), err)
	}
	for _, c := range cases {
		gold := &outputs.SpanTarget{Answers: []corpus.TextSpan{}}
		for _, text := range c.Gold {
			gold.Answers = append(gold.Answers, corpus.TextSpan{Text: text})
		}
		got := map[string]float64{}
		predicted := &outputs.SpanPrediction{Answer: corpus.TextSpan{Text: c.Predicted}}
		for _, m := range newQA().Evaluate([]corpus.Target{gold}, []corpus.Prediction{predicted}) {
			got[m.Name] = m.Value
		}
		if got["exact_match"] != c.Exact || !(math.Abs(got["f1"]-c.F1) <= 1e-7) { // the golden F1 is a float32
			t.Errorf("%q for %q: exact %v, F1 %v, want %v, %v", c.Predicted, c.Gold, got["exact_match"], got["f1"],
				c.Exact, c.F1)
		}
	}
}

func TestAnswersAreLocatedInContext(t *testing.T) {
	const context = "Zoë flew a red kite, a red one."
	number := func(n string) any { return json.Number(n) }
	at := func(text string, start int) corpus.TextSpan {
		return corpus.TextSpan{Text: text, Span: corpus.Span{Start: start, End: start + len(text)}}
	}
	for _, c := range []struct {
		rule    string
		answers any
		want    []corpus.TextSpan
	}{
		{"a list of texts", []any{"red kite", "kite"}, []corpus.TextSpan{at("red kite", 12), at("kite", 16)}},
		{"one text", "Zoë", []corpus.TextSpan{at("Zoë", 0)}},
		{"texts with start characters", []any{map[string]any{"text": "red", "answer_start": number("23")}},
			[]corpus.TextSpan{at("red", 24)}},
		{"texts and starts in two lists", map[string]any{"text": []any{"red"}, "answer_start": []any{number("11")}},
			[]corpus.TextSpan{at("red", 12)}},
		{"no answer", []any{}, []corpus.TextSpan{}},
		{"not labelled", nil, nil},
	} {
		e, err := newQA().Example(record(map[string]any{"question": "what?", "context": context, "answers": c.answers}))
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		var got []corpus.TextSpan
		if target := outputs.As[outputs.SpanTarget](e.Targets[0]); target != nil {
			got = target.Answers
		}
		if !reflect.DeepEqual(got, c.want) || e.Text != "what?" || e.Pair != context {
			t.Errorf("%s: %+v of %q, %q, want %+v", c.rule, got, e.Text, e.Pair, c.want)
		}
	}
}

func TestInvalidAnswers(t *testing.T) {
	at := func(text, start string) any {
		return []any{map[string]any{"text": text, "answer_start": json.Number(start)}}
	}
	for _, c := range []struct {
		answers any
		want    string
	}{
		{[]any{"blue"}, `answer 1 is "blue", which is not in the context`},
		{at("kite", "2"), `answer 1 is "kite", but the context has "red kite" at character 2; the answer first is at 6`},
		{at("blue", "2"), `answer 1 is "blue", but the context has "red kite" at character 2, and the answer nowhere`},
		{at("kite", "99"), `answer 1 begins at "99"; want a character of the context, 0 to 10`},
		{at("kite", "-1"), `answer 1 begins at "-1"`},
		{[]any{""}, `answer 1 is empty; where there is none, answers is an empty list`},
		{map[string]any{"text": "kite"}, `field "answers" is an object`},
		{[]any{[]any{}}, `field "answers" holds a list`},
	} {
		_, err := newQA().Example(record(map[string]any{"question": "what?", "context": "a red kite",
			"answers": c.answers}))
		if err == nil || !strings.HasPrefix(err.Error(), "data.jsonl:7: "+c.want) {
			t.Errorf("%v: error %v, want %s", c.answers, err, c.want)
		}
	}
	_, err := newQA().Example(record(map[string]any{"question": "what?"}))
	if want := "data.jsonl:7: a question without a context; data: {context: FIELD} names the field that holds it"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}
