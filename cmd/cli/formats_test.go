package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/predict"
)

// trainTable trains the small experiment on a table of mails with options of its own.
func trainTable(t *testing.T, options, text string) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", text)
	writeFile(t, ".", "experiment.yaml", strings.Replace(smallExperiment,
		"text: body, split: {dev: 0.2}, label: team", "split: {dev: 0.2}, "+options, 1))
	if status, _, log := call("", "train", "--set", "training.num_epochs=1"); status != 0 {
		t.Fatal(log)
	}
}

func TestTablesHaveTheOptionsOfTheRunsData(t *testing.T) {
	_, records, _ := strings.Cut(mails(), "\n") // body,team
	for _, test := range []struct{ options, data, in, flags, want string }{
		{`header: false, text: "1", label: "2"`, records, "a;b,\n\"c,d\",billing\n", "", "a;b,L\n\"c,d\",L\n"},
		{`header: false, text: "1", label: "2"`, records, "a\n", "", "a,L\n"},
		{`header: false, columns: [body, team], text: body, label: team, delimiter: ";"`,
			strings.ReplaceAll(records, ",", ";"), "\"a;b\";\nc,d;x\n", "", "\"a;b\";L\nc,d;L\n"},
		{`header: false, columns: [body, _, team], text: body, label: team`,
			strings.ReplaceAll(records, ",", ",x,"), "a,7,\n", "", "a,,L\n"},
		{`columns: [body, _, note, team], text: body, label: team`,
			"a,b,c,d\n" + strings.ReplaceAll(records, ",", ",x,y,"),
			"a,b,c,d\na,7,8,\n", "--keep none", "body,_,note,team\na,,,L\n"},
		{`header: false, columns: [body, _, team], delimiter: ";;", quote: none, text: body, label: team`,
			strings.ReplaceAll(records, ",", ";;x;;"), "a;b;;c;;\n", "", "a;b;;;;L\n"},
		{`header: false, columns: [team, _, body], delimiter: " ", text: body, label: team`,
			"support x " + strings.ReplaceAll(strings.ReplaceAll(strings.TrimSuffix(records, "\n"), ",billing", ""),
				"\n", "\nbilling y ") + "\n",
			"x y the card\n", "", `error: --format csv: line 1: cell "" cannot be written without quotes`},
		{`text: body, label: team, delimiter: "||", quote: none`, strings.ReplaceAll(mails(), ",", "||"),
			"body||team\n\"a\",b||\n", "", "body||team\n\"a\",b||L\n"},
	} {
		trainTable(t, test.options, test.data)
		writeFile(t, ".", "new.csv", test.in)
		status, _, log := call("", append([]string{"predict", "runs/mails", "new.csv", "--format", "csv", "--out",
			"out.csv"}, strings.Fields(test.flags)...)...)
		if message, bad := strings.CutPrefix(test.want, "error: "); bad {
			if status != exitMistake || !strings.Contains(log, message) {
				t.Errorf("%s: %d, %s, want %s", test.options, status, log, message)
			}
			continue
		}
		out := readFile(t, "out.csv")
		for _, label := range []string{"billing", "support"} { // whatever it has learned
			out = strings.ReplaceAll(out, label, "L")
		}
		if status != 0 || out != test.want {
			t.Errorf("%s: %d, %q %s, want %q", test.options, status, out, log, test.want)
		}
		if status, _, log := call("", "eval", "runs/mails", "--data", "team=out.csv"); status != 0 {
			t.Errorf("%s: the output is not read again: %s", test.options, log)
		}
	}
}

