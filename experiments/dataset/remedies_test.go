package dataset

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
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
// and the file, or the files of a folder.
type trial struct {
	task, data, file, content string
	files                     map[string]string
}

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
	"words as offsets": {"data: {offsets: words} reads them", trial{task: "type: ner", file: "a.jsonl",
		content: `{"words": ["Ada", "Byron", "ran"], "entities": [{"start": 0, "end": 1, "label": "PER"}]}` + "\n"},
		trial{data: "offsets: words"}},
	"words with another end": {"word_bounds", trial{task: "type: ner", file: "a.jsonl",
		content: `{"words": ["Ada", "Byron", "ran"], "entities": [{"start": 0, "end": 2, "type": "PER"}]}` + "\n"},
		trial{data: "offsets: word_bounds"}},
	"words of which characters are none": {"{offsets: words} reads them if an end is the last word of a span; " +
		"{offsets: word_bounds} if it is the word after the last one", trial{task: "type: ner", file: "a.jsonl",
		data: "words: tokenized_text, entities: ner", content: `{"tokenized_text": ["Ada", "B.", "saw", "New", ` +
			`"York", "."], "ner": [[0, 1, "PER"], [3, 4, "LOC"]]}` + "\n"},
		trial{data: "words: tokenized_text, entities: ner, offsets: words"}},
	"words that are the unit": {"data: {offsets: word_bounds}", trial{task: "type: ner", file: "a.jsonl",
		data: "offsets: " +
			"words", content: `{"words": ["Ada", "ran"], "entities": [{"start": 0, "end": 2, "type": "PER"}]}` + "\n"},
		trial{data: "offsets: word_bounds"}},
	"another copy": {"{text: FIELD} name the two", trial{task: "type: ner", data: "entities: copy", file: "a.jsonl",
		content: `{"text": "go to Rome, please", "other": "go to Rome now", "copy": "go to [place : Rome] now"}` +
			"\n"},
		trial{data: "text: other, entities: copy"}},
	"two labels": {"type: multi_label", trial{file: "a.jsonl", content: `{"text": "a", "label": ["x", "y"]}` + "\n" +
		`{"text": "b", "label": ["x"]}` + "\n"}, trial{task: "type: multi_label"}},
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

	"an object in where": {"where takes a field of one value, or a list of values; a path names a part of it, as " +
		"meta.0 or meta.KEY", trial{data: "where: {meta: x}", file: "a.jsonl",
		content: `{"text": "a", "label": "x", "meta": {"kind": "x"}}` + "\n"}, trial{data: "where: {meta.kind: x}"}},
	"lists in a list in where": {"a path names a part of it, as tags.0", trial{file: "a.jsonl",
		data: "where: {tags: x}", content: `{"text": "a", "label": "x", "tags": [["x"], []]}` + "\n"},
		trial{data: "where: {tags.0: x}"}},

	// a word a row
	"a word a row": {"want data: {sentence: id}", trial{task: "type: tagging", data: "words: word, tags: tag",
		content: "id,word,tag\n" + wordRows()}, trial{data: "words: word, tags: tag, sentence: id"}},
	"no such sentence": {`did you mean "sent"?`, trial{task: "type: tagging",
		content: "sent,word,tag\n1,a,X\n1,b,Y\n2,c,X\n", data: "words: word, tags: tag, sentence: sant"},
		trial{data: "words: word, tags: tag, sentence: sent"}},
	"a sentence without a value": {"a sentence begins with a row that has a value", trial{task: "type: tagging",
		data: "words: word, tags: tag, sentence: id", content: "id,word,tag\n,a,X\n1,b,Y\n2,c,X\n"},
		trial{content: "id,word,tag\n1,a,X\n,b,Y\n2,c,X\n"}},
	"a sentence a word": {"want a field that the rows of a sentence have in common", trial{task: "type: tagging",
		data: "words: word, tags: tag, sentence: word", content: "id,word,tag\n" + wordRows()},
		trial{data: "words: word, tags: tag, sentence: id"}},

	// JSON with the records inside
	"records": {"records: result.items reads", trial{file: "a.json",
		content: `{"v": 3, "result": {"items": [{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]}}`},
		trial{data: "records: result.items"}},
	"records of data": {"records: data reads", trial{file: "a.json",
		content: `{"data": [{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]}`}, trial{data: "records: data"}},
	"no such key of records": {`the object has "rows"`, trial{file: "a.json", data: "records: row",
		content: `{"rows": [{"text": "a", "label": "x"}, {"text": "b", "label": "y"}]}`}, trial{data: "records: rows"}},
	"columns of JSON": {"format: columns reads", trial{file: "a.json",
		content: `{"text": ["a", "b"], "label": ["x", "y"]}`}, trial{data: "format: columns"}},
	"a record alone": {"a record alone is written in [ ]", trial{file: "a.json",
		content: `{"title": "a", "rows": [{"text": "a"}, {"text": "b"}], "label": "x"}`, data: "text: title"},
		trial{content: `[{"title": "a", "rows": [{"text": "a"}, {"text": "b"}], "label": "x"}]`}},

	// Parquet
	"columns of one name": {"save the file with a name of its own for each", trial{file: "a.parquet",
		content: strings.ReplaceAll(parquet("labex"), "labex", "label")}, trial{content: parquet("other")}},
	"parquet under another name": {"format: parquet", trial{file: "a.csv", content: parquet("other")},
		trial{data: "format: parquet"}},
	"another file as parquet": {"format: csv", trial{file: "a.parquet", content: simple}, trial{data: "format: csv"}},

	// a folder of intents and slots
	"a file as slots": {"a folder with seq.in, seq.out and label", trial{data: "format: slots", content: simple},
		trial{file: "flights", files: flights}},
	"a file of a folder": {"a folder of data holds seq.in, seq.out and label", trial{file: "flights",
		files: map[string]string{"flights/seq.in": "a b\nc\n", "flights/label": "x\ny\n"}}, trial{files: flights}},
	"fewer tags than words": {"want a tag a word", trial{file: "flights", files: map[string]string{
		"flights/seq.in": "a b\nc\n", "flights/seq.out": "O\nO\n", "flights/label": "x\ny\n"}}, trial{files: flights}},
	"fewer lines": {"want a line for each", trial{file: "flights", files: map[string]string{
		"flights/seq.in": "a b\nc\n", "flights/seq.out": "O O\nO\n", "flights/label": "x\n"}}, trial{files: flights}},
	"a folder of another format": {"format csv is a file", trial{file: "flights", data: "format: csv", files: flights},
		trial{data: "format: slots"}},

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
	"an empty label of several": {"label 2 is empty; leave it out of the list", trial{task: "type: multi_label",
		file: "a.jsonl", content: `{"text": "a", "labels": ["x", ""]}` + "\n" +
			`{"text": "b", "labels": ["y"]}` + "\n"},
		trial{content: `{"text": "a", "labels": ["x"]}` + "\n" + `{"text": "b", "labels": ["y"]}` + "\n"}},
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

