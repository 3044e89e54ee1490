package dataset

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/plugin"
)

// good is the data of two texts without a doubt.
const good = "so good,good\nso bad,bad\n"

// texts loads CSV files of texts and labels as train and dev of a task, and returns the sorted warnings about it.
func texts(t *testing.T, task, train, dev string) []string {
	t.Helper()
	data, err := load(t, fmt.Sprintf("  - {name: mood, %s, data: {train: a.csv, dev: b.csv}}\n", task),
		map[string]string{"a.csv": "text,label\n" + train, "b.csv": "text,label\n" + dev})
	if err != nil {
		t.Fatal(err)
	}
	var warnings []string
	for _, warning := range plugin.Lines(data.Warnings) {
		warnings = append(warnings, strings.TrimPrefix(warning, `warning: task "mood": `))
	}
	slices.Sort(warnings)
	return warnings
}

// doubtful is data that can be read, but is likely to be wrong, and its warnings.
// alike begins the warning of labels that look alike.
const alike = `head "mood": labels that differ only in white space, case, quotation marks, HTML entities, ` +
	"invisible characters or Unicode normalisation are different labels: "

var doubtful = map[string]struct {
	task, train, dev string
	want             []string
}{
	"nothing": {train: good + "so fair,none\n", dev: "very good,good\n"},
	"a number with a fraction of 0": {
		train: "a,0\nb,1\n", dev: "c,0.0\nd,1.5\n",
		want: []string{`dev has 2 labels that train does not have, which count as wrong: "0.0" 1 time, "1.5" 1 time; ` +
			`"0.0" is "0" in train: a column with an empty cell, as pandas writes it, has 0.0 for 0; write "0" here ` +
			`too, or train with label_maps: {mood: {0: NAME, …}} beside type, which reads both`},
	},
	"missing values": {
		train: good + "so fair,NaN\nso so,NaN\nso what,n/a\nand,None\n",
		dev:   "very good,null\n",
		want: []string{
			`dev has 1 label that train does not have, which counts as wrong: "null" 1 time`,
			`head "mood": labels that may stand for a missing value are learned as labels: "NaN" 2 times, ` +
				`"None" 1 time, "n/a" 1 time, "null" 1 time; an empty field or null leaves an example ` +
				`unlabelled, ` +
				`as data: {missing: [NaN, None, "n/a", "null"]} does`,
		},
	},
	"white space and case": {
		train: good + "so fair,Good\nso so, good\n",
		dev:   "very bad,BAD\n",
		want: []string{
			`dev has 1 label that train does not have, which counts as wrong: "BAD" 1 time`,
			alike + `"BAD" 1 time, "bad" 1 time, ` +
				`" good" 1 time, "Good" 1 time, "good" 1 time; data: {clean: {trim: true, lower: true}} reads ` +
				`them as one`,
		},
	},
	"forms of accents, and characters without width": {
		train: "so good,Grün\nso bad,Gru\u0308n\nso so,Grün\u200b\nso fair,rot\n", dev: "very good,Grün\u200b\n",
		want: []string{alike + `"Gru\u0308n" 1 time, "Grün" 1 time, "Grün\u200b" 2 times; ` +
			`data: {clean: {map: {"Gru\u0308n": "Grün", "Grün\u200b": "Grün"}}} reads them as one`},
	},
	"quotation marks and entities of HTML": {
		train: "so good,'good'\nso bad,bad\nso fair,good\nso so,&nbsp;good\n", dev: "very good,good\n",
		want: []string{alike + `"&nbsp;good" 1 time, "'good'" 1 time, "good" 2 times; data: {clean: {map: ` +
			`{"&nbsp;good": good, "'good'": good}}} reads them as one`},
	},
	"white space at the ends alone": {
		train: good + "so fair,good \n", dev: "very good,good\n",
		want: []string{alike + `"good" 2 times, "good " 1 time; data: {clean: {trim: true}} reads ` +
			`them as one`},
	},
	"white space between words": {
		train: "so good,very good\nso bad,bad\nso fair,verygood\n", dev: "very good,very good\n",
		want: []string{alike + `"very good" 2 times, "verygood" 1 time; ` +
			`data: {clean: {map: {verygood: "very good"}}} reads them as one`},
	},
	"two labels": {
		train: good + "so good,bad\n so good ,bad\nso bad,bad\nso bad,\n",
		dev:   "very good,good\nvery good,bad\n",
		want: []string{
			`head "mood": different labels for the same text: 2 texts, as that of a.csv:2 and a.csv:4`,
			"1 of 6 training examples have no label and are not used for training",
		},
	},
	"no contradiction of numbers": {
		task:  "type: regression",
		train: "so good,1\nso bad,2\nso bad,1\n", dev: "very good,1\n",
	},
	"labels that another mark than the separator joins": {
		task: "type: multi_label", train: good + "so fair,good|bad\nso so,bad|fair\n",
		dev: "very good,fair|good\n",
		want: []string{`dev has 1 label that train does not have, which counts as wrong: "fair|good" 1 time`,
			`exp.yaml:5:5: warning: head "mood": 3 targets have "|" between names of labels, as "bad|fair", and are ` +
				`learned as one label; separator: "|" beside type divides the labels of a text`},
	},
	"names in lists, which no separator divides": {
		task: "type: multi_label", train: good + `so fair,"[""good|bad""]"` + "\n" + `so so,"[""good|bad""]"` + "\n",
		dev: `very good,"[""good|bad"", ""good""]"` + "\n",
	},
	"commas in names that the separator divides": {
		task:  `type: multi_label, separator: "|"`,
		train: "so good,good\nso bad,bad\n" + strings.Repeat(`so fair,"good, bad|fair"`+"\n", 3),
		dev:   "very good,good\n",
	},
	"labels that the separator divides": {
		task: `type: multi_label, separator: "|"`, train: good + "so fair,good|bad\nso so,bad|fair\n",
		dev: "very good,fair|good\n",
	},
	"labels with a mark": {
		task: "type: multi_label", train: good + "so fair,good;x\nso so,bad;y\nso,bad;y\n",
		dev: "very good,good;x\n",
	},
	"train and dev alike": {
		train: good, dev: "so good,good\nvery good,good\n",
		want: []string{"1 of 2 texts of dev is in train too: metrics on it say nothing about new texts"},
	},
}

