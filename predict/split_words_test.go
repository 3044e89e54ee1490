package predict

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/plugin"
)

func TestPlainTextsAreSplitAsTheWordsOfTheDataAre(t *testing.T) {
	const own = `{"words": ["the", "e-mail", "(", "10:30", ")", ",", "is", "so", "good", "!"],` +
		`"tags": "A B C D E F G H I J"}`
	const text = "an e-mail (10:31), so bad!"
	for _, test := range []struct {
		name, data, option, chosen, warning string
		words                               []string
	}{
		{"words as they are written", own, "", "ends", "",
			[]string{"an", "e-mail", "(", "10:31", ")", ",", "so", "bad", "!"}},
		{"words between blanks", `{"words": ["is,", "so?", "good!"], "tags": "A B C"}`, "", "whitespace", "",
			[]string{"an", "e-mail", "(10:31),", "so", "bad!"}},
		{"the tokenizer's words", `{"words": ["so", "good"], "tags": "A B"}`, "", "punctuation", "",
			[]string{"an", "e", "-", "mail", "(", "10", ":", "31", ")", ",", "so", "bad", "!"}},
		{"texts without words", `{"text": "so good!", "tags": "A B C"}`, "", "", "",
			[]string{"an", "e", "-", "mail", "(", "10", ":", "31", ")", ",", "so", "bad", "!"}},
		{"a way that is chosen by hand", own, ", split_words: whitespace", "whitespace",
			"split_words: whitespace, which agrees with the words of the training data by F1 ",
			[]string{"an", "e-mail", "(10:31),", "so", "bad!"}},
		{"texts split by hand", `{"text": "so good!", "tags": "A B"}`, ", split_words: whitespace", "whitespace", "",
			[]string{"an", "e-mail", "(10:31),", "so", "bad!"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			task := "  - {name: pos, type: tagging, data: {train: a.jsonl, dev: a.jsonl" + test.option + "}}\n"
			run, err := prepare(t, task, map[string]string{"a.jsonl": test.data + "\n" + test.data + "\n"},
				"training.num_epochs=1")
			if err != nil {
				t.Fatal(err)
			}
			warned := strings.Join(plugin.Lines(run.Warnings), "\n")
			if test.warning == "" && strings.Contains(warned, "split_words") ||
				!strings.Contains(warned, test.warning) {
				t.Errorf("warnings %s, want %q", warned, test.warning)
			}
			if words := splitByRun(t, run, text, test.chosen); !slices.Equal(words, test.words) {
				t.Errorf("words %q, want %q", words, test.words)
			}
		})
	}
}

// splitByRun trains a run, whose folder should name the way that words are split, "" for none, and returns the words of
// a text.
func splitByRun(t *testing.T, run trained, text, way string) (words []string) {
	t.Helper()
	if _, err := run.Train(context.Background(), "run", ignore); err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile("run/experiment.yaml")
	if err != nil || strings.Contains(string(file), "split_words: ") != (way != "") ||
		!strings.Contains(string(file), way) {
		t.Errorf("the run does not name the way %q: %v\n%s", way, err, file)
	}
	opened, err := OpenRun(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	predictions, err := opened.answer(t, Form{}, []*corpus.Example{{Text: text}})
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range predictions[0].Words {
		words = append(words, text[w.Start:w.End])
	}
	return words
}

func TestPlainTextsWithOtherWordsThanTheDataGiveAWarning(t *testing.T) {
	const data = `{"words": ["so-good", "a,b"], "tags": "A B"}` + "\n"
	run, err := prepare(t, "  - {name: pos, type: tagging, data: {train: a.jsonl, split_words: punctuation}}\n"+
		"  - {name: also, type: tagging, data: {same_as: pos}}\n",
		map[string]string{"a.jsonl": data + data}, "training.num_epochs=1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Train(context.Background(), "run", ignore); err != nil {
		t.Fatal(err)
	}
	opened, err := OpenRun(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	defer opened.Close()
	given := &corpus.Example{Text: "so-good", Words: []corpus.Span{{Start: 0, End: 7}}}
	const want = `warning: tasks "also", "pos": texts without words are split into words that agree with those of ` +
		`the training data by F1 0.0 %; give words for better predictions`
	for _, test := range []struct {
		texts []*corpus.Example
		want  []string
	}{
		{[]*corpus.Example{given}, nil},
		{[]*corpus.Example{{Text: "so good"}, given, {Text: "a"}}, []string{want}},
	} {
		m := opened.asked(t)
		for range 2 {
			if _, err := m.PredictExamples(t.Context(), Form{}, test.texts...); err != nil {
				t.Fatal(err)
			}
		}
		if got := m.TextWarnings(); !slices.Equal(plugin.Lines(got), test.want) {
			t.Errorf("warnings %q, want %q", got, test.want)
		}
	}
}