func TestTablesOfJSONLinesKeepTheTextsAndWarnOfOtherFields(t *testing.T) {
	trainMails(t)
	const left = "warning: --format csv: fields that the first line does not have are left out: "
	for _, test := range []struct{ in, flags, want, warning string }{
		{`{"text": "a", "id": 1}` + "\n" + `{"body": "b", "note": 2}` + "\nc\n" +
			`{"words": ["d", "e"], "n": 3}` + "\n",
			"",
			"id,text,team\n1,a,L\n,b,L\n,c,L\n,d e,L\n",
			left + `"n", "note", "words"; jsonl has them` + "\n"},
		{"c\n" + `{"text": "a", "id": 1}` + "\n", "", "body,team\nc,L\na,L\n",
			left + `"id"; jsonl has them` + "\n"},
		{"c\n" + `{"text": "a", "id": 1}` + "\n", "--keep none", "body,team\nc,L\na,L\n", ""},
		{`{"words": ["a"]}` + "\nb c\n", "", "words,team\n\"[\"\"a\"\"]\",L\n,L\n",
			left + `"body"; jsonl has them` + "\n"},
	} {
		status, out, log := call(test.in, append([]string{"predict", "runs/mails", "--format", "csv"},
			strings.Fields(test.flags)...)...)
		for _, label := range []string{"billing", "support"} { // whatever it has learned
			out = strings.ReplaceAll(out, label, "L")
		}
		if status != 0 || out != test.want || log != test.warning {
			t.Errorf("%s: %d, %q, want %q, log %q, want %q", test.in, status, out, test.want, log, test.warning)
		}
	}
}

