package tasks_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

// parseTags returns tags that are separated by blanks; - stands for a word without a tag.
func parseTags(text string) []string {
	tags := strings.Fields(text)
	for i, tag := range tags {
		if tag == "-" {
			tags[i] = ""
		}
	}
	return tags
}

func newNERWithScheme(t *testing.T, scheme, brokenTags string) tasks.Task {
	t.Helper()
	return newNERWith(t, tasks.NEROptions{Scheme: scheme, BrokenTags: brokenTags},
		tasks.Env{Heads: []string{"entity"}, Split: splitAtPunctuation})
}

// newNERWith makes the task with options, and the defaults of those left out.
func newNERWith(t *testing.T, o tasks.NEROptions, env tasks.Env) tasks.Task {
	t.Helper()
	o = tasks.NEROptions{Scheme: cmp.Or(o.Scheme, "auto"), BrokenTags: cmp.Or(o.BrokenTags, "keep"),
		Overlap: cmp.Or(o.Overlap, "error")}
	task, err := tasks.Registry().Build("ner", o, env)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

var schemes = []string{"auto", "bio", "bioes", "io"}

func TestBrokenTags(t *testing.T) {
	for _, c := range []struct {
		name, tags string
		// in the order of schemes
		repaired [4]string // by broken_tags: repair
		broken   [4]int    // the number of the tag that is an error with broken_tags: error, from 1; 0: no error
		context  [4]string // of the broken tag, in the error
	}{
		{
			"a span that does not begin", "O I-x I-x O",
			[4]string{"O B-x I-x O", "O B-x I-x O", "O B-x E-x O", "O I-x I-x O"},
			[4]int{2, 2, 2, 0}, [4]string{`after "O"`, `after "O"`, `after "O"`, ""},
		},
		{
			"another label inside a span", "B-x I-y O",
			[4]string{"B-x B-y O", "B-x B-y O", "S-x S-y O", "I-x I-y O"},
			[4]int{2, 2, 1, 1}, [4]string{`after "B-x"`, `after "B-x"`, "as the first tag", "as the first tag"},
		},
		{
			"spans that end", "B-x E-x O S-y",
			[4]string{"B-x E-x O S-y", "B-x I-x O B-y", "B-x E-x O S-y", "I-x I-x O I-y"},
			[4]int{0, 2, 0, 1}, [4]string{"", `after "B-x"`, "", "as the first tag"},
		},
		{
			"spans that do not end, beside one that does", "B-x I-x O E-x",
			[4]string{"B-x E-x O S-x", "B-x I-x O B-x", "B-x E-x O S-x", "I-x I-x O I-x"},
			[4]int{2, 4, 2, 1}, [4]string{`after "B-x"`, `after "O"`, `after "B-x"`, "as the first tag"},
		},
		{
			"a word without a tag inside a span", "B-x - I-x",
			[4]string{"B-x - B-x", "B-x - B-x", "S-x - S-x", "I-x - I-x"},
			[4]int{3, 3, 1, 1}, [4]string{`after ""`, `after ""`, "as the first tag", "as the first tag"},
		},
		{
			"bare tags", "B I E",
			[4]string{"B I E", "B I I", "B I E", "I I I"},
			[4]int{0, 3, 0, 1}, [4]string{"", `after "I"`, "", "as the first tag"},
		},
		{"no span", "O - O", [4]string{"O - O", "O - O", "O - O", "O - O"}, [4]int{}, [4]string{}},
	} {
		tags := parseTags(c.tags)
		words := make([]any, len(tags))
		for i := range words {
			words[i] = fmt.Sprint("word", i)
		}
		for s, scheme := range schemes {
			for _, brokenTags := range []string{"keep", "repair", "error"} {
				t.Run(fmt.Sprintf("%s, scheme %s, broken_tags %s", c.name, scheme, brokenTags), func(t *testing.T) {
					want, wantError := tags, ""
					switch at := c.broken[s]; {
					case brokenTags == "repair":
						want = parseTags(c.repaired[s])
					case brokenTags == "error" && at > 0:
						wantError = fmt.Sprintf("data.jsonl:7: tag %d is %q %s; broken_tags: repair makes it %q", at,
							tags[at-1], c.context[s], parseTags(c.repaired[s])[at-1])
					}
					e, err := newNERWithScheme(t, scheme,
						brokenTags).Example(record(map[string]any{"words": words, "tags": slices.Clone(tags)}))
					if wantError != "" {
						if err == nil || err.Error() != wantError {
							t.Errorf("error %v, want %s", err, wantError)
						}
						return
					}
					if err != nil {
						t.Fatal(err)
					}
					if got := targetTags(e.Targets[0]); !slices.Equal(got, want) {
						t.Errorf("tags %q, want %q", got, want)
					}
				})
			}
		}
	}
}

func TestSchemeAutoIsDeterminedByWholeFile(t *testing.T) {
	file := [][]string{{"O", "S-x"}, {"O", "B-x", "I-x", "O"}, {"O", "I-x"}}
	var records []corpus.Record
	for i, tags := range file {
		r := record(map[string]any{"words": []string{"a", "b", "c", "d"}[:len(tags)], "tags": tags})
		r.Place.Line = i + 1
		records = append(records, r)
	}
	for brokenTags, want := range map[string][]string{
		"keep":   {"O S-x", "O B-x I-x O", "O I-x"},
		"repair": {"O S-x", "O B-x E-x O", "O S-x"},
		"error": {"O S-x", `data.jsonl:2: tag 3 is "I-x" after "B-x"; broken_tags: repair makes it "E-x"`,
			`data.jsonl:3: tag 2 is "I-x" after "O"; broken_tags: repair makes it "S-x"`},
	} {
		task := newNERWithScheme(t, "auto", brokenTags)
		tasks.SurveyRecords(task, records)
		for i, r := range records {
			e, err := task.Example(r)
			got := ""
			if err != nil {
				got = err.Error()
			} else {
				got = strings.Join(targetTags(e.Targets[0]), " ")
			}
			if got != want[i] {
				t.Errorf("broken_tags: %s: text %d: %s, want %s", brokenTags, i+1, got, want[i])
			}
		}
		warnings := tasks.DescriptionOf(task).Warnings()
		if brokenTags != "keep" && len(warnings) > 0 {
			t.Errorf("broken_tags: %s: warnings %q, want none", brokenTags, warnings)
		}
		const warning = `tags that break scheme bioes, whose spans span_f1_strict does not count: 2; ` +
			`broken_tags: repair fixes them; first: data.jsonl:2, tag 3 is "I-x", should be "E-x"`
		if brokenTags == "keep" && (len(warnings) != 1 || warnings[0] != warning) {
			t.Errorf("warnings %q, want %q", warnings, warning)
		}
	}
}

func TestSchemeIOHasNoBrokenTags(t *testing.T) {
	// in IO, span_f1_strict counts all spans
	for scheme, tags := range map[string][]string{"auto": {"O", "I-x"}, "io": {"B-x", "E-x"}} {
		task, r := newNERWithScheme(t, scheme, "keep"), record(map[string]any{"words": []any{"a", "b"}, "tags": tags})
		tasks.SurveyRecords(task, []corpus.Record{r})
		_, err := task.Example(r)
		if warnings := tasks.DescriptionOf(task).Warnings(); err != nil || len(warnings) > 0 {
			t.Errorf("scheme %s, %q: error %v, warnings %q; want none", scheme, tags, err, warnings)
		}
	}
}

func TestSchemeAutoIsDeterminedByFirstFile(t *testing.T) {
	texts := func(tags ...string) []corpus.Record {
		return []corpus.Record{record(map[string]any{"words": []any{"a", "b"}, "tags": tags})}
	}
	entityRecord := record(map[string]any{"text": "Rome",
		"entities": []any{map[string]any{"start": json.Number("0"), "end": json.Number("4"), "label": "x"}}})
	for _, c := range []struct {
		first  []corpus.Record
		strict float64 // span_f1_strict of a span without an end in bioes
		tags   string
	}{
		{texts("S-x", "O"), 0, "S-x"},
		{texts("B-x", "O"), 1, "B-x"},
		{[]corpus.Record{entityRecord}, 1, "B-x"},
	} {
		task := newNERWithScheme(t, "auto", "keep")
		tasks.SurveyRecords(task, c.first)
		tasks.SurveyRecords(task, texts("O", "S-x")) // does not change the scheme

		tags := parseTags("B-x I-x")
		metrics := task.Evaluate([]corpus.Target{&outputs.TagsTarget{Tags: tags}},
			[]corpus.Prediction{&outputs.TagsPrediction{Tags: tags}})
		at := slices.IndexFunc(metrics, func(m tasks.Metric) bool { return m.Name == "span_f1_strict" })
		if got := metrics[at].Value; got != c.strict {
			t.Errorf("after %v: span_f1_strict %v, want %v", c.first[0].Fields, got, c.strict)
		}
		e, err := task.Example(entityRecord)
		if err != nil || strings.Join(targetTags(e.Targets[0]), " ") != c.tags {
			t.Errorf("after %v: targets %v, error %v, want %s", c.first[0].Fields, e.Targets, err, c.tags)
		}
	}
}

func TestEntitiesBecomeTagsOfScheme(t *testing.T) {
	fields := map[string]any{
		"text":     "Rome Oslo, New York Bay",
		"entities": []any{entity(0, 4, "city"), entity(5, 9, "city"), entity(11, 23, "bay")},
	}
	for scheme, want := range map[string]string{
		"auto":  "B-city B-city O B-bay I-bay I-bay",
		"bio":   "B-city B-city O B-bay I-bay I-bay",
		"bioes": "S-city S-city O B-bay I-bay E-bay",
		"io":    "I-city I-city O I-bay I-bay I-bay",
	} {
		for _, brokenTags := range []string{"keep", "repair", "error"} { // the tags are not broken
			e, err := newNERWithScheme(t, scheme, brokenTags).Example(record(fields))
			if err != nil {
				t.Fatalf("scheme %s, broken_tags %s: %v", scheme, brokenTags, err)
			}
			if got := strings.Join(targetTags(e.Targets[0]), " "); got != want {
				t.Errorf("scheme %s, broken_tags %s: tags %s, want %s", scheme, brokenTags, got, want)
			}
		}
	}
}

func TestInvalidOptionsOfNER(t *testing.T) {
	for want, o := range map[string]tasks.NEROptions{
		`scheme: want auto, bio, bioes, io, bilou, bmes, iob1, ioe1 or ioe2, have "iob"`: {"iob", "keep", "error"},
		`broken_tags: want keep, repair or error, have "mend"`:                           {"auto", "mend", "error"},
		`broken_tags: want keep, repair or error, have "errors"`:                         {"io", "errors", "error"},
	} {
		if _, err := tasks.Registry().Build("ner", o, tasks.Env{}); err == nil || err.Error() != want {
			t.Errorf("%+v: error %v, want %s", o, err, want)
		}
	}
}

// As in the strict mode of seqeval, only spans whose first, inner and last tags are those of the scheme count.
func TestStrictSpanMetrics(t *testing.T) {
	for _, c := range []struct {
		name, gold, predicted string
		precision, recall     float64
	}{
		{"equal to gold", "B-x I-x E-x O S-y", "B-x I-x E-x O S-y", 1, 1},
		{"a span that does not end", "B-x I-x E-x O S-y", "B-x I-x I-x O S-y", 1, 0.5},
		{"B- on a span of one word", "B-x I-x E-x O S-y", "B-x I-x E-x O B-y", 1, 0.5},
		{"a span that does not begin", "B-x I-x E-x O S-y", "I-x I-x E-x O S-y", 1, 0.5},
		{"a span that continues after its end", "B-x I-x E-x O S-y", "B-x E-x E-x O S-y", 0.5, 0.5},
		{"spans of one word instead of a longer one", "B-x I-x E-x O S-y", "S-x S-x S-x O S-y", 0.25, 0.5},
		{"another label inside", "B-x I-x E-x O S-y", "B-x I-y E-x O S-y", 1, 0.5},
		{"no span", "B-x I-x E-x O S-y", "O O O O O", 0, 0},
		{"a word without a gold tag does not count", "S-x - S-y", "S-x S-z S-y", 1, 1},
		{"in BIO a span needs no end", "B-x I-x I-x O B-y", "B-x I-x I-x O B-y", 1, 1},
		{"in BIO a span begins", "B-x I-x I-x O B-y", "I-x I-x I-x O B-y", 1, 0.5},
		{"in IO all spans are strict", "I-x I-x O I-y", "I-x I-x O I-y", 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			gold := []corpus.Target{&outputs.TagsTarget{Tags: parseTags(c.gold)}}
			got := map[string]float64{}
			predicted := []corpus.Prediction{&outputs.TagsPrediction{Tags: parseTags(c.predicted)}}
			for _, m := range newNERWithScheme(t, "auto", "keep").Evaluate(gold, predicted) {
				got[m.Name] = m.Value
			}
			f1 := 0.0
			if c.precision > 0 {
				f1 = 2 * c.precision * c.recall / (c.precision + c.recall)
			}
			for name, want := range map[string]float64{"span_precision_strict": c.precision,
				"span_recall_strict": c.recall, "span_f1_strict": f1} {
				if v, ok := got[name]; !ok || !(math.Abs(v-want) <= 1e-12) {
					t.Errorf("%s = %v, want %v", name, v, want)
				}
			}
		})
	}
}

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
			task := newNERWith(t, tasks.NEROptions{Overlap: overlap},
				tasks.Env{Heads: []string{"entity"}, Split: splitAtPunctuation})
			e, err := task.Example(record(map[string]any{"text": c.text, "entities": c.entities}))
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(e.Targets[0].(*outputs.TagsTarget).Tags, " "); got != want {
				t.Errorf("%s, %s: tags %s, want %s", c.name, overlap, got, want)
			}
			warnings := strings.Join(tasks.DescriptionOf(task).Warnings(), "\n")
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
		task := newNERWith(t, tasks.NEROptions{Overlap: overlap},
			tasks.Env{Heads: []string{"entity"}, Split: splitAtPunctuation})
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

