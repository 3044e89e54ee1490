package tasks_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/parttest"
	"github.com/jenga-nlp/jenga/tasks"
)

func TestNER(t *testing.T) { parttest.Task(t, "ner", "") }

func TestNERWithEntities(t *testing.T) {
	parttest.Task(t, "ner", "",
		record(map[string]any{"text": "Zoë paid 12 euros",
			"entities": []any{entity(0, 3, "person"), entity(9, 17, "amount")}}),
		record(map[string]any{"text": "nobody paid", "entities": []any{}}),
	)
}

// entity is an entity of a record, at characters of its text.
func entity(start, end int, label string) map[string]any {
	return map[string]any{"start": json.Number(fmt.Sprint(start)), "end": json.Number(fmt.Sprint(end)), "label": label}
}

func TestEntitiesBecomeTags(t *testing.T) {
	task := newNER(t, tasks.Env{Heads: []string{"entity"}, Split: splitAtPunctuation})
	for _, c := range []struct {
		name, text string
		entities   []any
		want       string // the tags, or the error
	}{
		{"no entity", "all is well", []any{}, "O O O"},
		{"one of several words", "to New York now", []any{entity(3, 11, "city")}, "O B-city I-city O"},
		{"offsets in characters", "Zoë saw Rome", []any{entity(8, 12, "city")}, "O O B-city"},
		{"side by side", "Rome Oslo", []any{entity(0, 4, "city"), entity(5, 9, "city")}, "B-city B-city"},
		{"out of order", "Rome Oslo", []any{entity(5, 9, "x"), entity(0, 4, "y")}, "B-y B-x"},
		{"followed by a full stop", "on 3.5.", []any{entity(3, 6, "date")}, "O B-date I-date I-date O"},
		{"blanks at its ends", "to Rome now", []any{entity(2, 8, "city")}, "O B-city O"},
		{"a part of a word", "a Romeward trip", []any{entity(2, 6, "city")}, "O B-city O"},
		{"two in one word", "a RomeOslo trip", []any{entity(2, 6, "x"), entity(6, 10, "y")},
			`data.jsonl:7: entities x "Rome" and y "Oslo" share a word; a word has one tag`},
		{"one that begins in the last word of another", "in New YorkOslo Bay",
			[]any{entity(3, 11, "x"), entity(11, 19, "y")},
			`data.jsonl:7: entities x "New York" and y "Oslo Bay" share a word; a word has one tag`},
		{"nothing but a blank", "a b", []any{entity(1, 2, "x")}, `data.jsonl:7: entity x " " contains no word`},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := task.Example(record(map[string]any{"text": c.text, "entities": c.entities}))
			if err != nil {
				if err.Error() != c.want {
					t.Errorf("error %v, want %s", err, c.want)
				}
				return
			}
			if got := strings.Join(targetTags(e.Targets[0]), " "); got != c.want || e.Targets[0] == nil {
				t.Errorf("tags %s, want %s", got, c.want)
			}
		})
	}
}

func TestEntitiesWithinWordsWarn(t *testing.T) {
	task := newNER(t, tasks.Env{Heads: []string{"entity"}, Split: splitAtPunctuation})
	// a whole word, the end of it, its beginning, the next word with the blank before it
	for _, part := range [][2]int{{0, 7}, {3, 7}, {0, 5}, {7, 13}} {
		if _, err := task.Example(record(map[string]any{"text": "prepaid cards",
			"entities": []any{entity(part[0], part[1], "x")}})); err != nil {
			t.Fatal(err)
		}
	}
	warnings := tasks.DescriptionOf(task).Warnings()
	want := `entities that begin or end within a word, and are extended to all of it: 2; ` +
		`first: data.jsonl:7, x "paid"`
	if len(warnings) != 1 || warnings[0] != want {
		t.Errorf("warnings %q, want %q", warnings, want)
	}
}

// Spans that are predicted are entities of data files with the same offsets: both count characters.
func TestPredictedSpansAreEntitiesOfTheSameWords(t *testing.T) {
	task := newNER(t, tasks.Env{Heads: []string{"entity"}, Split: splitAtPunctuation})
	for _, text := range []string{
		"play Zoë's Crème 😀 now", "👩‍👩‍👧 saw Ann 👍🏽 there", "e\u0301cole a\u0308 Paris", "أغنية لفيروز من بيروت",
		"मुंबई में बारिश हुई", "我 想听 周杰伦 的歌", "𠮷野家 in 𝒳 town",
	} {
		e, err := task.Example(record(map[string]any{"text": text}))
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Repeat([]string{"O"}, len(e.Words))
		want[1], want[2] = "B-x", "I-x"
		predicted := &outputs.TagsPrediction{
			IDs: make([]int, len(want)), Probabilities: make([]float32, len(want)), Tags: want,
		}
		in := outputs.Input{Example: &e, Spans: tasks.DescriptionOf(task).Spans}
		line, err := json.Marshal(outputs.Tags.JSON(predicted, in))
		if err != nil {
			t.Fatal(err)
		}
		fields, err := corpus.ParseObject(string(line))
		if err != nil {
			t.Fatal(err)
		}
		read, err := task.Example(record(map[string]any{"text": text, "entities": fields["spans"]}))
		if err != nil || !slices.Equal(targetTags(read.Targets[0]), want) {
			t.Errorf("%s: read back as %v, %v, want %v", line, read.Targets, err, want)
		}
	}
}

