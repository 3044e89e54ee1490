package dataset

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/guess"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/plugin"
)

// sizes returns the numbers of examples of train, dev and test.
func sizes(data *Dataset) string {
	group := &data.Groups[0]
	train := len(group.Examples[config.Train])
	if group.Stream != nil {
		train = group.Stream.count()
	}
	return fmt.Sprint(train, len(group.Examples[config.Dev]), len(group.Examples[config.Test]))
}

func TestRecordsNameTheirSplit(t *testing.T) {
	for name, test := range map[string]struct{ file, text, keys, want string }{
		"train, val and test": {"a.csv", "text,label,split\n" + rows(6, "a%d,x,train") + rows(3, "b%d,y,val") +
			rows(2, "c%d,x,test"), "split: {column: split}", "6 3 2"},
		"any case, other names": {"a.jsonl", rows(4, `{"text": "a%d", "label": "x", "meta": {"part": "TRAIN"}}`) +
			rows(2, `{"text": "b%d", "label": "x", "meta": {"part": "Validation"}}`) +
			rows(1, `{"text": "c%d", "label": "x", "meta": {"part": "dev"}}`), "split: {column: meta.part}", "4 3 0"},
		"dev is taken where no record is of it": {"a.csv", "text,label,split\n" + rows(10, "a%d,x,train") +
			rows(2, "c%d,x,test"), "split: {column: split, dev: 0.2}", "8 2 2"},
		"a limit": {"a.csv", "text,label,split\n" + rows(6, "a%d,x,train") + rows(3, "b%d,y,valid"),
			"split: {column: split}, limit: 4", "4 3 0"},
		"duplicates count once": {"a.csv", "text,label,split\n" + rows(6, "a%d,x,train") + rows(4, "a%d,x,val") +
			rows(3, "b%d,y,val"), "split: {column: split}, dedupe: true", "6 3 0"},
		"a field with our name that is not read": {"a.csv", "text,label,pair\n" + rows(6, "a%d,x,train") +
			rows(3, "b%d,y,dev"), "pair: '', split: {column: pair}", "6 3 0"},
		"our name of another text": {"a.csv", "body,label,text\n" + rows(6, "a%d,x,train") + rows(3, "b%d,y,dev"),
			"text: body, split: {column: text}", "6 3 0"},
		"our name of another label": {"a.jsonl", rows(6, `{"text": "a%d", "team": "x", "label": "train"}`) +
			rows(3, `{"text": "b%d", "team": "y", "label": "dev"}`), "label: team, split: {column: label}", "6 3 0"},
		"a path in our name": {"a.jsonl", rows(6, `{"": 1, "text": "a%d", "label": "x", "pair": {"of": "train"}}`) +
			rows(3, `{"": 1, "text": "b%d", "label": "y", "pair": {"of": "dev"}}`),
			"words: '', pair: '', split: {column: pair.of}", "6 3 0"},
		"a context": {"a.csv", "question,label,passage,context\n" + rows(6, "a%d,x,p,train") + rows(3, "b%d,y,q,dev"),
			"context: passage, split: {column: context}", "6 3 0"},
		"marks are no splits": {"a.csv", "text,label,part\n" + rows(6, "a%d,x,train") + rows(3, "b%d,-,dev"),
			"missing: ['-'], split: {column: part}", "6 3 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			for _, stream := range []string{"", ", stream: true", ", stream: true"} {
				data, err := load(t, fmt.Sprintf("  - {name: a, type: classification, data: {path: %s, %s%s}}\n",
					test.file,
					test.keys, stream), map[string]string{test.file: test.text})
				if err != nil {
					t.Fatal(err)
				}
				if got := sizes(data); got != test.want {
					t.Errorf("%q: examples %s, want %s", stream, got, test.want)
				}
				data.Close()
			}
		})
	}
}