func TestParquetHasTheRowsOfATable(t *testing.T) {
	trainMails(t)
	t.Setenv("TMPDIR", t.TempDir())
	const texts = `{"body": "the card", "n": 1, "tags": ["x", "y"]}` + "\n" + `{"n": "bad"}` + "\n\"a\" line\n"
	status, csv, _ := call(texts, "predict", "runs/mails", "--format", "csv")
	if status != exitMistake {
		t.Fatal(status, csv)
	}
	writeFile(t, ".", "out.csv", csv)
	status, _, log := call(texts, "predict", "runs/mails", "--format", "parquet", "--out", "out.parquet")
	if status != exitMistake || !strings.Contains(log, "line 2") {
		t.Errorf("%d, %s", status, log)
	}
	want, err := corpus.Open(t.Context(), "out.csv", corpus.Format{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := corpus.Open(t.Context(), "out.parquet", corpus.Format{})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 3 || len(want) != 3 {
		t.Fatalf("%d rows, of csv %d, want 3", len(got), len(want))
	}
	for i := range want {
		for name, value := range want[i].Fields {
			text, isText := got[i].Fields[name].(string)
			if cell := got[i].Fields[name]; !isText && cell != nil {
				written, err := json.Marshal(cell)
				if err != nil {
					t.Fatal(err)
				}
				text = string(written)
			}
			if text != value && (text != "" || value != nil) {
				t.Errorf("row %d: %s is %q, in csv %q", i+1, name, text, value)
			}
		}
	}

	// nothing but the columns
	status, _, log = call("", "predict", "runs/mails", "--format", "parquet", "--out", "none.parquet")
	if status != 0 || len(readFile(t, "none.parquet")) == 0 {
		t.Errorf("without texts: %d, %s", status, log)
	}
	if left, _ := filepath.Glob(filepath.Join(os.TempDir(), "jenga-*.jsonl")); len(left) > 0 {
		t.Errorf("temporary files are left: %q", left)
	}
}

// A parquet file has an order of its columns, which a table of its predictions keeps.
func TestTablesKeepTheOrderOfParquetColumns(t *testing.T) {
	trainMails(t)
	writeFile(t, ".", "new.csv", "note,body,id\n,the card,1\nx,the bill,2\n")
	mustCall(t, "", "predict", "runs/mails", "new.csv", "--out", "new.parquet")
	want := mustCall(t, "", "predict", "runs/mails", "new.csv", "--format", "csv")
	if header, _, _ := strings.Cut(want, "\n"); header != "note,body,id,team" {
		t.Fatal(want)
	}
	if got := mustCall(t, "", "predict", "runs/mails", "new.parquet", "--format", "csv"); got != want {
		t.Errorf("parquet: %q, csv: %q", got, want)
	}
	mustCall(t, "", "predict", "runs/mails", "new.parquet", "--out", "again.parquet")
	got, err := corpus.Columns("again.parquet", corpus.Format{})
	if order := []string{"note", "body", "id", "team"}; err != nil || !slices.Equal(got, order) {
		t.Errorf("columns of parquet: %q, %v, want %q", got, err, order)
	}
	for name, want := range map[string]string{
		"bad.parquet":    "bad.parquet: the file is not a whole parquet file",
		"bad.parquet.gz": "bad.parquet.gz: a parquet file is compressed itself",
	} {
		writeFile(t, ".", name, "PAR1")
		status, _, log := call("", "predict", "runs/mails", name, "--format", "csv")
		if status != exitMistake || !strings.Contains(log, want) {
			t.Errorf("a damaged file: %d, %s", status, log)
		}
	}
}

// goldInPlace are data files whose targets are in another column than that of their kind of outputs: a line with a gold
// target, and the header and the cells beside the prediction of that line as csv.
var goldInPlace = []struct {
	task, data, file, lines, in, header, gold string
	warns                                     bool // the column may have something else
}{
	{"regression", "text: body", "mails.csv", numbered("body,label"), "body,label\nthe card,77\n", "body,label", "77",
		true},
	{"regression", "text: body, label: grade", "mails.csv", numbered("body,grade"), "body,grade\nthe card,77\n",
		"body,grade", "77", false},
	{"regression", "text: body", "mails.csv", numbered("body,value"), "body,label,value\nthe card,id,77\n",
		"body,label,value", "77", false},
	{"multi_label", "text: body", "mails.csv", strings.Replace(mails(), "team", "label", 1),
		"body,label\nthe card,sales\n", "body,label", "sales", true},
	{"classification", "text: body", "mails.csv", strings.Replace(mails(), "team", "label.team", 1),
		"body,label.team\nthe card,sales\n", "body,label.team", "sales", false},
	{"ner", "text: body", "mails.jsonl", marked("entities"),
		`{"body": "the card", "entities": [{"label": "sale", "start": 4, "end": 8}]}` + "\n",
		"body,entities,words,tags", "sale", true},
	{"ner", "text: body, entities: found", "mails.jsonl", marked("found"),
		`{"body": "the card", "found": [{"label": "sale", "start": 4, "end": 8}]}` + "\n",
		"body,found,words,tags", "sale", false},
}

// numbered returns mails with a header and numbers as targets.
func numbered(header string) string {
	text := strings.Replace(mails(), "body,team", header, 1)
	return strings.ReplaceAll(strings.ReplaceAll(text, ",billing", ",1"), ",support", ",2")
}

// marked returns mails as JSON lines whose second word is an entity, in a field.
func marked(field string) string {
	var text strings.Builder
	for line := range strings.Lines(mails()) {
		body, _, _ := strings.Cut(line, ",")
		if words := strings.Fields(body); len(words) > 1 {
			fmt.Fprintf(&text, `{"body": %q, %q: [{"label": "thing", "start": 4, "end": %d}]}`+"\n", body, field,
				4+len(words[1]))
		}
	}
	return text.String()
}

func TestPredictionsTakeThePlaceOfGoldTargets(t *testing.T) {
	for _, test := range goldInPlace {
		t.Chdir(t.TempDir())
		writeFile(t, ".", test.file, test.lines)
		writeFile(t, ".", "experiment.yaml", strings.NewReplacer("type: classification", "type: "+test.task,
			"mails.csv, text: body", test.file+", "+test.data, ", label: team", "").Replace(smallExperiment))
		if status, _, log := call("", "train", "--set", "training.num_epochs=1"); status != 0 {
			t.Fatal(test.task, log)
		}
		in := "new" + filepath.Ext(test.file)
		writeFile(t, ".", in, test.in)
		status, out, log := call("", "predict", "runs/mails", in, "--format", "csv")
		header, row, _ := strings.Cut(out, "\n")
		if warns := strings.HasPrefix(log, "warning: --format csv: task "); warns != test.warns || !warns && log != "" {
			t.Errorf("%s, %s: %q, want a warning: %v", test.task, test.in, log, test.warns)
		}
		if status != 0 || header != test.header || strings.Contains(row, test.gold) ||
			strings.HasSuffix(row, ",\n") {
			t.Errorf("%s, %s: %d, %s%s; want columns %s, and a prediction in place of %s", test.task, test.in, status,
				out, log, test.header, test.gold)
		}
		writeFile(t, ".", "out.csv", out)
		if status, _, log := call("", "eval", "runs/mails", "--data", "team=out.csv"); status != 0 {
			t.Errorf("%s, %s: the output is not read again: %s", test.task, test.in, log)
		}
	}
}

func TestEachHeadHasTheColumnThatItsTargetsAreReadFrom(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", strings.ReplaceAll(strings.ReplaceAll(strings.Replace(mails(), "body,team",
		"body,label.first,label.second", 1), ",billing", ",billing,bill"), ",support", ",support,help"))
	writeFile(t, ".", "experiment.yaml", strings.Replace(smallExperiment, ", label: team}",
		"}\n    heads: [{name: first}, {name: second}]", 1))
	mustCall(t, "", "train", "--set", "training.num_epochs=1")
	writeFile(t, ".", "new.csv", "body,label.first,label.second\nthe card,sales,sell\n")
	out := mustCall(t, "", "predict", "runs/mails", "new.csv", "--format", "csv")
	if header, row, _ := strings.Cut(out, "\n"); header != "body,label.first,label.second" ||
		strings.Contains(row, "sales") || strings.Contains(row, "sell") {
		t.Errorf("%s, want predictions in the columns of both heads", out)
	}
	// without columns of their own
	writeFile(t, ".", "new.csv", "body,label\nthe card,sales\n")
	out = mustCall(t, "", "predict", "runs/mails", "new.csv", "--format", "csv")
	if header, row, _ := strings.Cut(out, "\n"); header != "body,label,label.first,label.second" ||
		!strings.HasPrefix(row, "the card,,b") {
		t.Errorf("%s, want predictions in columns of both heads", out)
	}
	writeFile(t, ".", "out.csv", out)
	mustCall(t, "", "eval", "runs/mails", "--data", "team=out.csv")
}

