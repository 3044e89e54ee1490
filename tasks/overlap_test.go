package tasks_test

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

func TestOverlappingEntities(t *testing.T) {
	for _, c := range []struct {
		name, text     string
		entities       []any
		longest, first string // the tags
		dropped        bool
	}{
		{"none overlap", "Rome Oslo", []any{entity(5, 9, "x"), entity(0, 4, "y")}, "B-y B-x", "B-y B-x", false},
		{"one within another", "in New York City", []any{entity(3, 11, "x"), entity(3, 16, "y")}, "O B-y I-y I-y",
			"O B-x I-x O", true},
		{"a chain", "one two three four", []any{entity(0, 7, "x"), entity(4, 13, "y"), entity(8, 18, "z")},
			"B-x I-x B-z I-z", "B-x I-x B-z I-z", true},
		{"a long one in the middle", "one two three", []any{entity(0, 5, "x"), entity(4, 13, "y")}, "O B-y I-y",
			"B-x I-x O", true},
		{"longer in characters, not in bytes", "ééé two six", []any{entity(0, 6, "x"), entity(4, 11, "y")},
			"O B-y I-y", "B-x I-x O", true},
		{"equally long in characters", "one two síx", []any{entity(4, 11, "y"), entity(0, 7, "x")}, "B-x I-x O",
			"B-x I-x O", true},
		{"equally long", "one two six", []any{entity(4, 11, "y"), entity(0, 7, "x")}, "B-x I-x O", "B-x I-x O", true},
		{"twice the same", "one two", []any{entity(0, 3, "x"), entity(0, 3, "y")}, "B-x O", "B-x O", true},
		{"parts of one word", "a RomeOsloX trip", []any{entity(2, 6, "x"), entity(6, 11, "y")}, "O B-y O", "O B-x O",
			true},
	} {
		for overlap, want := range map[string]string{"longest": c.longest, "first": c.first} {
			task, err := tasks.NewNER(tasks.NEROptions{Overlap: overlap},
				tasks.Env{Heads: []string{"entity"}, Split: splitAtPunctuation})
			if err != nil {
				t.Fatal(err)
			}
			e, err := task.Example(record(map[string]any{"text": c.text, "entities": c.entities}))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(e.Targets[0].(*outputs.TagsTarget).Tags, " "); got != want {
				t.Errorf("%s, %s: tags %s, want %s", c.name, overlap, got, want)
			}
			warnings := strings.Join(task.(interface{ Warnings() []string }).Warnings(), "\n")
			const left = " and are left out (overlap: "
			if want := left + overlap + "): 1; first: "; strings.Contains(warnings, want) != c.dropped {
				t.Errorf("%s, %s: warnings %q, want %q: %v", c.name, overlap, warnings, want, c.dropped)
			}
		}
	}
}

// Time is in proportion to the entities and words: of nested ones, and of a chain that begins in each word.
func TestManyOverlappingEntities(t *testing.T) {
	const n = 100_000
	var nested, chain []any
	for i := range n {
		chain = append(chain, entity(2*i, min(2*i+3, 2*n-1), "x"))
		nested = append(nested, entity(2*(i/2), 2*n-1-2*(i/2), "x"))
	}
	text := strings.Repeat("a ", n-1) + "a"
	for overlap, entities := range map[string][]any{"longest": nested, "first": chain} {
		task, err := tasks.NewNER(tasks.NEROptions{Overlap: overlap},
			tasks.Env{Heads: []string{"entity"}, Split: splitAtPunctuation})
		if err != nil {
			t.Fatal(err)
		}
		e, err := task.Example(record(map[string]any{"text": text, "entities": entities}))
		if err != nil {
			t.Fatal(err)
		}
		want := 1 // the outermost
		if overlap == "first" {
			want = n / 2 // of two words each
		}
		tags := e.Targets[0].(*outputs.TagsTarget).Tags
		got := 0
		for _, tag := range tags {
			if tag == "B-x" {
				got++
			}
		}
		if len(tags) != n || got != want {
			t.Errorf("%s: %d entities of %d words, want %d of %d", overlap, got, len(tags), want, n)
		}
	}
}