// A column that names the splits is no second text: a warning says so, and its remedy leaves the column out.
func TestASplitThatIsReadAsAText(t *testing.T) {
	csv := func(header string) string { return header + "\n" + rows(6, "a%d,x,train") + rows(3, "b%d,y,dev") }
	for name, test := range map[string]struct{ text, keys, want string }{
		"a pair":        {csv("text,label,pair"), "split: {column: pair}", "data: {pair: ''}"},
		"beside a text": {csv("body,label,pair"), "text: body, split: {column: pair}", "data: {pair: ''}"},
		"a context":     {csv("question,label,context"), "split: {column: context}", "data: {context: ''}"},
		"a question":    {csv("q,label,context"), "question: q, split: {column: context}", "data: {context: ''}"},
		"no question":   {csv("text,label,context"), "split: {column: context}", ""},
		"a split alone": {csv("text,label,split"), "split: {column: split}", ""},
		"such texts":    {csv("text,label,part"), "pair: part, split: {column: part}", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			warnings := func(keys string) (all []string) {
				data, err := load(t, "  - {name: a, type: classification, data: {path: a.csv, "+test.keys+keys+"}}\n",
					map[string]string{"a.csv": test.text})
				if err != nil {
					t.Fatal(err)
				}
				defer data.Close()
				for _, line := range plugin.Lines(data.Warnings) {
					if strings.Contains(line, "second text") {
						all = append(all, line)
					}
				}
				return all
			}
			for _, stream := range []string{"", ", stream: true", ", stream: true"} {
				got := warnings(stream)
				if (len(got) == 1) != (test.want != "") || !strings.Contains(strings.Join(got, "\n"), test.want) {
					t.Errorf("%q: warnings %q, want %q", stream, got, test.want)
				}
			}
			if key := strings.Trim(strings.TrimPrefix(test.want, "data: "), "{}"); key != "" {
				if got := warnings(", " + key); len(got) > 0 {
					t.Errorf("with %s: warnings %q", key, got)
				}
			}
		})
	}
}

// Groups are of the file's own field too, also if it has one of our names.
func TestGroupsByAFieldWithOurName(t *testing.T) {
	lines := rows(4, `{"body": "a%d", "label": "x", "text": "one"}`) +
		rows(4, `{"body": "b%d", "label": "y", "text": "two"}`)
	for by, want := range map[string]int{"text": 2, "body": 8} {
		data, err := load(t, "  - {name: a, type: classification, data: {train: a.jsonl, dev: a.jsonl, text: body, "+
			"split: {by: "+by+", test: 0.5}}}\n", map[string]string{"a.jsonl": lines})
		if err != nil {
			t.Fatalf("by %s: %v", by, err)
		}
		groups := map[string]bool{}
		for _, split := range []string{config.Train, config.Test} {
			for _, e := range data.Groups[0].Examples[split] {
				groups[e.Group] = true
			}
		}
		if len(groups) != want {
			t.Errorf("by %s: groups %v, want %d", by, groups, want)
		}
	}
}

// The case split-column of the shared folder: train, val and test.
func TestTheSplitOfTheSharedCase(t *testing.T) {
	text := sharedCase(t, "split-column/split.csv")
	data, err := load(t, "  - {name: a, type: classification, data: {path: a.csv, split: {column: split}}}\n",
		map[string]string{"a.csv": text})
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprint(strings.Count(text, ",train\n"), strings.Count(text, ",val\n"), strings.Count(text, ",test\n"))
	if got := sizes(data); got != want {
		t.Errorf("examples %s, want %s", got, want)
	}
	if lines := plugin.Lines(data.Warnings); len(lines) > 0 {
		t.Errorf("warnings %q, want none", lines)
	}
}