// taggedWords are sentences in several scripts, a word and its tags a line.
const taggedWords = `-DOCSTART- X O

Zoë X B-a
👩‍👩‍👧 Y I-a
école X O

أغنية X B-b
لفيروز Y I-b

मुंबई X B-a
में Y O
我想听 X O
`

// trainTags trains a model on a file of tagged words in a folder of its own. Each word is a token; it reads two words
// of a text.
func trainTags(t *testing.T, task, name, text string, keys ...string) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, ".", name, text)
	writeFile(t, ".", "experiment.yaml", `
project_name: tags
model:
  encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}
tokenizer: {type: words, max_length: 4, train: {vocab_size: 200}}
tasks:
  - {name: t, type: `+task+`, data: {train: `+strings.Join(append([]string{name}, keys...), ", ")+`}}
training: {learning_rate: 1.0e-2, batch_size: 8, num_epochs: 2}
`)
	if status, _, log := call("", "train"); status != 0 {
		t.Fatal(log)
	}
}

// tagsIn returns the tags in the column of a file's sentences.
func tagsIn(t *testing.T, name, column string) [][]string {
	t.Helper()
	records, err := corpus.Open(t.Context(), name, corpus.Format{})
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for _, r := range records {
		tags, _, err := r.Strings(column)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, tags)
	}
	return all
}

// predictedTags returns the tags that are predicted for a file, null as "missing".
func predictedTags(t *testing.T, name, missing string) [][]string {
	t.Helper()
	status, out, log := call("", "predict", "runs/tags", name)
	if status != 0 {
		t.Fatal(log)
	}
	var all [][]string
	for _, line := range linesOf(t, out) {
		var tags []string
		for _, tag := range line["tasks"].(map[string]any)["t"].(map[string]any)["t"].(map[string]any)["tags"].([]any) {
			name, ok := tag.(string)
			if !ok {
				name = missing
			}
			tags = append(tags, name)
		}
		all = append(all, tags)
	}
	return all
}