func TestEntitiesOfGivenWords(t *testing.T) {
	task := newNER(t, tasks.Env{Heads: []string{"entity"}})
	e, err := task.Example(record(map[string]any{"words": []any{"Ann", "paid"},
		"entities": []any{entity(0, 3, "person")}}))
	if err != nil || !slices.Equal(targetTags(e.Targets[0]), []string{"B-person", "O"}) {
		t.Errorf("targets %+v, error %v", e.Targets, err)
	}
}

func TestRecordWithoutEntitiesOrTagsHasNoTarget(t *testing.T) {
	task := newNER(t, tasks.Env{Heads: []string{"entity"}, Split: splitAtPunctuation})
	e, err := task.Example(record(map[string]any{"text": "one, two"}))
	if err != nil {
		t.Fatal(err)
	}
	if e.Targets[0] != nil || len(e.Words) != 3 {
		t.Errorf("target %+v, %d words; want no target, 3 words", e.Targets[0], len(e.Words))
	}
}

func TestHeadTagsPrecedeTaskTags(t *testing.T) {
	task := newNER(t, tasks.Env{Heads: []string{"places", "people"}})
	e, err := task.Example(record(map[string]any{
		"words": "Ada in Rome", "tags": "B-x O O", "tags.places": "O O B-city", "entities": []any{},
	}))
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]string{{"O", "O", "B-city"}, {"B-x", "O", "O"}} {
		if got := targetTags(e.Targets[i]); !slices.Equal(got, want) {
			t.Errorf("head %d: tags %q, want %q", i, got, want)
		}
	}
}

func TestTagWithoutSpanPrefixIsAnError(t *testing.T) {
	task := newNER(t, tasks.Env{Heads: []string{"entity"}})
	for _, tag := range []string{"NOUN", "B-", "Bcity", "b-city", "X-city", "É-city"} {
		_, err := task.Example(record(map[string]any{"words": "a b", "tags": []any{"O", tag}}))
		want := fmt.Sprintf("data.jsonl:7: tag 2 is %q; ner takes O, and B-, I-, E- or S- before a label, or L-, "+
			"U- or M-, tagging takes any tag", tag)
		if err == nil || err.Error() != want {
			t.Errorf("tag %q: error %v, want %s", tag, err, want)
		}
	}
}

func TestTagsOfOtherFormsAreNamed(t *testing.T) {
	task := newNER(t, tasks.Env{Heads: []string{"entity"}})
	for tag, want := range map[string]string{
		"PER-B":    "; its letter is after the label: write B-PER",
		"(PERSON*": "; it is of CoNLL-2012's form",
		"*":        "; it is of CoNLL-2012's form",
		"*)":       "; it is of CoNLL-2012's form",
		"(PERSON)": "; it is of CoNLL-2012's form",
		")":        "", // of parts of speech
		"ner_tag":  `; if line 1 has the names of columns, data: {comments: LINE} skips it`,
	} {
		r := record(map[string]any{"words": "a b", "tags": []any{tag, "O"}})
		r.Place.Line = 1
		if _, err := task.Example(r); err == nil || !strings.Contains(err.Error(), "takes any tag"+want) ||
			want == "" && !strings.HasSuffix(err.Error(), "takes any tag") {
			t.Errorf("tag %q: error %v, want %s", tag, err, want)
		}
	}
}

func TestSpansOfTagsWithoutPrefix(t *testing.T) {
	task := newNER(t, tasks.Env{Heads: []string{"entity"}})
	got := tasks.DescriptionOf(task).Spans([]string{"O", "city", "city", "I-city"})
	want := []outputs.TagSpan{
		{Label: "city", Start: 1, End: 2}, {Label: "city", Start: 2, End: 3}, {Label: "city", Start: 3, End: 4},
	}
	if !slices.Equal(got, want) {
		t.Errorf("Spans = %v, want %v", got, want)
	}
}

func TestFirstMetricIsTheMainMetric(t *testing.T) {
	for name, want := range map[string]string{"classification": "accuracy", "sentiment": "accuracy", "ner": "span_f1",
		"tagging": "accuracy"} {
		choice, err := tasks.Registry().FromString(name, "")
		if err != nil {
			t.Fatal(err)
		}
		task, err := choice.Build(tasks.Env{Heads: []string{"head"}})
		if err != nil {
			t.Fatal(err)
		}
		if got := task.Evaluate(nil, nil)[0].Name; got != want {
			t.Errorf("%s: first metric %s, want %s", name, got, want)
		}
	}
}

// newNER makes the task with its default options.
func newNER(t *testing.T, env tasks.Env) tasks.Task {
	t.Helper()
	return newNERWith(t, tasks.NEROptions{}, env)
}
