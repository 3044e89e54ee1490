package dataset

import (
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/plugin"
)

// remedy is an error or a warning about data, and what it says would help. What is left out of fixed is as in wrong.
type remedy struct {
	text         string // in the message
	wrong, fixed trial
}

// trial is an entry of tasks on a file: its type, by default classification, and other keys; keys of data beside path;
// and the file.
type trial struct{ task, data, file, content string }

const (
	simple   = "text,label\na one,x\na two,y\na three,x\na four,y\na five,x\n"
	together = "text,label,split\na one,x,train\na two,y,train\na three,x,"
)

// remedies are those of messages about keys of data, and about files that such keys read.
var remedies = map[string]remedy{
	// corpus: how a file is written
	"delimiter": {`delimiter: ";"`, trial{content: strings.ReplaceAll(simple, ",", ";")}, trial{data: `delimiter: ` +
		`";"`}},
	"quotes": {"quote: none", trial{file: "a.tsv", content: "text\tlabel\n\"no\" he said\tx\nwell \"so\"\ty\n"},
		trial{data: "quote: none"}},
	"no header": {"header: false with columns: [NAME, …]", trial{content: "a one,x\na two,y,\na three,x\n"},
		trial{data: "header: false, columns: [text, label]", content: "a one,x\na two,y\na three,x\n"}},
	"header unlike the columns": {"header: false is for a file without one", trial{data: "columns: [text]",
		content: simple}, trial{data: "columns: [text, label], header: false"}},
	"equal columns": {"columns: [NAME, …] gives them other names",
		trial{content: "text,label,label\na one,x,1\na two,y,2\n"}, trial{data: "columns: [text, label, other]"}},
	"utf-16": {"encoding: utf-16", trial{content: utf16(simple)}, trial{data: "encoding: utf-16"}},
	"cp1252": {"encoding: cp1252", trial{content: strings.ReplaceAll(simple, "five", "caf\xe9")},
		trial{data: "encoding: cp1252"}},
	"byte-order mark": {"leave out encoding: cp1252", trial{data: "encoding: cp1252", content: "\ufeff" + simple},
		trial{data: "limit: 0"}},
	"extension": {"format: TYPE sets it, one of jsonl, json, csv", trial{file: "a.dat", content: simple},
		trial{data: "format: csv"}},
	"blanks without columns": {"columns: [label, text]", trial{data: `format: csv, delimiter: " ", header: false`,
		content: "x a one\ny a two\n"}, trial{data: `format: csv, delimiter: " ", header: false, columns: [label, ` +
		`text]`}},
	"comments": {`comments: "#"`, trial{task: "type: tagging", file: "a.conll",
		content: "# id 1\na X\nb Y\n\n# id 2\na X\n"}, trial{data: `comments: "#"`}},

	// corpus: fields
	"text":  {"data: {text: FIELD}", trial{content: "body,label\na one,x\na two,y\n"}, trial{data: "text: body"}},
	"label": {"data: {label: FIELD}", trial{content: "text,team\na one,x\na two,y\n"}, trial{data: "label: team"}},
	"a misspelt field": {`did you mean "team"?`, trial{data: "label: taem", content: "text,team\na one,x\na two,y\n"},
		trial{data: "label: team"}},
	"two texts": {"data: {text: text}", trial{file: "a.jsonl",
		content: `{"text": "a one", "question": "what", "label": "x"}` + "\n"}, trial{data: "text: text"}},
	"the other text": {"{question: question}", trial{file: "a.jsonl",
		content: `{"text": "a one", "question": "what", "label": "x"}` + "\n"}, trial{data: "question: question"}},
	"offsets": {"data: {offsets: utf16}", trial{task: "type: ner", file: "a.jsonl",
		content: `{"text": "😀😀 Ada left", "entities": [{"start": 5, "end": 8, "label": "PER", "text": "Ada"}]}` + "\n"},
		trial{data: "offsets: utf16"}},

	// rows
	"where of no record": {`did you mean "x"?`, trial{data: "where: {label: xx}", content: simple},
		trial{data: "where: {label: x}"}},
	"where of no field": {`did you mean "label"?`, trial{data: "where: {lable: x}", content: simple},
		trial{data: "where: {label: x}"}},
	"no such field in a file": {"{path: FILE, where_not: {}}", trial{data: "where_not: {status: bad}", content: simple},
		trial{data: "where_not: {}"}},
	"missing of no field": {`did you mean "label"?`, trial{data: "missing: {lable: [x]}", content: simple},
		trial{data: "missing: {label: [x]}"}},
	"a split that is none": {"where_not: {split: [holdout]}", trial{data: "split: {column: split}",
		content: together + "holdout\n"}, trial{data: "split: {column: split}, where_not: {split: [holdout]}"}},
	"an empty split": {"where_not: {split: ''}", trial{data: "split: {column: split}", content: together + "\n"},
		trial{data: "split: {column: split}, where_not: {split: ''}"}},
	"a column of splits": {"data: split: {column: split}", trial{content: together + "test\n"},
		trial{data: "split: {column: split}"}},
	"rejected records": {"where_not: {split: [rejected]}", trial{
		content: strings.ReplaceAll(together, "train", "ok") + "rejected\n"}, trial{data: "where_not: {split: " +
		"[rejected]}"}},
	"accepted records": {"where: {split: [ok]}", trial{
		content: strings.ReplaceAll(together, "train", "ok") + "rejected\n"}, trial{data: "where: {split: [ok]}"}},

	"a list in where": {"where takes a field of one value", trial{data: "where: {tags: x}", file: "a.jsonl",
		content: `{"text": "a", "label": "x", "tags": ["x"], "kind": "x"}` + "\n"}, trial{data: "where: {kind: x}"}},

	// targets
	"labels for none": {`data: {missing: [NaN, "n/a"]}`, trial{content: simple + "b one,NaN\nb two,n/a\n"},
		trial{data: `missing: [NaN, "n/a"]`}},
	"a mark for none": {`data: {missing: ["-"]}`, trial{content: simple + "b one,-\n"}, trial{data: `missing: ` +
		`["-"]`}},
	"a label of -1": {`data: {missing: [-1]}`, trial{content: simple + "b one,-1\n"}, trial{data: `missing: [-1]`}},
	"numbers and texts": {`data: {missing: {label: [">48", "n/a", "x y", "a: b", "null"]}}`, numbers, trial{
		data: `missing: {label: [">48", "n/a", "x y", "a: b", "null"]}`}},
	"a number for none": {"data: {missing: [-1]}", trial{task: "type: regression",
		content: "text,value\na,1\nb,2\nc,-1\nd,-1\ne,5\n"}, trial{data: "missing: [-1]"}},
	"a number without a name": {"data: {missing: [7]}", trial{task: "type: classification, label_maps: {a: {0: x, " +
		"1: y}}",
		content: "text,label\na,0\nb,1\nc,7\n"}, trial{data: "missing: [7]"}},
	"a number that is named": {"name it there", trial{task: "type: classification, label_maps: {a: {0: x, 1: y}}",
		content: "text,label\na,0\nb,1\nc,7\n"}, trial{task: "type: classification, label_maps: {a: {0: x, 1: y, 7: " +
		"z}}"}},
	"numbers of tags": {"label_maps: {HEAD: {0: O, 1: B-PER, …}}", trial{task: "type: ner", file: "a.jsonl",
		content: `{"words": ["a", "b"], "tags": [0, 1]}` + "\n"}, trial{task: "type: ner, label_maps: {a: {0: O, 1: " +
		"B-PER}}"}},
	"numbers of labels": {"label_maps: {a: {0: x, …}} instead", trial{task: "type: classification, labels: [x, y]",
		content: "text,label\na,0\nb,1\n"}, trial{task: "type: classification, label_maps: {a: {0: x, 1: y}}"}},
	"a label twice": {"want each name once", trial{task: "type: multi_label", content: "text,labels\na,\"x,x\"\nb,y\n"},
		trial{content: "text,labels\na,x\nb,y\n"}},
	"tags and words": {`give the words as "words" in place of "text"`, trial{task: "type: tagging", file: "a.jsonl",
		content: `{"text": "it's late", "tags": ["X", "Y"]}` + "\n"}, trial{
		content: `{"words": ["it's", "late"], "tags": ["X", "Y"]}` + "\n"}},
	"broken tags": {"broken_tags: repair", trial{task: "type: ner, broken_tags: error", file: "a.conll",
		content: "a O\nb I-X\n\nc B-X\n"}, trial{task: "type: ner, broken_tags: repair"}},
	"broken tags that are kept": {"broken_tags: repair", trial{task: "type: ner", file: "a.conll",
		content: "a O\nb I-X\n\nc B-X\n"}, trial{task: "type: ner, broken_tags: repair"}},
	"num_labels": {"leave num_labels out", trial{task: "type: classification, heads: [{name: a, num_labels: 5}]",
		content: simple}, trial{task: "type: classification, heads: [{name: a}]"}},
	"cleaning": {"clean: {lower: …}", trial{data: "label: {lower: true}", content: simple},
		trial{data: "clean: {lower: true}"}},

	// splits
	"everything is taken": {"take fewer", trial{data: "split: {dev: 9}", content: simple}, trial{data: "split: " +
		"{dev: 2}"}},
	"one group": {"name another field", trial{data: "split: {by: user}",
		content: "text,label,user,id\na,x,1,1\nb,y,1,2\nc,x,1,3\n"}, trial{data: "split: {by: id}"}},
	"streamed json": {"want one of jsonl, csv, tsv", trial{data: "stream: true", file: "a.json",
		content: `[{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]`}, trial{file: "a.jsonl",
		content: `{"text": "a", "label": "x"}` + "\n" + `{"text": "b", "label": "y"}` + "\n"}},
	"streamed in cp1252": {"convert the file to utf-8", trial{data: "stream: true, encoding: cp1252", content: simple},
		trial{data: "stream: true"}},
}