func TestPredictionsAsConllAreDataWithTheSameTags(t *testing.T) {
	trainTags(t, "ner", "a.conll", taggedWords)
	writeFile(t, ".", "tab.conll", "\ufeff"+strings.ReplaceAll(taggedWords, " ", "\t")+"\n\n")
	for _, in := range []string{"a.conll", "tab.conll"} {
		status, _, log := call("", "predict", "runs/tags", in, "--format", "conll", "--out", "out.conll")
		if status != 0 {
			t.Fatal(log)
		}
		if got, want := tagsIn(t, "out.conll", "tags"), predictedTags(t, in, "O"); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: the file has %q, predicted are %q", in, got, want)
		}
		// all but the last column stays
		got, want := readFile(t, "out.conll"), strings.TrimPrefix(readFile(t, in), "\ufeff")
		if got, want := firstColumns(got), firstColumns(want); got != want {
			t.Errorf("%s: %s, want the columns of %s", in, got, want)
		}
	}

	// texts without columns
	status, out, log := call("Zoë مرحبا!\n", "predict", "runs/tags", "--format", "conll", "--keep", "none")
	if lines := strings.Split(out, "\n"); status != 0 || len(lines) != 5 || !strings.HasPrefix(lines[0], "Zoë\t") ||
		!strings.HasPrefix(lines[1], "مرحبا\t") || !strings.HasPrefix(lines[2], "!\t") || lines[3] != "" {
		t.Errorf("plain text: %d, %q, %s", status, out, log)
	}
	status, out, log = call(`{"words": ["a\tb"]}`, "predict", "runs/tags", "--format", "conll")
	if status != exitMistake || out != "" || !strings.Contains(log, "has what separates the columns") {
		t.Errorf("a word with a tab: %d, %q, %s", status, out, log)
	}
}

// firstColumns returns the lines of a text without their last column and without empty lines at the end.
func firstColumns(text string) string {
	var lines []string
	for line := range strings.Lines(strings.TrimRight(text, "\n")) {
		if at := strings.LastIndexAny(line, " \t"); at >= 0 {
			line = line[:at]
		}
		lines = append(lines, strings.TrimRight(line, "\n"))
	}
	return strings.Join(lines, "\n")
}

func TestPredictionsOfARunWithCommentsAreItsData(t *testing.T) {
	trainTags(t, "ner", "a.conll", "# id 1\n"+taggedWords+"\n\n# id 2\n"+taggedWords, `comments: "#"`)
	in := `{"words": ["#late", "Zoë", "#"]}` + "\n" + `{"words": ["#"]}` + "\n"
	status, _, log := call(in, "predict", "runs/tags", "--format", "conll", "--out", "out.conll")
	if status != 0 {
		t.Fatal(log)
	}
	for _, file := range []string{"out.conll", "again.conll"} { // which is made of it
		got := predictedTags(t, file, "O")
		if len(got) != 2 || len(got[0]) != 3 || len(got[1]) != 1 {
			t.Errorf("%s has tags %q:\n%s", file, got, readFile(t, file))
		}
		if file == "out.conll" {
			status, _, log := call("", "predict", "runs/tags", file, "--format", "conll", "--out", "again.conll")
			if status != 0 {
				t.Fatal(log)
			}
		}
	}
	if status, out, log := call("", "eval", "runs/tags", "--data", "t=out.conll"); status != 0 {
		t.Errorf("eval: %s%s", out, log)
	}
}

