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

// targetTags returns the tags of a target.
func targetTags(t corpus.Target) []string { return outputs.As[outputs.TagsTarget](t).Tags }

// splitAtPunctuation divides a text as a WordPiece tokenizer does: at blanks, and each punctuation mark by itself.
func splitAtPunctuation(text string) []corpus.Span {
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

func TestTagCountMatchesWordCount(t *testing.T) {
	task := tasks.NewTagging(tasks.Env{Heads: []string{"pos"}, Split: splitAtPunctuation})

	t.Run("tags of given words", func(t *testing.T) {
		e, err := task.Example(record(map[string]any{"words": []any{"e-mail", "me"}, "tags": "NOUN PRON"}))
		if err != nil {
			t.Fatal(err)
		}
		got, want := targetTags(e.Targets[0]), []string{"NOUN", "PRON"}
		if !slices.Equal(got, want) || len(e.Words) != 2 {
			t.Errorf("tags %q of %d words, want %q", got, len(e.Words), want)
		}
	})
	t.Run("tags of the words of a text", func(t *testing.T) {
		e, err := task.Example(record(map[string]any{"text": "stop.", "tags": []any{"VERB", nil}}))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := targetTags(e.Targets[0]), []string{"VERB", ""}; !slices.Equal(got, want) {
			t.Errorf("tags %q, want %q", got, want)
		}
	})
	for name, c := range map[string]struct {
		fields map[string]any
		want   string
	}{
		"fewer tags than words": {
			map[string]any{"words": []any{"a", "b"}, "tags": []any{"X"}},
			`data.jsonl:7: field "tags" has 1 tag for 2 words; want a tag for each`,
		},
		"fewer tags than words of a text": {
			map[string]any{"text": "e-mail me", "tags": "NOUN PRON"},
			`data.jsonl:7: field "tags" has 2 tags for 4 words; give the words as "words" in place of "text"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := task.Example(record(c.fields)); err == nil || err.Error() != c.want {
				t.Errorf("error %v, want %s", err, c.want)
			}
		})
	}
}

func TestTaggingAccuracySkipsWordsWithoutGoldTag(t *testing.T) {
	task := tasks.NewTagging(tasks.Env{Heads: []string{"pos"}})
	gold := []corpus.Target{&outputs.TagsTarget{Tags: []string{"X", "", "Y", "Y"}}}
	predicted := []corpus.Prediction{&outputs.TagsPrediction{Tags: []string{"X", "X", "Y", "O"}}}
	if got, want := task.Evaluate(gold, predicted)[0], (tasks.Metric{Name: "accuracy", Value: 2. / 3}); got != want {
		t.Errorf("first metric %v, want %v", got, want)
	}
}
