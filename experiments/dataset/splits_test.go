package dataset

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// sorted returns a CSV of texts sorted by label: counts[label] of each.
func sorted(labels []string, counts ...int) string {
	var text strings.Builder
	text.WriteString("text,label\n")
	for l, label := range labels {
		for i := range counts[l] {
			fmt.Fprintf(&text, "text %s %d,%s\n", label, i, label)
		}
	}
	return text.String()
}

// countLabels counts the labels of a task's only head.
func countLabels(examples []*corpus.Example) map[string]int {
	counts := map[string]int{}
	for _, e := range examples {
		counts[outputs.As[outputs.LabelTarget](e.Targets[0]).Label]++
	}
	return counts
}

// The first 20 lines of the file have one label alone.
func TestALimitTakesASampleOfEachLabel(t *testing.T) {
	const tasks = "  - {name: mood, type: classification, data: {train: a.csv, split: {dev: 0}, limit: 20}}\n"
	data, err := load(t, tasks,
		map[string]string{"a.csv": sorted([]string{"bad", "fair", "good"}, 60, 37, 3)})
	if err != nil {
		t.Fatal(err)
	}
	group := data.Groups[0]
	train := group.Examples[config.Train]
	if got := countLabels(train); fmt.Sprint(got) != "map[bad:12 fair:7 good:1]" {
		t.Errorf("labels %v, want those of the file in their shares", got)
	}
	if !slices.IsSortedFunc(train, func(a, b *corpus.Example) int { return a.Place.Line - b.Place.Line }) {
		t.Error("the examples are not in the order of the file")
	}
	const want = `warning: task "mood": limit: 20 of the 100 training examples of a.csv are used ` +
		"(seed 42, stratified by label)"
	if !slices.Contains(plugin.Lines(data.Warnings), want) {
		t.Errorf("warnings %q, want %q", data.Warnings, want)
	}
	used, unused := slices.Collect(group.Divided[config.Train]), slices.Collect(group.Divided[Unused])
	if len(used) != 20 || len(unused) != 80 {
		t.Errorf("%d places of train and %d unused, want 20 and 80", len(used), len(unused))
	}
}

func TestALimitIsASampleBySeed(t *testing.T) {
	lines := map[string][]int{}
	for _, seed := range []string{"1", "2"} {
		data, err := load(t, "  - {name: n, type: regression, data: {train: a.csv, split: {dev: 0}, limit: 20}}\n",
			map[string]string{"a.csv": sorted([]string{"1", "2"}, 50, 50)}, "seed="+seed)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range data.Groups[0].Examples[config.Train] {
			lines[seed] = append(lines[seed], e.Place.Line)
		}
	}
	if len(lines["1"]) != 20 || lines["1"][19] < 50 || slices.Equal(lines["1"], lines["2"]) {
		t.Errorf("lines by seed %v, want 20 of all lines, others for another seed", lines)
	}
}

func TestASplitIsStratifiedByLabel(t *testing.T) {
	data, err := load(t, "  - {name: mood, type: classification, data: {path: a.csv, split: {dev: 20, test: 0.1}}}\n",
		map[string]string{"a.csv": sorted([]string{"bad", "fair", "good"}, 60, 38, 2)})
	if err != nil {
		t.Fatal(err)
	}
	for split, want := range map[string][3]int{
		config.Train: {42, 27, 1}, config.Dev: {12, 7, 1}, config.Test: {6, 4, 0},
	} {
		got := countLabels(data.Groups[0].Examples[split])
		for i, label := range []string{"bad", "fair", "good"} {
			if diff := got[label] - want[i]; diff < -1 || diff > 1 {
				t.Errorf("%s has labels %v, want about %v", split, got, want)
			}
		}
		if split == config.Train && got["good"] == 0 {
			t.Errorf("train has labels %v, want each", got)
		}
	}
}

func TestDataThatIsNotDividedHasNoPlaces(t *testing.T) {
	data, err := load(t, "  - {name: mood, type: classification, data: {train: a.csv, dev: a.csv, limit: 100}}\n",
		map[string]string{"a.csv": sorted([]string{"bad", "good"}, 2, 2)})
	if err != nil {
		t.Fatal(err)
	}
	if data.Groups[0].Divided != nil {
		t.Errorf("places %v, want none", data.Groups[0].Divided)
	}
}