func TestPredictionsAsConlluKeepTheOtherLines(t *testing.T) {
	const text = "# sent_id = 1\n1-2\tزالدار\t_\t_\t_\t_\t_\t_\t_\t_\n1\tز\tz\tDET\tA\t_\t2\tdet\t_\t_\n" +
		"2\tالدار\td\tNOUN\tB\t_\t0\troot\t_\tSpaceAfter=No\n\n# sent_id = 2\n" +
		"1\tend\tend\tVERB\tC\t_\t0\troot\t_\t_\n\n"
	trainTags(t, "tagging", "a.conllu", text)
	status, out, log := call("", "predict", "runs/tags", "a.conllu", "--format", "conllu")
	predicted := predictedTags(t, "a.conllu", "_")
	want := text
	for i, tag := range []string{"DET\tA", "NOUN\tB", "VERB\tC"} {
		of := append(append([]string{}, predicted[0]...), predicted[1]...)[i]
		want = strings.Replace(want, "\t"+tag, "\t"+of+tag[len(tag)-2:], 1)
	}
	if status != 0 || out != want {
		t.Errorf("%d, %s\n%s, want\n%s", status, log, out, want)
	}

	status, out, log = call("end\n", "predict", "runs/tags", "--format", "conllu")
	if cells := strings.Split(out, "\t"); status != 0 || len(cells) != 10 || cells[1] != "end" || cells[9] != "_\n\n" {
		t.Errorf("a text: %d, %q %s", status, out, log)
	}
}

func TestConllNeedsTagsOfWords(t *testing.T) {
	trainMails(t)
	status, out, log := call("the card\n", "predict", "runs/mails", "--format", "conll")
	const want = "--format conll: no task predicts a tag for each word; want jsonl, csv, tsv or parquet"
	if status != exitMistake || out != "" || !strings.Contains(log, want) {
		t.Errorf("%d, %s%s, want %s", status, out, log, want)
	}
}

func TestConllOfAnotherEncodingIsAnError(t *testing.T) {
	trainTags(t, "ner", "a.conll", "Zoe B-a\nhere O\n\nEcole B-b\nthere O\n")
	experiment := readFile(t, "runs/tags/experiment.yaml")
	for _, test := range []struct {
		encoding string
		refused  bool
	}{
		{"cp1252", true}, {"Windows-1252", true}, {"latin1", true}, {"ISO_8859-1:1987", true}, {"utf-16", true},
		{"utf-16be", true}, {"utf-8", false}, {"csUTF8", false}, {"UTF8", false},
	} {
		writeFile(t, ".", "runs/tags/experiment.yaml",
			strings.Replace(experiment, "split_words: ", "encoding: "+test.encoding+"\n      split_words: ", 1))
		const want = "--format conll: it copies the lines of the input, whose encoding is "
		status, out, log := call("", "predict", "runs/tags", "a.conll", "--format", "conll")
		if refused := status == exitMistake && out == "" && strings.Contains(log, want+test.encoding); refused !=
			test.refused || !refused && status != 0 {
			t.Errorf("%s: %d, %s%s, refused %v, want %v", test.encoding, status, out, log, refused, test.refused)
		}
	}
}

func TestConlluKeepsTheSentencesThatCannotBeRead(t *testing.T) {
	t.Chdir(t.TempDir())
	const word = "\t_\tNOUN\t_\t_\t0\troot\t_\t_\n"
	writeFile(t, ".", "a.conllu", "# text = a b\n1\ta"+word+"2\tb"+word+"\n1\tc"+word+"\n")
	targets := []inputs.TargetColumn{{Task: "t", Head: "t", Column: "tags", PerWord: true}}
	var out, log strings.Builder
	s, done, err := newSentences("conllu", textInput{file: "a.conllu"}, targets, &log)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	tags := map[string]map[string]any{"t": {"t": []string{"VERB"}}}
	unread := inputs.Line{Number: 2, Err: errors.New("line 2: no text")}
	if err := s.write(&out, unread, predict.Prediction{}); err != nil {
		t.Fatal(err)
	}
	read := inputs.Line{Number: 5, Example: &corpus.Example{}}
	if err := s.write(&out, read, predict.Prediction{Data: tags}); err != nil {
		t.Fatal(err)
	}
	none, verb := strings.Replace(word, "NOUN", "_", 1), strings.Replace(word, "NOUN", "VERB", 1)
	want := "# text = a b\n1\ta" + none + "2\tb" + none + "\n1\tc" + verb + "\n"
	if out.String() != want || log.String() != "line 2: no text\n" {
		t.Errorf("%s\n%s, want\n%s", log.String(), out.String(), want)
	}
}