var numbers = trial{task: "type: regression",
	content: "text,label\na,1\nb,2\nc,n/a\nd,n/a\ne,>48\nf,>48\ng,x y\nh,x y\ni,a: b\nj,null\nk,3\nl,4\n" +
		"m,5\nn,6\no,7\np,8\n"}

// utf16 returns ASCII as UTF-16, with a byte-order mark.
func utf16(text string) string {
	return "\xff\xfe" + strings.Join(strings.Split(text, ""), "\x00") + "\x00"
}

// messages returns the errors and warnings of a trial.
func (r trial) messages(t *testing.T) (text string, err error) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	task, file, data := r.task, r.file, ""
	if task == "" {
		task = "type: classification"
	}
	if file == "" {
		file = "a.csv"
	}
	if r.data != "" {
		data = ", " + r.data
	}
	sample.Tasks(t, "  - {name: a, "+task+", data: {path: "+file+data+"}}\n", map[string]string{file: r.content})
	e, err := config.Read("exp.yaml", nil)
	if err != nil {
		return err.Error(), err
	}
	read, err := Load(t.Context(), e, Options{}, config.Train, config.Dev, config.Test)
	if err != nil {
		return err.Error(), err
	}
	defer read.Close()
	return strings.Join(plugin.Lines(read.Warnings), "\n"), nil
}

func TestRemediesHelpWhenTheyAreApplied(t *testing.T) {
	for name, test := range remedies {
		t.Run(name, func(t *testing.T) {
			before, _ := test.wrong.messages(t)
			if !strings.Contains(before, test.text) {
				t.Fatalf("message\n%s\nwithout %q", before, test.text)
			}
			fixed := test.fixed
			for of, was := range map[*string]string{&fixed.task: test.wrong.task, &fixed.data: test.wrong.data,
				&fixed.file: test.wrong.file, &fixed.content: test.wrong.content} {
				if *of == "" {
					*of = was
				}
			}
			after, err := fixed.messages(t)
			if err != nil || strings.Contains(after, test.text) {
				t.Errorf("after %q:\n%s", test.text, after)
			}
		})
	}
}
