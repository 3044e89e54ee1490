package predict

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
)

const taggedTexts = `{"words": ["so", "good"], "tags": ["ADV", "ADJ"], "label": "x"}
{"words": ["so", "bad"], "tags": ["ADV", "ADJ"], "label": "y"}
`

// taggedRun trains a run on words with tags, of texts of up to 8 tokens, and opens it.
func taggedRun(t *testing.T) *Opened {
	t.Helper()
	_, opened := trainedRun(t, "  - {name: mood, type: classification, data: {train: a.jsonl}}\n"+
		"  - {name: pos, type: tagging, data: {train: a.jsonl}}\n", map[string]string{"a.jsonl": taggedTexts},
		"tokenizer.max_length=8", "training.num_epochs=1")
	return opened
}

// The vocabulary has the words whole; 6 of 8 tokens are not special.
func TestWordsThatWereNotReadHaveNoTag(t *testing.T) {
	run := taggedRun(t)
	words := make([]corpus.Span, 8) // so bad so bad …
	for w := range words {
		words[w] = corpus.Span{Start: w / 2 * 7, End: w/2*7 + 2}
		if w%2 == 1 {
			words[w] = corpus.Span{Start: w/2*7 + 3, End: w/2*7 + 6}
		}
	}
	long := strings.Repeat("so bad ", 4)
	predictions, err := run.answer(t, Form{}, []*corpus.Example{
		{Text: "so good"}, {Text: long}, {Text: long, Words: words},
	})
	if err != nil {
		t.Fatal(err)
	}
	const tags = `"tags":["ADV","ADJ","ADV","ADJ","ADV","ADJ"`
	for b, want := range [][]string{
		{`"truncated":0,`}, {`"truncated":2,`, `[17,20]],` + tags + `]`}, {`"truncated":2,`, tags + `,null,null]`},
	} {
		for _, part := range want {
			line := strings.NewReplacer(`"ADJ"`, `"ADV"`).Replace(jsonOf(t, predictions[b])) // whatever it has learned
			if part = strings.ReplaceAll(part, `"ADJ"`, `"ADV"`); !strings.Contains(line, part) {
				t.Errorf("text %d: %s, want %s", b+1, line, part)
			}
		}
	}
}

func TestAPairForAModelOfSingleTextsIsAnError(t *testing.T) {
	run := taggedRun(t)
	pair := &corpus.Example{Place: corpus.Place{File: "line 2"}, Text: "so good", Pair: "so bad", Paired: true}
	predictions, err := run.answer(t, Form{}, []*corpus.Example{{Text: "so good"}, pair, {Text: "so bad"}})
	if err != nil {
		t.Fatal(err)
	}
	const want = "line 2: a pair of texts, but the model was trained on single ones; want text or words alone"
	if err := predictions[1].Err; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	for _, b := range []int{0, 2} {
		if predictions[b].Err != nil || len(predictions[b].Tasks) != 2 {
			t.Errorf("text %d: %+v, want predictions of both tasks", b+1, predictions[b])
		}
	}
}

func TestAModelOfSomeTasks(t *testing.T) {
	run := taggedRun(t)
	texts := []*corpus.Example{{Text: "so good"}}
	all, err := run.answer(t, Form{}, texts)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"mood", "pos"} {
		one, err := run.asked(t, name).PredictExamples(t.Context(), Form{}, texts...)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := jsonOf(t, one[0].Tasks), jsonOf(t, map[string]any{name: all[0].Tasks[name]}); got != want {
			t.Errorf("%s alone: %s, want %s", name, got, want)
		}
	}
}