// looksLikeMarks are files with fields that look like marks of records, or splits, and what warns of them.
var looksLikeMarks = map[string]struct{ file, text, keys, want string }{
	"a split": {"a.csv", "text,label,split\n" + rows(4, "a%d,x,train") + "b,y,test\n", "",
		`field "split" of a.csv looks like the split of its records and is not used: "test" 1 time, "train" 4 ` +
			`times; data: split: {column: split}`},
	"a split with another value": {"a.csv", "text,label,split\n" + rows(4, "a%d,x,train") + "b,y,test\nc,x,eval\n",
		"", "data: split: {column: split} reads train, dev and test as the splits of its records, with " +
			"where_not: {split: [eval]}"},
	"a split of MultiNLI": {"a.csv", "text,label,part\na,x,train\nb,y,validation_mismatched\nc,x,test_matched\n",
		"", "data: where: {part: [train]} uses the records of train alone; split: {column: part} reads train, "},
	"parts of splits": {"a.csv", "text,label,split\na,x,train-01\nb,y,train-02\nc,x,test-01\n", "",
		`data: where: {split: ["train-01", "train-02"]} uses the records of train alone`},
	"a split that some lack": {"a.jsonl", rows(4, `{"text": "a%d", "label": "x", "split": "train"}`) +
		`{"text": "b", "label": "y"}` + "\n" + `{"text": "c", "label": "y", "split": "test"}`, "", `{split: [""]}`},
	"a split in lists": {"a.jsonl", rows(4, `{"text": "a%d", "label": "x", "split": ["train"]}`) +
		`{"text": "b", "label": "y", "split": ["test"]}` + "\n", "", "data: split: {column: split}"},
	"a split of a sentence's rows": {"a.csv", "s,text,label,split\n1,a,x,train\n1,b,y,train\n2,c,x,test\n" +
		"2,d,y,test\n", "sentence: s, text: '', words: text, label: s", "data: split: {column: split}"},
	"means of transport": {"a.csv", "text,label,by\na,x,train\nb,y,bus\nc,x,test\n", "", ""},
	"MASSIVE's partition": {"a.jsonl", rows(4, `{"text": "a%d", "label": "x", "partition": "train"}`) +
		`{"text": "b", "label": "x", "partition": "dev"}` + "\n", "", "data: split: {column: partition}"},
	"Prodigy's answer": {"a.jsonl", rows(4, `{"text": "a%d", "label": "x", "answer": "accept"}`) +
		rows(2, `{"text": "b%d", "label": "y", "answer": "reject"}`), "",
		"data: where_not: {answer: [reject]} leaves such records out, where: {answer: [accept]}"},
	"a flag of rejected ones": {"a.csv", "text,label,is_rejected\na,x,False\nb,y,True\n", "",
		`data: where_not: {is_rejected: [True]}`},
	"a flag that others lack": {"a.jsonl", rows(3, `{"text": "a%d", "label": "x"}`) +
		`{"text": "b", "label": "y", "meta": {"was_cancelled": true}}` + "\n", "",
		`data: where_not: {meta.was_cancelled: [true]}`},
	"a status": {"a.csv", "text,label,review\na,x,ok\nb,y,skipped\nc,x,in progress\n", "",
		"where_not: {review: [skipped]}"},
	"a split that is used": {"a.csv", "text,label,split\na,x,train\nb,y,test\n", "split: {column: split}", ""},
	"a mark that is used":  {"a.csv", "text,label,status\na,x,done\nb,y,rejected\n", "where: {status: done}", ""},
	"a label":              {"a.csv", "text,status\na,valid\nb,rejected\n", "label: status", ""},
	"one split":            {"a.csv", "text,label,split\na,x,train\nb,y,train\n", "", ""},
	"other words":          {"a.csv", "text,label,status\na,x,open\nb,y,closed\n", "", ""},
}

func TestFieldsThatLookLikeMarksAreWarnedOf(t *testing.T) {
	for name, test := range looksLikeMarks {
		t.Run(name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			for _, keys := range []string{"", "stream: true"} {
				keys = strings.Trim(strings.Join([]string{"path: " + test.file, test.keys, keys}, ", "), ", ")
				keys = strings.ReplaceAll(keys, ", , ", ", ")
				data, err := load(t, "  - {name: a, type: classification, data: {"+keys+"}}\n",
					map[string]string{test.file: test.text})
				if err != nil {
					t.Fatal(err)
				}
				var got string
				for _, line := range plugin.Lines(data.Warnings) {
					if strings.Contains(line, "looks like") {
						got += line
					}
				}
				if !strings.Contains(got, test.want) || test.want == "" && got != "" {
					t.Errorf("%s: warning %q, want %q", keys, got, test.want)
				}
				data.Close()
			}
		})
	}
}

