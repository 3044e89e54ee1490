package dataset

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// load writes an experiment of the given tasks and data files, and loads its data in their folder.
func load(t *testing.T, tasks string, files map[string]string, sets ...string) (*Dataset, error) {
	t.Helper()
	sample.Tasks(t, tasks, files)
	e, err := config.Read(t.Context(), "exp.yaml", sets)
	if err != nil {
		t.Fatal(err)
	}
	return Load(t.Context(), e, Options{}, config.Train, config.Dev, config.Test)
}

func TestWarnings(t *testing.T) {
	const train = `{"text": "so good", "label": "good"}` + "\n" + `{"text": "so bad", "label": "bad"}` + "\n"
	data, err := load(t, "  - {name: mood, type: classification, data: {train: a.jsonl, dev: b.jsonl, split: {test: "+
		"1}}}\n",
		map[string]string{"a.jsonl": train + train, "b.jsonl": train + `{"text": "so fair", "label": "fair"}` + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	warnings := strings.Join(plugin.Lines(data.Warnings), "\n")
	for _, want := range []string{
		`task "mood" has no test file: 1 of the 4 examples of a.jsonl are taken (seed `,
		`task "mood": dev has 1 label that train does not have, which counts as wrong: "fair" 1 time`,
	} {
		if !strings.Contains(warnings, want) {
			t.Errorf("no warning %q:\n%s", want, warnings)
		}
	}
	if got, want := len(data.Groups[0].Examples[config.Dev]), 3; got != want {
		t.Errorf("%d dev examples, want %d", got, want)
	}
}

func TestTruncatedTargetsGiveAWarning(t *testing.T) {
	question := `{"question": "who", "context": "it was a very long day with rain and wind and sun and then Zoe", ` +
		`"answers": ["Zoe"]}` + "\n"
	for long, want := range map[string]bool{"truncate": true, "windows": false} {
		data, err := load(t, "  - {name: who, type: question_answering, long: "+long+", data: {train: a.jsonl}}\n",
			map[string]string{"a.jsonl": strings.Repeat(question, 3)}, "tokenizer.max_length=16")
		if err != nil {
			t.Fatal(err)
		}
		const warning = `warning: task "who": 3 targets of train are not within 16 tokens of their text, and are ` +
			`learned as no answer: a larger max_length, or long: windows, avoids it`
		if got := slices.Contains(plugin.Lines(data.Warnings), warning); got != want {
			t.Errorf("long: %s: warnings %q, want this one: %v", long, data.Warnings, want)
		}
	}
}

func TestTruncatedExamplesAreCounted(t *testing.T) {
	text := func(words int) string { return `{"text": "` + strings.Repeat("a ", words) + `", "label": "x"}` + "\n" }
	data := text(10) + text(3) + text(6) + `{"text": "b", "label": "y"}` + "\n" // 12, 5, 8 and 3 tokens
	for long, want := range map[string]bool{"truncate": true, "windows": false} {
		data, err := load(t, "  - {name: mood, type: classification, long: "+long+", data: {train: a.jsonl}}\n",
			map[string]string{"a.jsonl": data}, "tokenizer.max_length=8")
		if err != nil {
			t.Fatal(err)
		}
		const warning = `warning: task "mood": 1 of 4 texts of train has more than 8 tokens and is truncated: a ` +
			`larger tokenizer.max_length, or long: windows, avoids it`
		if got := slices.Contains(plugin.Lines(data.Warnings), warning); got != want {
			t.Errorf("long: %s: warnings %q, want this one: %v", long, data.Warnings, want)
		}
	}
}

func TestPairsWithAnEmptySecondTextGiveAWarning(t *testing.T) {
	const same = "  - {name: same, type: classification, data: {train: a.csv, dev: a.csv}}\n"
	data, err := load(t, same, map[string]string{
		"a.csv": "text,pair,label\na one,b one,x\na two,,y\n,,x\na three,b three,y\na four, ,x\n"})
	if err != nil {
		t.Fatal(err)
	}
	got := plugin.Lines(data.Warnings)
	for _, want := range []string{`warning: task "same": 2 of 5 pairs of train have an empty second text; first: ` +
		"a.csv:3", `warning: task "same": 1 of 5 texts of train is empty`} {
		if !slices.Contains(got, want) {
			t.Errorf("warnings %q, want %q", got, want)
		}
	}
}

func TestFewTextsWithoutASecondOneGiveAWarning(t *testing.T) {
	for singles, want := range map[int]bool{0: false, 2: true, 20: false, 40: false} { // many are meant to be single
		var lines strings.Builder
		for n := range 40 {
			pair := fmt.Sprintf(`"b %d"`, n)
			if n >= 3 && n < 3+singles || singles == 40 {
				pair = "null"
			}
			fmt.Fprintf(&lines, "{\"text\": \"a %d\", \"pair\": %s, \"label\": \"%d\"}\n", n, pair, n%2)
		}
		data, err := load(t, "  - {name: same, type: classification, data: {train: a.jsonl, dev: a.jsonl}}\n",
			map[string]string{"a.jsonl": lines.String()})
		if err != nil {
			t.Fatal(err)
		}
		const warning = `warning: task "same": 2 of 40 examples of train have no second text, unlike the others, and ` +
			`are each read as a single text; first: a.jsonl:4`
		if got := slices.Contains(plugin.Lines(data.Warnings), warning); got != want {
			t.Errorf("%d single texts: warnings %q, want one: %v", singles, data.Warnings, want)
		}
	}
}

func TestGarbledTextsGiveAWarning(t *testing.T) {
	const mood = "  - {name: mood, type: classification, data: {train: a.csv, dev: b.csv}}\n"
	data, err := load(t, mood, map[string]string{
		"a.csv": "text,label\nso good,x\nle cafÃ© est bon,y\nit was très bon,x\nitâ€™s late,y\n",
		"b.csv": "text,label\nle café,x\nso bad,y\n"})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, line := range plugin.Lines(data.Warnings) {
		if strings.Contains(line, "cp1252") {
			got = append(got, line)
		}
	}
	want := []string{`warning: task "mood": 2 of 4 texts of train are UTF-8 that a program has read as cp1252, ` +
		"such as cafÃ© for café; convert the file from its source; first: a.csv:3"}
	if !slices.Equal(got, want) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

func TestTextsOfAnotherScriptGiveAWarning(t *testing.T) {
	const mood = "  - {name: mood, type: classification, data: {train: a.csv%s}}\n"
	for _, test := range []struct{ keys, text, remedy string }{
		{"", "text,label\nso good,x\nÏðèâåò ìèð,y\nïîêà âñåì,x\nso bad,y\n", "convert the file from its source"},
		{", encoding: cp1252", "text,label\nso good,x\n\xcf\xf0\xe8\xe2\xe5\xf2 \xec\xe8\xf0,y\n" +
			"\xef\xee\xea\xe0 \xe2\xf1\xe5\xec,x\nso bad,y\n", "encoding: NAME reads it, as cp1251, cp1253 or koi8-r"},
	} {
		data, err := load(t, fmt.Sprintf(mood, test.keys), map[string]string{"a.csv": test.text})
		if err != nil {
			t.Fatal(err)
		}
		want := `warning: task "mood": 2 of 4 texts of train are of another script and read as cp1252, such as ` +
			"Ïðèâåò for Привет; " + test.remedy + "; first: a.csv:3"
		if got := plugin.Lines(data.Warnings); !slices.Contains(got, want) {
			t.Errorf("warnings %q, want %q", got, want)
		}
	}
}

// Masks and a few texts of another kind are no sign that a file was read in another encoding.
func TestFewTextsOfAccentsGiveNoWarning(t *testing.T) {
	text := "text,label\n电话138××××××××,x\n×××××××,y\nÖÖÖÖÖÖÖ!,x\n\"ÄÖÜäöüß\",y\nÏðèâåò ìèð,x\n" +
		strings.Repeat("so good,x\nso bad,y\n", 40)
	data, err := load(t, "  - {name: mood, type: classification, data: {train: a.csv}}\n",
		map[string]string{"a.csv": text})
	if err != nil {
		t.Fatal(err)
	}
	if got := plugin.Lines(data.Warnings); strings.Contains(strings.Join(got, "\n"), "another script") {
		t.Errorf("warnings %q, want none of another script", got)
	}
}

// A file in UTF-8 that the experiment reads in another encoding is right: the key is to be another.
func TestAFileInUTF8ThatIsReadAsCP1252GivesAWarning(t *testing.T) {
	data, err := load(t, "  - {name: mood, type: classification, data: {train: a.csv, dev: {path: b.csv, encoding: "+
		"windows-1252}}}\n", map[string]string{"a.csv": "text,label\nle café,x\nso bad,y\n",
		"b.csv": "text,label\nle café est bon,x\nso bad,y\n"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `warning: task "mood": 1 of 2 texts of dev is UTF-8 that is read as windows-1252, such as cafÃ© ` +
		"for café; data: {encoding: utf-8} reads the file as it is; first: b.csv:2"
	if lines := plugin.Lines(data.Warnings); !slices.Contains(lines, want) {
		t.Errorf("warnings %q, want %q", lines, want)
	}
}

func TestQuestionsWithoutAnswersGiveAWarning(t *testing.T) {
	for cell, want := range map[string]bool{"": true, "[]": false} {
		data, err := load(t, "  - {name: who, type: question_answering, data: {train: a.csv}, heads: [{name: who, "+
			"no_answer: true}]}\n",
			map[string]string{"a.csv": "question,context,answers\nwho,so good,good\nwho,so bad," + cell + "\n"})
		if err != nil {
			t.Fatal(err)
		}
		const warning = `warning: task "who": 1 of 2 training questions have no answers and are not used for ` +
			`training; write an empty list, [], for a context without an answer`
		if got := slices.Contains(plugin.Lines(data.Warnings), warning); got != want {
			t.Errorf("answers %q: warnings %q, want %q: %v", cell, data.Warnings, warning, want)
		}
	}
}

func TestExamplesThatTeachNothingGiveAWarning(t *testing.T) {
	const both = "  - {name: mood, type: classification, data: {train: a.csv, dev: a.csv}}\n" +
		"  - {name: tone, type: classification, data: {same_as: mood, label: tone}}\n"
	one, _, _ := strings.Cut(both, "\n")
	const data = "text,label,tone\nso good,good,calm\nso bad,bad,\nso so,,calm\nso fair,,\n ,good,calm\n"
	for tasks, want := range map[string][]string{
		one + "\n": {
			`warning: task "mood": 2 of 5 training examples have no label and are not used for training`,
			`warning: task "mood": 1 of 5 texts of dev is empty`,
			`warning: task "mood": 1 of 5 texts of train is empty`,
			`warning: task "mood": 4 of 5 texts of dev are in train too: metrics on them say nothing about new texts`,
		},
		both: { // the third text has a label for one of the tasks
			`warning: task "mood": 1 of 5 training examples have no label and are not used for training`,
			`warning: task "mood": 1 of 5 texts of dev is empty`,
			`warning: task "mood": 1 of 5 texts of train is empty`,
			`warning: task "mood": 4 of 5 texts of dev are in train too: metrics on them say nothing about new texts`,
		},
	} {
		data, err := load(t, tasks, map[string]string{"a.csv": data})
		if err != nil {
			t.Fatal(err)
		}
		got := slices.Sorted(slices.Values(plugin.Lines(data.Warnings)))
		if slices.Sort(want); !slices.Equal(got, want) {
			t.Errorf("%s\nwarnings %q\nwant %q", tasks, got, want)
		}
	}
}

func TestAFractionThatIsLessThanAnExampleGivesAWarning(t *testing.T) {
	data, err := load(t, "  - {name: mood, type: classification, data: {path: a.csv, split: {dev: 0.1}}}\n",
		map[string]string{"a.csv": "text,label\nso good,good\nso bad,bad\n"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `exp.yaml:5:73: warning: task "mood": data: split: dev has no examples: 0.1 of the 2 examples of ` +
		"a.csv rounds to 0"
	if !slices.Equal(plugin.Lines(data.Warnings), []string{want}) {
		t.Errorf("warnings %q, want %q", data.Warnings, want)
	}
}

// A task that does not say which of two texts it reads may read the wrong one.
func TestTwoTextsOfARecordAreNoSilentChoice(t *testing.T) {
	const (
		labels  = "type: classification, data: {train: a.jsonl, dev: a.jsonl"
		answers = "type: question_answering, data: {train: a.jsonl, dev: a.jsonl"
		record  = `"question": "what is two?", "context": "two is two", "label": "x", "answers": ["two"]}` + "\n"
		other   = `{"text": "what is one?", "pair": "one and two", ` + record
	)
	for _, test := range []struct{ name, task, data, want string }{
		{"question", labels, `{"text": "a", ` + record + `{` + record, `exp.yaml:5:51: warning: task "t": 1 record ` +
			`of ` +
			`a.jsonl has fields "text" and "question", of which "text" is read; first: a.jsonl:1; name the one to ` +
			`read, data: {text: text} or {question: question}`},
		{"words", labels, `{"words": ["a"], ` + record, `fields "words" and "question", of which "words" is read`},
		{"pair", labels, `{"pair": "a", ` + record, `fields "pair" and "context", of which "pair" is read`},
		{"text is named", labels + ", text: text", other, ""},
		{"question is named", labels + ", question: question, context: context", other, ""},
		{"neither is there", labels, `{"text": "a", "context": "b", "label": "x"}` + "\n", ""},
		{"answers", answers, other, `exp.yaml:5:55: task "t": 1 record of a.jsonl has fields "text" and "question"`},
		{"answers of a named question", answers + ", question: question, context: context", other, ""},
	} {
		text := ""
		data, err := load(t, "  - {name: t, "+test.task+"}}\n", map[string]string{"a.jsonl": test.data})
		if data != nil {
			text = strings.Join(plugin.Lines(data.Warnings), "\n")
		}
		if err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, test.want) || strings.Contains(text, "name the one") != (test.want != "") ||
			(err != nil) != (test.task == answers) {
			t.Errorf("%s: %s, want %q", test.name, text, test.want)
		}
	}
}

func TestAGroupReadsTheSameTexts(t *testing.T) {
	_, err := load(t, "  - {name: a, type: classification, data: {train: a.jsonl, dev: a.jsonl, text: body}}\n"+
		"  - {name: b, type: classification, data: {same_as: a, question: q}}\n",
		map[string]string{"a.jsonl": `{"body": "so good", "q": "what?", "label": "x"}` + "\n"})
	if want := `a.jsonl:1: task "b": its texts differ from those of task "a", which same_as names`; err == nil ||
		!strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
}

func TestErrorOfAMissingFieldListsTheExistingOnes(t *testing.T) {
	_, err := load(t, "  - {name: mood, type: classification, data: {train: a.csv}}\n",
		map[string]string{"a.csv": "text, label\nso good,good\n"})
	if want := `task "mood": head "mood" has no label in its training data, a.csv: data: {label: FIELD} names the ` +
		`field that holds it; available: " label", text`; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error %v, want %s", err, want)
	}
}

func TestLabelMapsNumberTheLabels(t *testing.T) {
	for _, test := range []struct {
		name, maps string
		want       []string
	}{
		{"all of the data", "{mood: {0: so-so, 1: good, 2: bad}}, heads: [{num_labels: 3}]",
			[]string{"so-so", "good", "bad"}},
		{"one label is not in the data", "{mood: {0: so-so, 1: good, 2: bad, 3: awful}}, heads: [{num_labels: 4}]",
			[]string{"so-so", "good", "bad", "awful"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			data, err := load(t, "  - {name: mood, type: classification, data: {train: a.jsonl}, label_maps: "+
				test.maps+"}\n",
				map[string]string{"a.jsonl": `{"text": "a", "label": 0}` + "\n" + `{"text": "b", "label": 1}` + "\n" +
					`{"text": "c", "label": "2"}` + "\n"})
			if err != nil {
				t.Fatal(err)
			}
			if got := data.Labels[multitask.HeadName{Task: "mood", Head: "mood"}].Names(); !slices.Equal(got,
				test.want) {
				t.Errorf("labels are %q, want %q", got, test.want)
			}
		})
	}
}

func TestErrorsOfLabelsAndVocabularyHaveTheirPlace(t *testing.T) {
	for _, test := range []struct{ task, data, want string }{
		{"labels: [bad, good], ", `{"text": "so good", "label": 1}` + "\n" + `{"text": "so bad", "label": 0}` + "\n",
			`unexpected label "0" in the training data; labels has bad, good; if the data has their numbers, want ` +
				`label_maps: {mood: {0: bad, …}} instead`},
		{"", `{"text": " ", "label": "a"}` + "\n" + `{"text": "", "label": "b"}` + "\n",
			"tokenizer: training on the texts of a.jsonl: no words to train a vocabulary on"},
	} {
		_, err := load(t, "  - {name: mood, type: classification, "+test.task+"data: {train: a.jsonl}}\n",
			map[string]string{"a.jsonl": test.data})
		if err == nil || !strings.HasPrefix(err.Error(), "exp.yaml:") || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Load = %v, want %s", err, test.want)
		}
	}
}

// Files of a task may be written in different ways, as published ones often are.
func TestAFileHasOptionsOfItsOwn(t *testing.T) {
	data, err := load(t, `
  - name: mood
    type: classification
    data:
      train: a.csv
      dev: {path: b.txt, format: csv, header: false, columns: [kind, says], delimiter: ";", encoding: cp1252}
      test: {path: c.tsv, columns: [kind, says]}
      label: kind
      text: says
  - {name: side, type: classification, data: {same_as: mood, label: kind}}
`[1:], map[string]string{"a.csv": "kind,says\ngood,so good\nbad,so bad\n", "b.txt": "good;caf\xe9\n",
		"c.tsv": "feeling\tsentence\nbad\tno\n"})
	if err != nil {
		t.Fatal(err)
	}
	for split, want := range map[string]string{config.Train: "so good", config.Dev: "café", config.Test: "no"} {
		examples := data.Groups[0].Examples[split]
		if len(examples) == 0 || examples[0].Text != want || len(examples[0].Targets) != 2 {
			t.Errorf("%s has %+v, want the text %s", split, examples, want)
		}
	}
}

// The first ones have another order as numbers than as strings; "0x1p0", "Inf" and "nan" are numbers only for strconv.
func TestLabelsAreSortedByValueThenByName(t *testing.T) {
	want := []string{"-1", "0x1p0", "1", "9", "10", "1a", "Inf", "nan"}
	for range 50 {
		counts := map[string]int{}
		for _, i := range rand.Perm(len(want)) {
			counts[want[i]]++
		}
		if got := slices.SortedFunc(maps.Keys(counts), compareLabels); !slices.Equal(got, want) {
			t.Fatalf("labels in the order %q, want %q", got, want)
		}
	}
}
