package predict

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
)

func TestAPredictionSaysInHowManyWindowsItsTextWasRead(t *testing.T) {
	const data = `{"text": "a b", "label": "x"}` + "\n" + `{"text": "c", "label": "y"}` + "\n"
	for _, test := range []struct {
		long, text         string
		windows, truncated int
		json               string
	}{
		{"windows", "a b c", 1, 0, `"truncated":0,"tasks"`},
		{"windows", strings.Repeat("a b ", 30), 3, 0, `"truncated":0,"windows":3,"tasks"`},
		{"truncate", strings.Repeat("a b ", 30), 1, 30, `"truncated":30,"tasks"`},
	} {
		_, run := trainedRun(t, "  - {name: team, type: classification, long: "+test.long+", data: {train: a.jsonl, "+
			"dev: a.jsonl}}\n", map[string]string{"a.jsonl": data}, "training.num_epochs=1")
		predictions, err := run.answer(t, Form{}, []*corpus.Example{{Text: test.text}})
		if err != nil {
			t.Fatal(err)
		}
		p := predictions[0]
		if p.Windows != test.windows || p.Truncated != test.truncated || !strings.Contains(jsonOf(t, p), test.json) {
			t.Errorf("long: %s, %.10q: %d windows, %d truncated, want %d and %d\n%s", test.long, test.text, p.Windows,
				p.Truncated, test.windows, test.truncated, jsonOf(t, p))
		}
	}
}

func TestWordsThatATruncatedTextIsSplitIntoEndWithTheLastOneRead(t *testing.T) {
	_, run := trainedRun(t, "  - {name: kind, type: tagging, data: {train: a.jsonl, dev: a.jsonl}}\n",
		map[string]string{"a.jsonl": `{"words": ["a", "b"], "tags": ["X", "Y"]}` + "\n"}, "training.num_epochs=1")
	text := strings.Repeat("a b ", 30)
	given := corpus.Example{Text: text, WordsGiven: true}
	for i := range 60 {
		given.Words = append(given.Words, corpus.Span{Start: 2 * i, End: 2*i + 1})
	}
	predictions, err := run.answer(t, Form{}, []*corpus.Example{{Text: text}, &given, {Text: "a \u0301 b \u0301"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []struct{ truncated, words, tags, read int }{{30, 30, 30, 30}, {30, 0, 60, 30}, {0, 2, 2, 2}} {
		p := predictions[i]
		tags, _ := Answer[outputs.TagsAnswer](p, "kind", "kind")
		read := 0
		for _, tag := range tags.Tags {
			if tag != nil {
				read++
			}
		}
		if p.Truncated != want.truncated || len(tags.Words) != want.words || len(tags.Tags) != want.tags ||
			read != want.read {
			t.Errorf("text %d: %d truncated, %d words, %d tags, %d of them read; want %+v", i+1, p.Truncated,
				len(tags.Words), len(tags.Tags), read, want)
		}
	}
}

// Windows of a long pair slide over the text that has words, if it has, though it is the shorter one.
func TestTextsWithOtherTokensByWordDoNotChangeTheOthers(t *testing.T) {
	_, run := trainedRun(t, "  - {name: mood, type: classification, long: windows, data: {train: a.jsonl, dev: "+
		"a.jsonl}}\n"+
		"  - {name: kind, type: tagging, long: windows, data: {train: b.jsonl, dev: b.jsonl}}\n",
		map[string]string{
			"a.jsonl": `{"text": "a b", "label": "x"}` + "\n" + `{"text": "b c", "pair": "a", "label": "y"}` + "\n",
			"b.jsonl": `{"words": ["a", "b"], "tags": ["X", "Y"]}` + "\n",
		}, "training.num_epochs=1")
	m := run.asked(t)
	examples := []*corpus.Example{
		{Text: "a b"}, {Text: strings.Repeat("a ", 20), Pair: strings.Repeat("b ", 30), Paired: true}, {Text: "b"},
	}
	if g := m.groups[0]; len(m.groups) != 1 || len(g.tasks[asText].Tasks) != 1 ||
		len(g.tasks[byWords].Tasks) != 1 {
		t.Fatal("want one group with a task that reads texts and one that reads words")
	}
	for i, e := range examples {
		by := readAll(t, m, e).by[0]
		if same := by.encoded[asBoth] != nil; same != (i != 1) {
			t.Errorf("text %d: its tokens are the same by word: %v", i+1, same)
		}
	}
	together, err := m.PredictExamples(t.Context(), Form{}, examples...)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range examples {
		alone, err := m.PredictExamples(t.Context(), Form{}, e)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := jsonOf(t, together[i]), jsonOf(t, alone[0]); got != want {
			t.Errorf("text %d: %s together, %s alone", i+1, got, want)
		}
	}
}