func TestDoubtfulDataGivesAWarningOfEachKind(t *testing.T) {
	for name, test := range doubtful {
		t.Run(name, func(t *testing.T) {
			got := texts(t, cmp.Or(test.task, "type: classification"), test.train, test.dev)
			if slices.Sort(test.want); !slices.Equal(got, test.want) {
				t.Errorf("warnings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

func TestLabelsThatTrainLacksAreOneWarning(t *testing.T) {
	dev := "a,x0\nb,x1\nc,x2\nd,x3\ne,x4\nf,x5\ng,x6\nh,x7\ni,x8\nj,x9\nk,y0\nl,y1\nm,y2\nn,y2\n"
	const want = `dev has 13 labels that train does not have, which count as wrong: "x0" 1 time, "x1" 1 time, ` +
		`"x2" 1 time, "x3" 1 time, "x4" 1 time, "x5" 1 time, "x6" 1 time, "x7" 1 time, "x8" 1 time, "x9" 1 time, ` +
		`"y0" 1 time, "y1" 1 time, … 1 more`
	if got := texts(t, "type: classification", good, dev); !slices.Equal(got, []string{want}) {
		t.Errorf("warnings %q, want %q", got, want)
	}
}

// Tags are compared in their order: those of "a b" differ, those of "c d" do not.
func TestTagsOfTheSameWordsMayContradict(t *testing.T) {
	lines := []string{
		`{"words": ["a", "b"], "tags": ["X", "O"]}`, `{"words": ["a", "b"], "tags": ["O", "X"]}`,
		`{"words": ["c", "d"], "tags": ["X", "O"]}`, `{"words": ["c", "d"], "tags": ["X", "O"]}`,
	}
	data, err := load(t, "  - {name: things, type: tagging, data: {train: a.jsonl, split: {dev: 0}}}\n",
		map[string]string{"a.jsonl": strings.Join(lines, "\n") + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	const want = `warning: task "things": head "things": different labels for the same text: 1 text, as that of ` +
		"a.jsonl:1 and a.jsonl:2"
	if !slices.Contains(plugin.Lines(data.Warnings), want) {
		t.Errorf("warnings %q, want %q", data.Warnings, want)
	}
}

// The remedy that the warning names works.
func TestTextsInTwoSplitsAreKeptTogetherBySplitBy(t *testing.T) {
	text := "body,label,customer\n"
	for i := range 40 {
		text += fmt.Sprintf("it is %d,%s,\n", i/2, []string{"good", "bad"}[i/2%2])
	}
	load := func(split string) []string {
		data, err := load(t, "  - {name: mood, type: classification, data: {path: a.csv, text: body, split: "+
			"{"+split+"}}}\n",
			map[string]string{"a.csv": text})
		if err != nil {
			t.Fatal(err)
		}
		return plugin.Lines(data.Warnings)
	}
	const remedy = "nothing about new texts; data: {split: {by: body}} keeps the same texts in one split"
	if got := load("dev: 0.5"); !strings.Contains(strings.Join(got, "\n"), remedy) {
		t.Errorf("warnings %q, want %s", got, remedy)
	}
	if got := load("dev: 0.5, by: body"); strings.Contains(strings.Join(got, "\n"), "in train too") {
		t.Errorf("with the remedy: %q", got)
	}
}
