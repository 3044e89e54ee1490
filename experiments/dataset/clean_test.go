package dataset

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// rows formats lines for numbers from 0 to n-1.
func rows(n int, format string) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, format+"\n", i)
	}
	return text.String()
}

// sharedCase returns a file of the shared cases.
func sharedCase(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(shared.Dir(t), "cases", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// targetsOf returns the targets of the first head of all training examples, "" for none.
func targetsOf(t *testing.T, data *Dataset) (all []string) {
	t.Helper()
	group := &data.Groups[0]
	kind := data.kinds(group)[0]
	err := data.each(group, config.Train, "targets of %s", func(e *corpus.Example) error {
		var names []string
		kind.Names(e.Targets[0], func(name *string) { names = append(names, *name) })
		switch target := e.Targets[0].(type) {
		case nil:
		case *outputs.NumberTarget:
			names = []string{fmt.Sprint(target.Value)}
		case *outputs.AnomalyTarget:
			names = []string{fmt.Sprint(target.Anomalous)}
		case *outputs.TagsTarget:
			names = target.Tags
		}
		all = append(all, strings.Join(names, "+"))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// inMemoryAndStreamed calls test with a task's data section in memory and, where its file can be, streamed.
func inMemoryAndStreamed(t *testing.T, file string, test func(t *testing.T, keys string)) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Run("memory", func(t *testing.T) { test(t, "split: {dev: 0}") })
	if !strings.HasSuffix(file, ".json") {
		t.Run("streamed", func(t *testing.T) { test(t, "split: {dev: 0}, stream: true") })
		t.Run("streamed again, by the index", func(t *testing.T) { test(t, "split: {dev: 0}, stream: true") })
	}
}

func TestMissingLeavesExamplesUnlabelled(t *testing.T) {
	for name, test := range map[string]struct {
		task, keys, file, text string
		want                   string
	}{
		"a label of a table": {"classification", `missing: [-1, "-"]`, "a.csv",
			"text,label\na,x\nb,-\nc,-1\nd,y\ne,-1.0\n", "x,,,y,"},
		"numbers of JSON": {"classification", "missing: [-1]", "a.jsonl",
			`{"text": "a", "label": 0}` + "\n" + `{"text": "b", "label": -1}` + "\n" + `{"text": "c", "label": 1}` +
				"\n",
			"0,,1"},
		"an array of JSON": {"classification", "missing: ['?']", "a.json",
			`[{"text": "?", "label": "x"}, {"text": "b", "label": "?"}, {"text": "c", "label": "y"}]`, "x,,y"},
		"one column, another name": {"regression", "value: price, missing: {price: [n/a, '>48']}", "a.csv",
			"text,price\na,1\nn/a,n/a\nc,>48\nd,2\n", "1,,,2"},
		"another column's": {"classification", "missing: {other: [x]}", "a.csv", "text,label,other\na,x,1\nb,y,x\n",
			"x,y"},
		"a nested field": {"classification", "label: meta.team, missing: [none]", "a.jsonl",
			`{"text": "a", "meta": {"team": "x"}}` + "\n" + `{"text": "b", "meta": {"team": "none"}}` + "\n" +
				`{"text": "b", "meta": {"team": "y"}}` + "\n", "x,,y"},
		"several labels": {"multi_label", "missing: ['-', '?']", "a.csv",
			"text,labels\na,\"x,y\"\nb,-\nc,[]\nd,\"y,?\"\ne,\"?,-\"\n", "x+y,,,y,"},
		"several labels in lists": {"multi_label", "missing: ['-']", "a.jsonl",
			`{"text": "a", "labels": ["x", "y"]}` + "\n" + `{"text": "b", "labels": ["-"]}` + "\n", "x+y,"},
		"marks among the labels of lists": {"multi_label", "missing: ['-', -1, n/a]", "a.jsonl",
			`{"text": "a", "labels": ["x", "-", "y"]}` + "\n" + `{"text": "b", "labels": ["-", -1]}` + "\n" +
				`{"text": "c", "labels": []}` + "\n" + `{"text": "d", "labels": ["n/a", "x"]}` + "\n", "x+y,,,x"},
		"null among the labels of lists": {"multi_label", "limit: 0", "a.jsonl",
			`{"text": "a", "labels": ["x", null]}` + "\n" + `{"text": "b", "labels": [null, null]}` + "\n" +
				`{"text": "c", "labels": ["y"]}` + "\n", "x,,y"},
		"marks in lists in cells": {"multi_label", "missing: ['-']", "a.csv",
			"text,labels\na,\"[\"\"x\"\", \"\"-\"\"]\"\nb,\"[\"\"-\"\"]\"\nc,\"y,-\"\n", "x,,y"},
		"marks among labels that are numbers": {"multi_label", "missing: [-1]", "a.json",
			`[{"text": "a", "labels": [3, -1]}, {"text": "b", "labels": [-1]}, {"text": "c", "labels": [7, 3]}]`,
			"3,,7+3"},
		"tags in a list": {"tagging", "missing: [-100]", "a.jsonl",
			`{"words": ["a", "b"], "tags": ["X", -100]}` + "\n" + `{"words": ["c"], "tags": ["-100"]}` + "\n", "X+,"},
		"tags of spans between blanks": {"ner", "missing: ['-']", "a.csv",
			"words,tags\na b c,O - B-X\n- b,- -\n", "O++B-X,+"},
		"tags of conll": {"tagging", "missing: ['?']", "a.conll", "a X\n? ?\n\nb Y\n", "X+,Y"},
		"an anomaly":    {"anomaly", "missing: ['?']", "a.csv", "text,label\na,normal\nb,?\nc,bad\n", "false,,true"},
	} {
		t.Run(name, func(t *testing.T) {
			inMemoryAndStreamed(t, test.file, func(t *testing.T, keys string) {
				data, err := load(t, fmt.Sprintf("  - {name: a, type: %s, data: {path: %s, %s, %s}}\n", test.task,
					test.file, test.keys, keys), map[string]string{test.file: test.text})
				if err != nil {
					t.Fatal(err)
				}
				defer data.Close()
				if got := strings.Join(targetsOf(t, data), ","); got != test.want {
					t.Errorf("targets %q, want %q", got, test.want)
				}
			})
		})
	}
}

func TestAListOfOneLabelIsTheLabel(t *testing.T) {
	for name, test := range map[string]struct{ task, keys, file, text, want, message string }{
		"doccano": {"classification", "limit: 0", "a.jsonl", `{"text": "a", "label": ["x"]}` + "\n" +
			`{"text": "b", "label": []}` + "\n" + `{"text": "c", "label": ["y"]}` + "\n", "x,,y", ""},
		"Prodigy": {"sentiment", "label: accept, where: {answer: accept}", "a.jsonl",
			`{"text": "a", "accept": ["x"], "answer": "accept"}` + "\n" +
				`{"text": "b", "accept": ["y", "x"], "answer": "reject"}` + "\n" +
				`{"text": "c", "accept": ["y"], "answer": "accept"}` + "\n", "x,y", ""},
		"numbers, null and a mark": {"classification", "missing: ['?']", "a.json", `[{"text": "a", "label": [2]}, ` +
			`{"text": "b", "label": [null, 3]}, {"text": "c", "label": ["?"]}, {"text": "d", "label": [null]}]`,
			"2,3,,",
			""},
		"a single text among lists": {"classification", "clean: {lower: true}", "a.jsonl",
			`{"text": "a", "label": "X"}` + "\n" + `{"text": "b", "label": ["Y"]}` + "\n", "x,y", ""},
		"two labels": {"classification", "limit: 0", "a.jsonl", `{"text": "a", "label": ["x"]}` + "\n" +
			`{"text": "b", "label": ["y", "x"]}` + "\n", "",
			`a.jsonl:2: task "a": field "label" is a list of 2 labels; want one, or type: multi_label`},
		"two labels and the remedy": {"multi_label", "limit: 0", "a.jsonl", `{"text": "a", "label": ["x"]}` + "\n" +
			`{"text": "b", "label": ["y", "x"]}` + "\n", "x,y+x", ""},
		"lists in a list": {"classification", "limit: 0", "a.jsonl", `{"text": "a", "label": [["x"]]}` + "\n" +
			`{"text": "b", "label": "y"}` + "\n", "", `field "label" holds a list; it takes a list of texts`},
	} {
		t.Run(name, func(t *testing.T) {
			inMemoryAndStreamed(t, test.file, func(t *testing.T, keys string) {
				data, err := load(t, fmt.Sprintf("  - {name: a, type: %s, data: {path: %s, %s, %s}}\n", test.task,
					test.file, test.keys, keys), map[string]string{test.file: test.text})
				if test.message != "" {
					if err == nil || !strings.Contains(err.Error(), test.message) {
						t.Errorf("error %v, want %q", err, test.message)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				defer data.Close()
				if got := strings.Join(targetsOf(t, data), ","); got != test.want {
					t.Errorf("targets %q, want %q", got, test.want)
				}
			})
		})
	}
}

func TestWhereComparesTheElementsOfLists(t *testing.T) {
	const lists = `{"text": "a", "label": "1", "kinds": ["x", "y"]}` + "\n" +
		`{"text": "b", "label": "2", "kinds": []}` + "\n" + `{"text": "c", "label": "3", "kinds": "x"}` + "\n" +
		`{"text": "d", "label": "4", "kinds": ["z", 7, true]}` + "\n" + `{"text": "e", "label": "5"}` + "\n"
	const cells = "text,label,kinds\na,1,\"[\"\"x\"\", \"\"y\"\"]\"\n" +
		"b,2,[]\nc,3,x\nd,4,\"[\"\"z\"\", 7, true]\"\ne,5,\n"
	for _, test := range []struct{ keys, want string }{
		{"where: {kinds: x}", "1,3"},
		{"where: {kinds: [y, 7.0]}", "1,4"},
		{"where_not: {kinds: x}", "2,4,5"},
		{"where: {kinds: ''}", "2,5"},
		{"where: {kinds: [x, z]}, where_not: {kinds: [TRUE]}", "1,3"},
	} {
		for file, text := range map[string]string{"a.jsonl": lists, "a.csv": cells} {
			t.Run(file+" "+test.keys, func(t *testing.T) {
				inMemoryAndStreamed(t, file, func(t *testing.T, keys string) {
					data, err := load(t, fmt.Sprintf("  - {name: a, type: classification, data: {path: %s, %s, %s}}\n",
						file, test.keys, keys), map[string]string{file: text})
					if err != nil {
						t.Fatal(err)
					}
					defer data.Close()
					if got := strings.Join(targetsOf(t, data), ","); got != test.want {
						t.Errorf("targets %q, want %q; %v", got, test.want, data.Warnings)
					}
				})
			})
		}
	}
}

func TestAFileMayHaveMarksOfItsOwn(t *testing.T) {
	data, err := load(t, "  - {name: a, type: classification, data: {train: a.csv, missing: ['-'], "+
		"dev: {path: b.csv, missing: ['?']}}}\n",
		map[string]string{"a.csv": "text,label\na,x\nb,-\nc,?\n", "b.csv": "text,label\na,x\nb,?\n"})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(targetsOf(t, data), ","); got != "x,,?" {
		t.Errorf("targets of train %q, want x,,?", got)
	}
	if dev := data.Groups[0].Examples[config.Dev]; len(dev) != 2 || dev[0].Targets[0] == nil ||
		dev[1].Targets[0] != nil {
		t.Errorf("dev %+v, want a label and none", dev)
	}
}

func TestLabelsAreCleaned(t *testing.T) {
	const cleaned = "clean: {trim: true, lower: true, map: {HI: high, med: medium, junk: ''}}"
	for name, test := range map[string]struct{ task, file, text, want string }{
		"one label": {"classification", "a.csv", "text,label\na,HIGH\nb, high \nc,HI\nd,Low\ne,MED\nf,junk\n",
			"high,high,high,low,medium,"},
		"several labels": {"multi_label", "a.csv",
			"text,labels\na,\"HIGH,high\"\nb,\"Low,MED\"\nc,junk\nd,\"x,junk\"\n",
			"high,low+medium,,x"},
		"tags": {"tagging", "a.jsonl", `{"words": ["a", "b", "c"], "tags": ["NOUN", "MED", "junk"]}` + "\n",
			"noun+medium+"},
		"tags of spans": {"ner", "a.jsonl", `{"words": ["a", "b", "c"], "tags": ["B-PER", "O", "B-MED "]}` + "\n",
			"B-per+O+B-medium"},
		"entities": {"ner", "a.jsonl", `{"text": "a b", "entities": [{"start": 2, "end": 3, "label": "HI"}]}` + "\n",
			"O+B-high"},
		"an anomaly": {"anomaly", "a.csv", "text,label\na,Normal\nb,NORMAL\nc,Bad\n", "false,false,true"},
		"a number":   {"regression", "a.csv", "text,value\na,1\nb,2\nc,junk\n", "1,2,"},
	} {
		t.Run(name, func(t *testing.T) {
			inMemoryAndStreamed(t, test.file, func(t *testing.T, keys string) {
				data, err := load(t, fmt.Sprintf("  - {name: a, type: %s, data: {path: %s, %s, %s}}\n", test.task,
					test.file, cleaned, keys), map[string]string{test.file: test.text})
				if err != nil {
					t.Fatal(err)
				}
				defer data.Close()
				if got := strings.Join(targetsOf(t, data), ","); got != test.want {
					t.Errorf("targets %q, want %q", got, test.want)
				}
			})
		})
	}
}

func TestLabelMapsNameTagsBeforeTheyAreParsed(t *testing.T) {
	const maps = "label_maps: {a: {0: O, 1: B-PER, 2: I-PER, 3: B-ORG, 4: I-ORG, 5: B-LOC}}"
	files := map[string]string{
		"tags.csv":   "words,tags\nAda Byron lives,1 2 0\n",
		"tags.conll": "Ada 1\nByron 2\nlives 0\n",
		"case.jsonl": "",
	}
	files["case.jsonl"] = sharedCase(t, "ner-integers/ner.jsonl")
	for file, columns := range map[string]string{"tags.csv": "", "tags.conll": "",
		"case.jsonl": ", words: tokens, tags: ner_tags"} {
		t.Run(file, func(t *testing.T) {
			inMemoryAndStreamed(t, file, func(t *testing.T, keys string) {
				data, err := load(t, fmt.Sprintf("  - {name: a, type: ner, %s, data: {path: %s%s, %s}}\n", maps, file,
					columns, keys), files)
				if err != nil {
					t.Fatal(err)
				}
				defer data.Close()
				want := "B-PER+I-PER+O"
				if file == "case.jsonl" {
					want = "B-PER+I-PER+O+O+B-LOC"
				}
				if got := targetsOf(t, data)[0]; got != want {
					t.Errorf("tags %q, want %q", got, want)
				}
			})
		})
	}
}

func TestWarningsOfMissingValues(t *testing.T) {
	const labels = "may stand for a missing value are learned as"
	for name, test := range map[string]struct {
		task, train, dev string
		want             string // names of the warning, "" for none
	}{
		"-1 of SNLI": {"classification", "a,0\nb,1\nc,2\nd,-1\n", "e,0\n", `"-1" 1 time`},
		"-":          {"classification", "a,e\nb,n\nc,c\nd,-\n", "e,e\n", `"-" 1 time`},
		"? and n.a.": {"classification", "a,e\nb,?\nc,n.a.\nd,c\n", "e,e\n", `"?" 1 time, "n.a." 1 ` +
			`time`},
		"marks of databases and of JavaScript": {"classification", "a,e\nb,\\N\nc,(null)\nd,undefined\ne,nil\n",
			"e,e\n",
			`"(null)" 1 time, "\\N" 1 time, "nil" 1 time, "undefined" 1 time`},
		"errors of Excel": {"classification", "a,e\nb,#REF!\nc,#VALUE!\nd,#DIV/0!\n", "e,e\n",
			`"#DIV/0!" 1 time, "#REF!" 1 time, "#VALUE!" 1 time`},
		"words of annotators": {"classification", "a,e\nb,unlabeled\nc,not annotated\nd,TBD\n", "e,e\n",
			`"TBD" 1 time, "not annotated" 1 time, "unlabeled" 1 time`},
		"quotes around nothing": {"classification", "a,e\nb,''\nc,\"\"\"\"\"\"\n", "e,e\n", `"''" 1 time`},
		"quotes that are tags":  {"classification", "a,e\nb,''\nc,``\n", "e,e\n", ""},
		"words like such marks": {"classification", "a,none\nb,unknown\nc,NIL\nd,undefined behaviour\n", "e,none\n",
			""},
		"-100 beside names":          {"classification", "a,e\nb,-100\nc,c\n", "e,e\n", `"-100" 1 time`},
		"hidden labels of a split":   {"classification", "a,0\nb,1\n", "c,-1\nd,-1\n", `"-1" 2 times`},
		"a scale around 0":           {"classification", "a,-1\nb,0\nc,1\n", "e,0\n", ""},
		"a support vector machine's": {"classification", "a,-1\nb,1\nc,1\n", "e,1\n", ""},
		"plus and minus":             {"classification", "a,+\nb,-\nc,+\n", "e,+\n", ""},
		"labels of punctuation":      {"classification", "a,N\nb,.\nc,:\nd,-\n", "e,N\n", ""},
		"a scale with a mark":        {"classification", "a,-1\nb,0\nc,1\nd,-100\n", "e,0\n", `"-100" 1 time`},
		"a number":                   {"regression", "a,3\nb,-1\nc,5\nd,-1\ne,2.5\n", "f,1\n", "-1 2 times"},
		"numbers below 0":            {"regression", "a,3\nb,-1\nc,-2.5\nd,-1\n", "f,1\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			for _, line := range texts(t, "type: "+test.task, test.train, test.dev) {
				if strings.Contains(line, labels) {
					got += line
				}
			}
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("warning %q, want one of %q", got, test.want)
			}
			if test.want != "" && !strings.Contains(got, "data: {missing: [") {
				t.Errorf("warning %q does not name the key", got)
			}
		})
	}
}

func TestTheTagOfFullStopsIsNoMissingValue(t *testing.T) {
	data, err := load(t, "  - {name: pos, type: tagging, data: {train: a.conll, split: {dev: 0}}}\n",
		map[string]string{"a.conll": strings.Repeat("so N\n. .\n\n", 3) + "- -\n"})
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(plugin.Lines(data.Warnings), "\n")
	if !strings.Contains(got, `are learned as labels: "-" 1 time;`) {
		t.Errorf("warnings %q, want one of - alone", got)
	}
}

func TestAColumnOfNumbersWithAFewTextsIsOneError(t *testing.T) {
	text := "text,price\n" + rows(380, "a %d,1.5") + rows(10, "b %d,n/a") + rows(2, "c %d,>48")
	_, err := load(t, "  - {name: price, type: regression, data: {train: a.csv, value: price}}\n",
		map[string]string{"a.csv": text})
	const want = `a.csv:382: task "price": field "price" has 380 numbers, 12 others: n/a, >48; ` +
		`data: {missing: {price: ["n/a", ">48"]}} leaves their examples unlabelled`
	if err == nil || err.Error() != want {
		t.Errorf("error\n%v\nwant\n%s", err, want)
	}
}

func TestANumberThatLabelMapsLacksIsAnError(t *testing.T) {
	for name, test := range map[string]struct{ task, file, text, want string }{
		"a label": {"classification", "a.csv", "text,label\na,0\nb,1\nc,-1\n", "a.csv:4: task \"a\": label -1 has " +
			"no name"},
		"a tag": {"ner", "a.jsonl", `{"words": ["x"], "tags": [0]}` + "\n" + `{"words": ["y"], "tags": [7]}` + "\n",
			"a.jsonl:2: task \"a\": label 7 has no name"},
		"a fraction": {"classification", "a.csv", "text,label\na,0\nb,1.0\nc,1.5\n", "label 1.5 has no name"},
		"one of 0 and 1 in a list": {"multi_label", "a.jsonl", `{"text": "x", "labels": {"a": [1, 0, 1]}}` + "\n",
			"label 2 has no name"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := load(t, fmt.Sprintf("  - {name: a, type: %s, label_maps: {a: {0: O, 1: B-X}}, data: {train: "+
				"%s}}\n",
				test.task, test.file), map[string]string{test.file: test.text})
			if err == nil || !strings.Contains(err.Error(), test.want) ||
				!strings.Contains(err.Error(), "label_maps: {a: …}, which has 0, 1") {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// The case missing-marks of the shared folder.
func TestSNLIWithoutGoldLabels(t *testing.T) {
	files := map[string]string{}
	for _, file := range []string{"snli.jsonl", "snlidash.jsonl"} {
		files[file] = sharedCase(t, "missing-marks/"+file)
	}
	for file := range files {
		for _, missing := range []string{"", `, missing: [-1, "-"]`} {
			data, err := load(t, fmt.Sprintf("  - {name: a, type: classification, data: {train: %s, text: premise, "+
				"pair: hypothesis%s}}\n", file, missing), files)
			if err != nil {
				t.Fatal(err)
			}
			warned := slices.ContainsFunc(plugin.Lines(data.Warnings), func(line string) bool {
				return strings.Contains(line, "may stand for a missing value")
			})
			labels := data.Labels[data.Heads(&data.Groups[0])[0].name()].Names()
			if warned != (missing == "") || missing != "" && len(labels) != 3 {
				t.Errorf("%s%s: labels %q, warned: %v", file, missing, labels, warned)
			}
		}
	}
}