func TestMistakesOfASplitColumn(t *testing.T) {
	for name, test := range map[string]struct{ text, keys, want string }{
		"values that name no split": {"text,label,split\na,x,train\nb,x,holdout\nc,x,holdout\n", "path: a.csv",
			`field "split" has 1 value that names no split: "holdout" 2 times (first: a.csv:3); want train, dev ` +
				`(val, ` +
				`valid, validation) or test; where_not: {split: [holdout]} leaves these out`},
		"values of another field": {"text,label,split\na,x,so\nb,x,no\nc,x,no\n", "path: a.csv",
			`"no" 2 times (first: a.csv:3); want train, dev (val, valid, validation) or test` + "\n"},
		"an empty one": {"text,label,split\na,x,train\nb,x,\n", "path: a.csv",
			`a.csv:3: task "a": field "split", which split: column names, is empty; want train, dev or test`},
		"no such field": {"text,label,split\na,x,train\nb,x,test\n", "path: a.csv, split: {column: part}",
			`no field "part", which split: column names; available: label, split, text`},
		"a file of the split too": {"text,label,split\na,x,train\nb,x,dev\n", "train: a.csv, dev: b.csv",
			`1 record of a.csv is of dev, and data has a dev file; leave that out, or the records by where_not: ` +
				`{split: [dev]}`},
		"nothing to train on": {"text,label,split\na,x,dev\nb,x,test\n", "path: a.csv",
			`no record of a.csv is of train by field "split"`},
	} {
		t.Run(name, func(t *testing.T) {
			if !strings.Contains(test.keys, "column") {
				test.keys += ", split: {column: split}"
			}
			_, err := load(t, fmt.Sprintf("  - {name: a, type: classification, data: {%s}}\n", test.keys),
				map[string]string{"a.csv": test.text, "b.csv": "text,label\na,x\n"})
			if err == nil || !strings.Contains(err.Error()+"\n", test.want) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

func TestRecordsToUse(t *testing.T) {
	csv := "text,label,status,is_rejected\n" + rows(5, "a%d,x,done,False") + rows(3, "b%d,y,draft,True") +
		rows(2, "c%d,y,,False")
	jsonl := rows(4, `{"text": "a%d", "label": "x", "answer": "accept", "n": 1}`) +
		rows(2, `{"text": "b%d", "label": "y", "answer": "reject", "n": 1.0}`) +
		rows(1, `{"text": "c%d", "label": "y", "answer": "ignore", "meta": {"ok": true}}`)
	for name, test := range map[string]struct {
		file, keys, want string
	}{
		"a value":                  {"a.csv", "where: {status: done}", "5"},
		"one of a list, and empty": {"a.csv", "where: {status: [done, '']}", "7"},
		"true in any case":         {"a.csv", "where_not: {is_rejected: true}", "7"},
		"both":                     {"a.csv", "where: {status: [done, draft]}, where_not: {is_rejected: true}", "5"},
		"two fields":               {"a.csv", "where_not: {status: draft, is_rejected: true}", "7"},
		"Prodigy's answer":         {"a.jsonl", "where: {answer: accept}", "4"},
		"not some":                 {"a.jsonl", "where_not: {answer: [reject, ignore]}", "4"},
		"a number":                 {"a.jsonl", "where: {n: 1}", "6"},
		"a path, absent elsewhere": {"a.jsonl", "where_not: {meta.ok: true}", "6"},
		"an array of JSON":         {"a.json", "where: {answer: accept}", "4"},
	} {
		t.Run(name, func(t *testing.T) {
			files := map[string]string{"a.csv": csv, "a.jsonl": jsonl,
				"a.json": "[" + strings.TrimSuffix(strings.ReplaceAll(jsonl, "\n", ","), ",") + "]"}
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			for _, stream := range []string{"", ", stream: true", ", stream: true"} {
				if stream != "" && test.file == "a.json" {
					continue
				}
				data, err := load(t, fmt.Sprintf("  - {name: a, type: classification, data: {path: %s, split: {dev: "+
					"0}, "+
					"%s%s}}\n", test.file, test.keys, stream), files)
				if err != nil {
					t.Fatal(err)
				}
				got, _, _ := strings.Cut(sizes(data), " ")
				targets := targetsOf(t, data)
				if got != test.want || len(targets) != len(slices.DeleteFunc(targets,
					func(s string) bool { return s == "" })) {
					t.Errorf("%q: %s records with targets %q, want %s", stream, got, targets, test.want)
				}
				data.Close()
			}
		})
	}
}

func TestMistakesOfRecordsToUse(t *testing.T) {
	const text = "text,label,status\na,x,done\nb,y,done\nc,x,draft\n"
	for keys, want := range map[string]string{
		"where: {status: dnoe}": `a.csv: none of its 3 records is used: where: no record has status "dnoe"; did you ` +
			`mean "done"? it has "done" 2 times, "draft" 1 time`,
		"where: {statsu: done}": `a.csv: no record has the field "statsu", which where names; did you mean "status"? ` +
			`available: label, status, text`,
		"where_not: {state: x}": `a.csv: no record has the field "state", which where_not ` +
			`names; `,
		"where_not: {status: [done, draft]}": `a.csv: none of its 3 records is used: where and where_not ` +
			`leave all of them out`,
		"where_not: {label: x}, missing: {labl: [y]}": `a.csv: no field "labl", which missing names; did you mean ` +
			`"label"? `,
	} {
		_, err := load(t, "  - {name: a, type: classification, data: {train: a.csv, split: {dev: 0}, "+keys+"}}\n",
			map[string]string{"a.csv": text})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", keys, err, want)
		}
	}
}

func TestDuplicatesAreLeftOut(t *testing.T) {
	const text = "text,label\na,x\nb,y\na,x\na,y\nc,z\n"
	for dedupe, want := range map[string]string{"false": "x y x y z", "true": "x y y z", "keep_first": "x y z"} {
		for _, stream := range []string{"", ", stream: true"} {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			data, err := load(t, fmt.Sprintf("  - {name: a, type: classification, data: {train: a.csv, dev: b.csv, "+
				"dedupe: %s"+
				"%s}}\n", dedupe, stream), map[string]string{"a.csv": text, "b.csv": text})
			if err != nil {
				t.Fatal(err)
			}
			n := len(strings.Fields(want))
			if got := strings.Join(targetsOf(t, data), " "); got != want ||
				len(data.Groups[0].Examples[config.Dev]) != n {
				t.Errorf("dedupe: %s%s: labels %q, want %q, and %d of dev", dedupe, stream, got, want, n)
			}
			if warned := strings.Contains(fmt.Sprint(plugin.Lines(data.Warnings)),
				"dedupe: "); warned != (dedupe != "false") {
				t.Errorf("dedupe: %s: warned: %v", dedupe, warned)
			}
			data.Close()
		}
	}
}

func TestAnotherFileHasTheSplitThatIsEvaluated(t *testing.T) {
	const all = "text,label,split,status\na,x,train,ok\nb,y,dev,ok\nc,x,test,ok\nd,y,test,ok\n"
	for name, test := range map[string]struct {
		text, warning, err string
		want               int
	}{
		"records of the split":   {all, "2 of 4 records of b.csv are read: those of test by field", "", 2},
		"no such column":         {"text,label\na,x\nb,y\nc,x\n", "", "", 3},
		"marks of rejected ones": {"text,label,status\na,x,ok\nb,y,bad\nc,x,ok\n", "", "", 2},
		"no record of the split": {"text,label,split\na,x,train\n", "", "no record of b.csv is of test by field", 0},
	} {
		t.Run(name, func(t *testing.T) {
			data, err := load(t, "  - {name: a, type: classification, data: {path: a.csv, where: {status: ok}, "+
				"split: {column: split}}}\n", map[string]string{"a.csv": all, "b.csv": test.text})
			if err != nil {
				t.Fatal(err)
			}
			err = data.Read(t.Context(), config.Test, "", map[string][]string{"a": {"b.csv"}})
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("error %v, want %q", err, test.err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := len(data.Groups[0].Examples[config.Test]); got != test.want {
				t.Errorf("%d examples, want %d", got, test.want)
			}
			if lines := fmt.Sprint(plugin.Lines(data.Warnings)); !strings.Contains(lines, test.warning) {
				t.Errorf("warnings %s, want %q", lines, test.warning)
			}
		})
	}
}

// What guess writes for a file is read without a doubt.
func TestAGuessedExperimentUsesMarksAndSplits(t *testing.T) {
	snli := sharedCase(t, "missing-marks/snlidash.jsonl")
	for name, test := range map[string]struct{ file, text, want, sizes string }{
		"the case split-column": {"a.csv", sharedCase(t, "split-column/split.csv"), "column: split", "12 6 6"},
		"a column of the rows of sentences": {"a.csv", "sent,word,tag,split\n" + rows(12, "%d,Ada,B-x,train\n"+
			"%[1]d,left,O,train") + rows(4, "1%d,Bob,B-x,val\n1%[1]d,went,O,val") +
			rows(4, "2%d,Eve,B-x,test\n2%[1]d,is,O,test"),
			"column: split", "12 4 4"},
		"a column of lists": {"a.jsonl", rows(8, `{"text": "this is text %d", "label": "x", "split": ["train"]}`) +
			rows(8, `{"text": "that is text %d", "label": "y", "split": ["train"]}`) +
			rows(4, `{"text": "it is text %d", "label": "y", "split": ["dev"]}`), "column: split", "16 4 0"},
		"a column without dev": {"a.csv", "text,label,part\n" + rows(40, "this is text %d,x,train") +
			rows(40, "that is text %d,y,TRAIN") + rows(9, "more of text %d,y,test"), "column: part", "64 16 9"},
		"numbers and a few texts": {"a.csv", "text,price\n" + rows(38, "this is text number %d,1%[1]d.25") +
			"this is no number,n/a\nthis is none either,>48\n", "price: ['>48', n/a]", "32 8 0"},
		"no gold label": {"a.jsonl", snli, "label: ['-']", "48 12 0"},
		"a number for none": {"a.jsonl", sharedCase(t, "missing-marks/snli.jsonl"), `label: ["-1"]`,
			"48 12 0"},
	} {
		t.Run(name, func(t *testing.T) {
			sample.Tasks(t, "", map[string]string{test.file: test.text})
			e, err := guess.Files(t.Context(), []string{test.file})
			if err != nil {
				t.Fatal(err)
			}
			text, err := e.YAML(".", nil)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(string(text), test.want) {
				t.Errorf("no %q in\n%s", test.want, text)
			}
			if err := os.WriteFile("guessed.yaml", text, 0o666); err != nil {
				t.Fatal(err)
			}
			read, err := config.Read(t.Context(), "guessed.yaml", nil)
			if err != nil {
				t.Fatal(err)
			}
			data, err := Load(t.Context(), read, Options{}, config.Train, config.Dev, config.Test)
			if err != nil {
				t.Fatal(err)
			}
			if got := sizes(data); got != test.sizes {
				t.Errorf("examples %s, want %s", got, test.sizes)
			}
			for _, line := range plugin.Lines(data.Warnings) {
				if strings.Contains(line, "looks like") || strings.Contains(line, "may stand for") {
					t.Errorf("warning %s", line)
				}
			}
		})
	}
}