var flights = map[string]string{"flights/seq.in": "a b\nc\n", "flights/seq.out": "O B-X\nO\n",
	"flights/label": "x\ny\n"}

// wordRows are 30 rows of a word, three for each sentence.
func wordRows() string {
	var rows strings.Builder
	for i := range 30 {
		fmt.Fprintf(&rows, "%d,w%d,X\n", i/3, i)
	}
	return rows.String()
}

// parquet returns a file with texts and labels, and another column.
func parquet(other string) string {
	var file strings.Builder
	table, err := corpus.NewTableWriter(&file, corpus.Format{Type: "parquet"}, []string{"text", "label", other})
	for _, row := range [][]any{{"a one", "x", "1"}, {"a two", "y", "2"}} {
		err = errors.Join(err, table.Write(row))
	}
	if err = errors.Join(err, table.End()); err != nil {
		panic(err)
	}
	return file.String()
}

// utf16 returns ASCII as UTF-16, with a byte-order mark.
func utf16(text string) string {
	return "\xff\xfe" + strings.Join(strings.Split(text, ""), "\x00") + "\x00"
}

// What is advised for one of several files works as that file's own entry.
func TestRemediesForOneOfSeveralFilesHelpWhenTheyAreApplied(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	const spans = `{"text": "😀😀 Ada left", "entities": [{"start": %d, "end": %d, "label": "P", "text": "Ada"}]}` + "\n"
	in := func(start int) string { return fmt.Sprintf(spans, start, start+3) }
	cp1252, semicolons := strings.ReplaceAll(simple, "five", "caf\xe9"), strings.ReplaceAll(simple, ",", ";")
	const marked = "\ufeff" + simple
	for name, test := range map[string]struct{ kind, all, key, file, others, other string }{
		"cp1252":          {"classification", "", "encoding: cp1252", "a.csv", simple, cp1252},
		"byte-order mark": {"classification", "encoding: cp1252, ", "encoding: utf-8", "a.csv", cp1252, marked},
		"utf-16":          {"classification", "", "encoding: utf-16", "a.csv", simple, utf16(simple)},
		"delimiter":       {"classification", "", `delimiter: ";"`, "a.csv", simple, semicolons},
		"a name like a key": {"classification", "", `delimiter: ";"`, "a.csv", simple,
			"in encoding: a;" + strings.ReplaceAll(strings.TrimSpace(semicolons), "\n", "\nso;")},
		"offsets": {"ner", "", "offsets: utf16", "a.jsonl", in(3), in(5)},
	} {
		for split, also := range map[string]string{"dev": "", "test": "dev: FILE, ", "train": "dev: FILE, "} {
			t.Run(name+" of "+split, func(t *testing.T) {
				read := func(entry string) error {
					keys := test.all + also
					if split != "train" {
						keys += "train: FILE, "
					}
					keys = strings.ReplaceAll(keys, "FILE", test.file) + entry
					sample.Tasks(t, "  - {name: a, type: "+test.kind+", data: {"+keys+"}}\n", map[string]string{
						test.file: test.others, "other" + test.file: test.other})
					e, err := config.Read(t.Context(), "exp.yaml", nil)
					if err != nil {
						return err
					}
					data, err := Load(t.Context(), e, Options{}, config.Train, config.Dev, config.Test)
					if err == nil {
						data.Close()
					}
					return err
				}
				advice := split + ": {path: FILE, " + test.key + "}"
				err := read(split + ": other" + test.file)
				want := "; where only this file is written so, data: {" + advice + "} reads it"
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Fatalf("%v, want %s", err, advice)
				}
				if err := read(strings.ReplaceAll(advice, "FILE", "other"+test.file)); err != nil {
					t.Errorf("after %s: %v", advice, err)
				}
			})
		}
	}
}

func (r trial) contents(file string) map[string]string {
	if r.files != nil {
		return r.files
	}
	return map[string]string{file: r.content}
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
	sample.Tasks(t, "  - {name: a, "+task+", data: {path: "+file+data+"}}\n", r.contents(file))
	e, err := config.Read(t.Context(), "exp.yaml", nil)
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
			if fixed.files == nil && fixed.content == test.wrong.content {
				fixed.files = test.wrong.files
			}
			after, err := fixed.messages(t)
			if err != nil || strings.Contains(after, test.text) {
				t.Errorf("after %q:\n%s", test.text, after)
			}
		})
	}
}