// The field that split: by names may be a path into a record, as that of a text.
func TestASplitByAPath(t *testing.T) {
	const tasks = "  - {name: mood, type: classification, data: {path: a.jsonl, text: body.text, label: body.label, " +
		"split: {dev: 0.2, by: from.user}}}\n"
	var lines strings.Builder
	for i := range 40 {
		fmt.Fprintf(&lines, `{"body": {"text": "text %d", "label": "%s"}, "from": {"user": %d}}`+"\n", i,
			[]string{"bad", "good"}[i%2], i/4)
	}
	data, err := load(t, tasks, map[string]string{"a.jsonl": lines.String()})
	if err != nil {
		t.Fatal(err)
	}
	users := map[string]string{} // the split of each
	for split, examples := range data.Groups[0].Examples {
		for _, e := range examples {
			if other := users[e.Group]; other != "" && other != split {
				t.Errorf("user %s is in %s and in %s", e.Group, other, split)
			}
			users[e.Group] = split
		}
	}
	if len(users) != 10 || len(data.Groups[0].Examples[config.Dev]) != 8 {
		t.Errorf("%d users, want 10; %d examples of dev, want 8", len(users), len(data.Groups[0].Examples[config.Dev]))
	}
}

func TestTheLineOfASplitByGroupsHasTheirNumber(t *testing.T) {
	var lines strings.Builder
	lines.WriteString("text,label,price,patient\n")
	for i := range 60 {
		fmt.Fprintf(&lines, "text %d,%s,%d,p%d\n", i, []string{"bad", "good"}[i%2], i, i/6)
	}
	for task, want := range map[string]string{
		"type: classification, data: {path: a.csv, split: {dev: 0.2, by: patient}}": "12 of the 60 examples of " +
			"a.csv are taken, in 2 of its 10 groups by patient (seed 42, not stratified by label)",
		"type: classification, data: {path: a.csv, split: {dev: 16, by: patient}}": "18 of the 60 examples of " +
			"a.csv are taken, in 3 of its 10 groups by patient, where 16 examples were wanted (seed 42, not " +
			"stratified by label)",
		"type: classification, data: {path: a.csv, split: {dev: 1, test: 24, by: patient}}": "6 of the 60 examples " +
			"of a.csv are taken, in 1 of its 10 groups by patient, where 1 example was wanted (seed 42, not " +
			"stratified by label)",
		"type: regression, data: {path: a.csv, value: price, split: {dev: 12, seed: 3, by: patient}}": "12 of " +
			"the 60 examples of a.csv are taken, in 2 of its 10 groups by patient (seed 3)",
	} {
		data, err := load(t, "  - {name: mood, "+task+"}\n", map[string]string{"a.csv": lines.String()})
		if err != nil {
			t.Fatal(err)
		}
		want = `warning: task "mood" has no dev file: ` + want
		if !slices.Contains(plugin.Lines(data.Warnings), want) {
			t.Errorf("%s: warnings %q, want %q", task, data.Warnings, want)
		}
	}
}

// An empty field of split: by makes a record a group of its own.
func TestARecordWithoutAGroupIsAGroupOfItsOwn(t *testing.T) {
	const tasks = "  - {name: mood, type: classification, data: {train: a.jsonl, test: b.jsonl, split: {dev: 1, " +
		"by: from.user}}}\n"
	for line, want := range map[string]string{
		`{"text": "c", "label": "good"}`:                         "",
		`{"text": "c", "label": "good", "from": {"user": ""}}`:   "",
		`{"text": "c", "label": "good", "from": {"user": null}}`: "",
		`{"text": "c", "label": "good", "from": {"user": [1]}}`:  `field "from.user" is a list; it takes a text`,
		`{"text": "c", "label": "good", "from": {"user": 3}}`:    "",
	} {
		data, err := load(t, tasks, map[string]string{
			"a.jsonl": `{"text": "a", "label": "bad", "from": {"user": 1}}` + "\n" +
				`{"text": "b", "label": "good", "from": {"user": 2}}` + "\n" + line + "\n",
			"b.jsonl": `{"text": "d", "label": "bad"}` + "\n", // no group is needed where nothing is divided
		})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v, want %s", line, err, want)
		}
		if err == nil {
			if err := data.Read(t.Context(), config.Dev, "", map[string][]string{"mood": {"b.jsonl"}}); err != nil {
				t.Errorf("another file in place of dev: %v", err)
			}
		}
	}
}

