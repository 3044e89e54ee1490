package tasks_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/parttest"
	"github.com/jenga-nlp/jenga/tasks"
)

func TestTagging(t *testing.T) { parttest.Task(t, "tagging", "") }

func tagsIn(t corpus.Target) []string { return outputs.As[outputs.TagsTarget](t).Tags }

// splitSigns divides a text as a WordPiece tokenizer does: at blanks, and each punctuation mark by itself.
func splitSigns(text string) []corpus.Span {
	var words []corpus.Span
	start := -1
	for i, r := range text + " " {
		letter := r != ' ' && !strings.ContainsRune(".,-()", r)
		if start >= 0 && !letter {
			words = append(words, corpus.Span{Start: start, End: i})
			start = -1
		}
		switch {
		case letter && start < 0:
			start = i
		case !letter && r != ' ':
			words = append(words, corpus.Span{Start: i, End: i + 1})
		}
	}
	return words
}

func TestTagsAreAsManyAsWords(t *testing.T) {
	task := tasks.NewTagging(tasks.Env{Heads: []string{"pos"}, Split: splitSigns})

	t.Run("of given words", func(t *testing.T) {
		e, err := task.Example(record(map[string]any{"words": []any{"e-mail", "me"}, "tags": "NOUN PRON"}))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := tagsIn(e.Targets[0]), []string{"NOUN", "PRON"}; !slices.Equal(got, want) || len(e.Words) != 2 {
			t.Errorf("tags %q of %d words, want %q", got, len(e.Words), want)
		}
	})
	t.Run("of a text's words", func(t *testing.T) {
		e, err := task.Example(record(map[string]any{"text": "stop.", "tags": []any{"VERB", nil}}))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := tagsIn(e.Targets[0]), []string{"VERB", ""}; !slices.Equal(got, want) {
			t.Errorf("tags %q, want %q", got, want)
		}
	})
	for name, c := range map[string]struct {
		fields map[string]any
		want   string
	}{
		"else an error": {
			map[string]any{"words": []any{"a", "b"}, "tags": []any{"X"}},
			"data.jsonl:7: 1 tags for 2 words; want a tag for each",
		},
		"else an error that says how a text's words can be given": {
			map[string]any{"text": "e-mail me", "tags": "NOUN PRON"},
			`data.jsonl:7: 2 tags for 4 words; give the words as "words" in place of "text"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := task.Example(record(c.fields)); err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

func TestOnlyWordsWithAGoldTagCount(t *testing.T) {
	task := tasks.NewTagging(tasks.Env{Heads: []string{"pos"}})
	gold := []corpus.Target{&outputs.TagsTarget{Tags: []string{"X", "", "Y", "Y"}}}
	predicted := []corpus.Prediction{&outputs.TagsPrediction{Tags: []string{"X", "X", "Y", "O"}}}
	if got, want := task.Evaluate(gold, predicted)[0], (tasks.Metric{Name: "accuracy", Value: 2. / 3}); got != want {
		t.Errorf("Judge gives %v first, want %v", got, want)
	}
}