// TestTagsOfOtherSchemes reads the same spans, PER of three words, PER of one and two LOC side by side, in each scheme.
func TestTagsOfOtherSchemes(t *testing.T) {
	const bio = "B-PER I-PER I-PER O B-PER O B-LOC B-LOC I-LOC"
	const bioes = "B-PER I-PER E-PER O S-PER O S-LOC B-LOC E-LOC"
	for _, test := range []struct{ scheme, tags, want string }{
		{"bilou", "B-PER I-PER L-PER O U-PER O U-LOC B-LOC L-LOC", bioes},
		{"auto", "B-PER I-PER L-PER O U-PER O U-LOC B-LOC L-LOC", bioes},
		{"bmes", "B-PER M-PER E-PER O S-PER O S-LOC B-LOC E-LOC", bioes},
		{"auto", "B-PER M-PER E-PER O S-PER O S-LOC B-LOC E-LOC", bioes},
		{"iob1", "I-PER I-PER I-PER O I-PER O I-LOC B-LOC I-LOC", bio},
		{"ioe1", "I-PER I-PER I-PER O I-PER O E-LOC I-LOC I-LOC", bio},
		{"ioe2", "I-PER I-PER E-PER O E-PER O E-LOC I-LOC E-LOC", bio},
	} {
		task := newNERWithScheme(t, test.scheme, "keep")
		r := corpus.Record{Fields: map[string]any{"words": "a b c d e f g h i", "tags": test.tags}}
		tasks.SurveyRecords(task, []corpus.Record{r})
		e, err := task.Example(r)
		if err != nil {
			t.Errorf("%s: %v", test.scheme, err)
			continue
		}
		if got := strings.Join(e.Targets[0].(*outputs.TagsTarget).Tags, " "); got != test.want {
			t.Errorf("%s: tags %s, want %s", test.scheme, got, test.want)
		}
		if warnings := tasks.DescriptionOf(task).Warnings(); len(warnings) > 0 {
			t.Errorf("%s: warnings %q", test.scheme, warnings)
		}
	}
}