// The words of a text are the same in training, where split_words is not known before the training file is read, and in
// the run, where it is.
func TestTextsOfDevAreSplitAsTheTrainingWords(t *testing.T) {
	const tasks = "  - {name: name, type: ner, data: {train: a.jsonl, dev: b.jsonl}}\n"
	data, err := load(t, tasks, map[string]string{
		"a.jsonl": strings.Repeat(`{"words": ["x-y", "don't", "U.S."], "tags": ["B-a", "O", "O"]}`+"\n", 20),
		"b.jsonl": `{"text": "we don't x-y", "entities": [{"start": 9, "end": 12, "label": "a"}]}` + "\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	if way := data.Experiment.Tasks[0].Data.SplitWords; way != corpus.SplitWhitespace {
		t.Fatalf("split_words: %q, want %q", way, corpus.SplitWhitespace)
	}
	want := []corpus.Span{{Start: 0, End: 2}, {Start: 3, End: 8}, {Start: 9, End: 12}}
	if got := data.Groups[0].Examples[config.Dev][0].Words; !slices.Equal(got, want) {
		t.Errorf("words of dev at %v, want %v", got, want)
	}
}

func TestSeveralFilesAreReadOneAfterTheOther(t *testing.T) {
	files := map[string]string{
		"part-2.csv": "text,label\nthird,bad\n", "part-1.csv": "text,label\nfirst,good\nsecond,bad\n",
		"more.jsonl": `{"text": "fourth", "label": "good"}` + "\n",
	}
	data, err := load(t, "  - {name: mood, type: classification, data: {train: [\"part-*.csv\", more.jsonl], "+
		"split: {dev: 0}}}\n",
		files)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range data.Groups[0].Examples[config.Train] {
		got = append(got, fmt.Sprintf("%s %s", e.Place, e.Text))
	}
	want := []string{"part-1.csv:2 first", "part-1.csv:3 second", "part-2.csv:2 third", "more.jsonl:1 fourth"}
	if !slices.Equal(got, want) {
		t.Errorf("examples %q, want %q", got, want)
	}

	files["part-1.csv"], files["part-2.csv"] = "text,label\n\"a,b\n", "text,label\na\n"
	_, err = load(t, "  - {name: mood, type: classification, data: {train: \"part-*.csv\"}}\n", files)
	for _, want := range []string{"part-1.csv:2: the row has a quote", "part-2.csv:2: the row ends before"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Where no record has the field of split: by, or it has one value alone, the mistake is at that key.
func TestAFieldOfSplitByThatNoRecordHasIsAMistakeOfTheKey(t *testing.T) {
	lines := strings.Repeat(`{"text": "a", "label": "bad", "user": 1}`+"\n", 6)
	for by, want := range map[string]string{
		"usr":  `task "mood": a.jsonl: no field "usr" for split: by; did you mean "user"? available: label, text, user`,
		"user": `task "mood": data: split: by: user leaves none of the 6 examples of a.jsonl for dev`,
	} {
		const task = "  - {name: mood, type: classification, data: {path: a.jsonl, split: {dev: 2, by: "
		_, err := load(t, task+by+"}}}\n", map[string]string{"a.jsonl": lines})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("by %s: %v, want %s", by, err, want)
			continue
		}
		place, _, _ := strings.Cut(err.Error(), ": ")
		if want := strconv.Itoa(len(task) + 1); !strings.HasSuffix(place, ":"+want) {
			t.Errorf("by %s: at %s, want column %s", by, place, want)
		}
	}
}

// A table whose header names the other columns has a header.
func TestAColumnOfSplitByThatATableLacksIsNoMissingHeader(t *testing.T) {
	const task = "  - {name: mood, type: classification, data: {path: a.csv, text: body, label: mood, " +
		"split: {dev: 2, by: person}}}\n"
	_, err := load(t, task, map[string]string{"a.csv": "body,mood\n" + strings.Repeat("a,bad\nb,good\n", 4)})
	if err == nil || !strings.HasSuffix(err.Error(), `no field "person" for split: by; available: body, mood`) {
		t.Errorf("%v", err)
	}
}
