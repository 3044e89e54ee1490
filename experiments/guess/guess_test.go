package guess

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf16"

	"github.com/jenga-nlp/jenga/corpus"
	_ "github.com/jenga-nlp/jenga/encoders/transformer"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
)

// write writes files to a new folder and makes it the working directory.
func write(t testing.TB, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, ".gz") {
			var b bytes.Buffer
			z := gzip.NewWriter(&b)
			z.Write([]byte(text))
			z.Close()
			text = b.String()
		}
		if err := os.WriteFile(name, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// rows makes n rows from a format with the row's number and a label of three.
func rows(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format+"\n", i, []string{"red", "green", "blue"}[i%3])
	}
	return b.String()
}

// tasksOf formats the tasks of the first data set: TYPE FIELD=COLUMN ….
func tasksOf(s *Set) string {
	var all []string
	for _, task := range s.Tasks {
		line := task.Type
		if task.column != nil {
			line += " " + task.Field + "=" + task.column.name
		}
		all = append(all, line)
	}
	return strings.Join(all, "; ")
}

// dataSets are files, and the data sets that they are.
var dataSets = []struct {
	files, args []string
	want        string // NAME: TRAIN DEV TEST of each data set
}{
	{[]string{"d/train.csv", "d/val.csv", "d/test.csv", "d/README.md"}, []string{"d"},
		"d: d/train.csv d/val.csv d/test.csv"},
	{[]string{"d/train.csv", "d/dev.csv", "d/train.py", "d/train.yaml"}, []string{"d"},
		"d: d/train.csv d/dev.csv "},
	{[]string{"d/mails.csv", "d/train.sh"}, []string{"d"}, "mails: d/mails.csv  "},
	{[]string{"a_train.csv", "a_dev.csv", "b-train.csv"}, []string{"a_train.csv", "a_dev.csv", "b-train.csv"},
		"a: a_train.csv a_dev.csv ; b: b-train.csv  "},
	{[]string{"mails.csv"}, []string{"mails.csv"}, "mails: mails.csv  "},
	{[]string{"test.csv"}, []string{"./test.csv"}, "data: test.csv  "},
	{[]string{"x17train.csv", "y.dev.csv"}, []string{"."}, "x17: x17train.csv y.dev.csv "},
	{[]string{"train/data.csv", "valid/data.csv"}, []string{"train/data.csv", "valid/data.csv"},
		"data: train/data.csv valid/data.csv "},
	{[]string{"latest.csv", "contest.csv"}, []string{"latest.csv", "contest.csv"},
		"latest: latest.csv  ; contest: contest.csv  "},
	{[]string{"d/part-00000.csv", "d/part-00001.csv"}, []string{"d"}, "d: d/part-*.csv  "},
	{[]string{"d/part-0.csv", "d/part-1.csv", "d/other.csv"}, []string{"d"},
		"other: d/other.csv  ; d: d/part-*.csv  "},
	{[]string{"d/part-0.csv", "d/part-1.csv", "d/part-2.csv"}, []string{"d/part-0.csv", "d/part-1.csv"},
		"part_0: d/part-0.csv  ; part_1: d/part-1.csv  "}, // the pattern would read the third
	{[]string{"d/train-00000-of-00002.csv", "d/train-00001-of-00002.csv", "d/test-00000-of-00001.csv"},
		[]string{"d"}, "d: d/train-*-of-00002.csv  d/test-00000-of-00001.csv"},
	{[]string{"d/train-00000-of-00002-1234567890abcdef.csv", "d/train-00001-of-00002-fedcba0987654321.csv"},
		[]string{"d"}, "d: d/train-*-of-00002-*.csv  "},
	{[]string{"d/part-00000-12345678-1234-1234-1234-123456789abc-c000.csv.gz",
		"d/part-00001-12345678-1234-1234-1234-123456789abc-c000.csv.gz"}, []string{"d"},
		"d: d/part-*-12345678-1234-1234-1234-123456789abc-c000.csv.gz  "},
	{[]string{"train/part-0.csv", "train/part-1.csv", "test/part-0.csv", "test/part-1.csv"},
		[]string{"train", "test"}, "data: train/part-*.csv  test/part-*.csv"},
	{[]string{"d/part1.csv", "d/part2.csv"}, []string{"d"}, "part1: d/part1.csv  ; part2: d/part2.csv  "},
	{[]string{"d/part1_train.csv", "d/part1_dev.csv", "d/part2_train.csv", "d/part2_dev.csv"}, []string{"d"},
		"part1: d/part1_train.csv d/part1_dev.csv ; part2: d/part2_train.csv d/part2_dev.csv "},
	{[]string{"d/depart1.csv", "d/depart2.csv"}, []string{"d"},
		"depart1: d/depart1.csv  ; depart2: d/depart2.csv  "},
}

func TestFilesOfOneDataSet(t *testing.T) {
	content := "text,label\n" + rows(30, text2+",%[2]s")
	names := func(files ...string) map[string]string {
		all := map[string]string{}
		for _, f := range files {
			all[f] = content
		}
		return all
	}
	for _, test := range dataSets {
		write(t, names(test.files...))
		e, err := Files(t.Context(), test.args)
		if err != nil {
			t.Errorf("%v: %v", test.args, err)
			continue
		}
		var got []string
		for _, s := range e.Sets {
			if test.args[0] == "./test.csv" || test.args[0] == "train" {
				s.Name = "data" // that of the folder
			}
			got = append(got, fmt.Sprintf("%s: %s %s %s", s.Name, s.named(s.Train), s.named(s.Dev), s.named(s.Test)))
		}
		if line := strings.Join(got, "; "); line != test.want {
			t.Errorf("%v: %q, want %q", test.args, line, test.want)
		}
	}
}

func TestNamesOfTasksDiffer(t *testing.T) {
	content := "text,label,Label,straße,STRASSE\n" + rows(30, text2+",%[2]s,%[2]s,%[2]s,%[2]s")
	write(t, map[string]string{"a.csv": content, "b.csv": content})
	e, err := Files(t.Context(), []string{"a.csv", "b.csv"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range e.Sets {
		for _, task := range s.Tasks {
			if slices.Contains(names, corpus.FoldName(task.Name)) {
				t.Errorf("two tasks are named %s", task.Name)
			}
			names = append(names, corpus.FoldName(task.Name))
		}
	}
	if len(names) != 8 {
		t.Errorf("tasks %v, want 8", names)
	}
}

// The other splits are named whatever they hold: jenga check says what does not fit, at its place.
func TestASplitThatDiffersIsNamed(t *testing.T) {
	write(t, map[string]string{
		"train.csv": "text,team\n" + rows(30, text2+",%[2]s"),
		"dev.csv":   "text;team\n" + rows(30, text2+";%[2]s"),
	})
	e, err := Files(t.Context(), []string{"train.csv", "dev.csv"})
	if err != nil {
		t.Fatal(err)
	}
	text, err := e.YAML(".", nil)
	if err == nil {
		err = os.WriteFile("experiment.yaml", text, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
	read, err := config.Read(t.Context(), "experiment.yaml", nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = dataset.Load(t.Context(), read, dataset.Options{}, config.Train, config.Dev)
	if err == nil || !strings.Contains(err.Error(), "dev.csv") || !strings.Contains(err.Error(), "delimiter") {
		t.Errorf("Load = %v, want an error of dev.csv and its delimiter", err)
	}
}

func TestCommentsOfWordsAreGuessed(t *testing.T) {
	write(t, map[string]string{
		"tabs.conll":   rows(30, "# id %d\nitem\tO\none\tB-%s\n"),
		"blanks.conll": rows(30, "# id %d\titem\nitem _ _ O\none _ _ B-%s\n"),
		"words.conll":  rows(30, "# _ %d\nitem _ O\none _ B-%s\n"), // a doubt, not an error
		"none.conll":   rows(30, "#tag%d O\nitem O\n# B-%s\n"),
		"some.conll":   rows(30, "# id %d\n#tag O\none B-%s\n"), // comments and words begin with #
		"far.conll":    rows(1100, "%%tag%d O\none B-%s\n") + "# one comment\n# other comment\n#word O\n",
		"doubt.conll":  rows(30, "# x%d y\n#tag _ O\none _ B-%s\n"),
		"slash.conll":  rows(30, "// id %d\nitem O\none B-%s\n"),
	})
	for name, want := range map[string]string{"tabs": "#", "blanks": "#", "words": "#", "none": "", "some": "# id ",
		"far": "# o", "doubt": "# x", "slash": "/"} {
		e, err := Files(t.Context(), []string{name + ".conll"})
		if err != nil {
			t.Fatal(name, err)
		}
		if got := e.Sets[0].Format.Comments; got != want {
			t.Errorf("%s: comments %q, want %q", name, got, want)
		}
		text, err := e.YAML(".", nil)
		if err != nil || strings.Contains(string(text), "\n      comments: ") != (want != "") {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

// A mixture of two encodings is no file of either.
func TestNoEncodingIsGuessedForAMixtureOfTwo(t *testing.T) {
	write(t, map[string]string{
		"a.csv": "text,label\n" + rows(9, text2+" caf\xe9,%[2]s") + rows(6, text2+" café,%[2]s"),
	})
	_, err := Files(t.Context(), []string{"a.csv"})
	if err == nil || !strings.Contains(err.Error(), "9 lines of the file are not UTF-8, and 6 lines") {
		t.Errorf("error %v, want one with the numbers of lines", err)
	}
}

// Words that are labels of published data stay labels, of which jenga check warns.
func TestMarksOfAMissingLabel(t *testing.T) {
	for mark, want := range map[string]string{"N/A": "[N/A]", "-": "[-]", "unlabeled": "[unlabeled]", "undefined": "[]",
		"nil": "[]", "TBD": "[]", "tbd": "[]"} {
		write(t, map[string]string{"a.csv": "text,label\n" + rows(30, text2+",%[2]s") + rows(9, "so "+text2+","+mark)})
		e, err := Files(t.Context(), []string{"a.csv"})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(e.Sets[0].column("label").marks); got != want {
			t.Errorf("label %s: missing %s, want %s", mark, got, want)
		}
	}
}

func TestAFirstLineThatEndsBelowTheBeginning(t *testing.T) {
	const record = `{"text": "this is text %d", "label": "%s"}`
	for i, letter := range []string{"ж", "\u0301", "😀", "x"} {
		for before := range len(letter) {
			text := strings.Repeat("x", before) + strings.Repeat(letter, maxBytes/len(letter))
			name := fmt.Sprintf("%d_%d.jsonl", i, before)
			write(t, map[string]string{name: `{"text": "` + text + `", "label": "a"}` + "\n" + rows(30, record)})
			e, err := Files(t.Context(), []string{name})
			if err != nil {
				t.Fatalf("%d bytes before %s: %v", before, letter, err)
			}
			if encoding := e.Sets[0].Format.Encoding; encoding != "" {
				t.Fatalf("%d bytes before %s: encoding %s, want UTF-8", before, letter, encoding)
			}
		}
	}
}

func TestOnlyTheBeginningIsRead(t *testing.T) {
	long := "text,label\n" + rows(200_000, "\"a téxt, \n of two lines %d\",%s") // more than maxBytes
	const record = `{"text": "this is text %d", "label": "%s"}`
	write(t, map[string]string{
		"a.csv": long, "b.jsonl": rows(20_000, record), "a.json": "[" + rows(100_000, record+",") + "{}]",
	})
	// one line
	line := "[" + strings.ReplaceAll(rows(100_000, record+","), "\n", " ") + "{}]"
	if err := os.WriteFile("line.json", []byte(line), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.csv", "a.json", "b.jsonl", "line.json"} {
		e, err := Files(t.Context(), []string{name})
		if err != nil {
			t.Fatal(err)
		}
		if s := e.Sets[0]; len(s.records) != maxRecords || tasksOf(s) != "classification label=label" {
			t.Errorf("%s: %d records, %s", name, len(s.records), tasksOf(s))
		}
	}
}

func TestAParquetFile(t *testing.T) {
	data, err := os.ReadFile("../../corpus/testdata/parquet/zstd.parquet")
	if err != nil {
		t.Fatal(err)
	}
	write(t, map[string]string{"a.parquet": string(data)})
	e, err := Files(t.Context(), []string{"a.parquet"})
	if err != nil {
		t.Fatal(err)
	}
	if s := e.Sets[0]; len(s.records) != 4 || tasksOf(s) == "" {
		t.Errorf("%d records, %s", len(s.records), tasksOf(s))
	}
}

func TestAColumnIsMissingInRecordsWithoutIt(t *testing.T) {
	const records, fields = 20, 5
	all := make([]corpus.Record, records)
	for i := range all {
		all[i].Fields = map[string]any{"text": "this is one"}
		for j := range fields {
			all[i].Fields[fmt.Sprintf("k%d_%d", i, j)] = "a"
		}
	}
	columns := columnsOf(all, nil)
	if n := len(columns); n != records*fields+1 {
		t.Fatalf("%d columns, want %d", n, records*fields+1)
	}
	if first := columns[0]; first.n != 1 || first.missing != records-1 {
		t.Errorf("column %s has %d values and misses %d, want 1 and %d", first.name, first.n, first.missing, records-1)
	}
}

func TestErrors(t *testing.T) {
	write(t, map[string]string{
		"empty.csv": "", "binary.csv": "a\x00b", "broken.csv": "text,label\nso it is,red\nso it was,red,blue\n",
		"ids.csv": "a,b\n1,2\n3,4\n", "head.csv": "id,hours,priority\n", "docs/readme.md": "x", "dev.csv": "a,b\n",
		"ru.csv":   "text,label\n" + rows(9, "\xef\xf0\xe8\xe2\xe5\xf2 number %d,%s"),
		"exp.yaml": "project_name: a\n", "b.YML": "a line of it\n", "data/c.yml": "tasks: []\n", "d.yaml": "",
		"ru2.csv":   "text,label\n" + rows(9, "\xce\xed \xe1\xfb\xeb %d,%s"),
		"sjis.csv":  "text,label\n" + rows(9, "\x82\xb1\x82\xea\x81\x41\x8f\x91 number %d,%s"),
		"gbk.txt":   rows(9, "\x81\x40\x90\x45\xc4\xe3 so it is %d\t%s"),
		"jis.csv":   "text,label\n" + rows(9, "\x83\x65\x83\x58\x83\x67\x81\x42 %d,%s"),
		"far.csv":   "sentence_id,word,tag\n" + rows(30, "%d,Ada,B-%s") + rows(30, "%[1]d,saw,O") + rows(30, "%d,%s,O"),
		"again.csv": "sent,word,tag\n" + strings.Repeat(rows(9, "%[1]d,Ada,B-%[2]s\n%[1]d,saw,O"), 3),
		"lex.csv":   "word,upos,sentiment\n" + rows(30, "w%[1]d,NOUN,%[2]s\nv%[1]d,VERB,%[2]s"),
		"types.tsv": "doc_type\ttoken\tbio\n" + rows(30, "%[2]s\tn%[1]d\tB-X\nx\tsaw\tO"),
		"test.csv":  "a,b\n", "seq/seq.in": "a b\n", "mixed.csv": "text,label\nthe café is,red\nit is na\xefve,blue\n",
	})
	for _, test := range []struct{ args, want string }{
		{"none.csv", "none.csv: no such file"},
		{"empty.csv", "empty.csv: no records; want at least one"},
		{"binary.csv", "binary.csv: the file is no text"},
		{"mixed.csv", "mixed.csv:3: byte 0xef at character 9 is not UTF-8; 1 line of the file is not UTF-8, and 1"},
		{"ru.csv", `cp1252 reads words such as "ïðèâåò" in it; --encoding NAME names its encoding, as cp1251`},
		{"ru2.csv", `cp1252 reads words such as "Îí" in it; --encoding NAME`},
		{"exp.yaml", "exp.yaml is YAML, which is no data; an experiment file is checked by: jenga check exp.yaml"},
		{"b.YML", "jenga check b.YML"}, {"ids.csv data/c.yml", "jenga check data/c.yml"}, {"d.yaml", "check d.yaml"},
		{"sjis.csv", "--encoding NAME names its encoding, as shift_jis, gbk or koi8-r"},
		{"gbk.txt", "--encoding NAME names its encoding"}, {"jis.csv", "--encoding NAME names its encoding"},
		{"broken.csv", `broken.csv:3: the row goes on after column`},
		{"far.csv", `far.csv: a row is a word, and the rows with the same "sentence_id", which are a sentence, do ` +
			`not follow one another; sort them by it, in the order of the words`},
		{"again.csv", `the same "sent", which names its sentence, is in rows that do not follow one another; data: ` +
			`{sentence: "sent"} makes each such group of rows a sentence`},
		{"lex.csv", "lex.csv: no column of texts among word, upos, sentiment"},
		{"types.tsv", "types.tsv: no column of texts among doc_type, token, bio"},
		{"ids.csv", "ids.csv: no column of texts among a, b; an experiment needs one"},
		{"head.csv", "head.csv: no text in its only record; a file of a header alone has no data"},
		{"docs", "docs: no data in this folder; want files such as train.csv"},
		{"dev.csv test.csv", "dev.csv: no file of these is named as the training data"},
		{"seq", "seq: no file seq.out; a folder of data holds seq.in, seq.out and label"},
		{"dev.csv dev.csv", "dev.csv and dev.csv: two files of the split dev"},
	} {
		_, err := Files(t.Context(), strings.Fields(test.args))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.args, err, test.want)
		}
	}
}

func TestAnEncodingThatAFileIsNot(t *testing.T) {
	content := "text,label\n" + rows(30, "a café with number %d 🎉,%s")
	write(t, map[string]string{"a.csv": content, "b.tsv": strings.ReplaceAll(content, ",", "\t"), "c.txt": content,
		"wide.csv": inUTF16(content)})
	for _, name := range []string{"a.csv utf-16", "b.tsv UTF-16LE", "c.txt utf16", "a.csv utf-16be"} {
		file, encoding, _ := strings.Cut(name, " ")
		want := file + ": the file is UTF-8, not " + encoding + "; leave out --encoding"
		if _, err := FilesAs(t.Context(), []string{file}, encoding, ""); err == nil || err.Error() != want {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
		if _, err := Files(t.Context(), []string{file}); err != nil {
			t.Errorf("the remedy for %s: %v", name, err)
		}
	}
	if _, err := FilesAs(t.Context(), []string{"wide.csv"}, "utf-16", ""); err != nil {
		t.Error(err)
	}
}

func TestASecondTextThatRepeatsIsOfAPair(t *testing.T) {
	hypotheses := []string{"a man is outside", "nobody is at home", "people are eating food"}
	for _, names := range []string{"premise,hypothesis", "sentence1,sentence2", "Premise,Hypothesis", "text_a,text_b"} {
		text := names + ",label\n"
		for i := range 90 {
			text += fmt.Sprintf("it was a day of number %d in town,%s,%s\n", i, hypotheses[i*7%13%3],
				[]string{"neutral", "entailment", "contradiction"}[i*5%11%3])
		}
		write(t, map[string]string{"nli.csv": text})
		e, err := Files(t.Context(), []string{"nli.csv"})
		if err != nil {
			t.Fatal(err)
		}
		if s := e.Sets[0]; !s.has("pair") || tasksOf(s) != "classification label=label" {
			t.Errorf("%s: %s, fields %v", names, tasksOf(s), s.Fields)
		}
	}
}

// inUTF16 encodes a text as Excel does, little-endian with a byte-order mark.
func inUTF16(text string) string {
	b := []byte("\xff\xfe")
	for _, unit := range utf16.Encode([]rune(text)) {
		b = binary.LittleEndian.AppendUint16(b, unit)
	}
	return string(b)
}

func TestUTF16(t *testing.T) {
	content := "text,label\n" + rows(30, "a café with number %d 🎉,%s")
	write(t, map[string]string{
		"train.csv": inUTF16(content), "test.csv": inUTF16(content),
		"long.csv": inUTF16(content + rows(100_000, "a café with number %d 🎉,%s")),
	})
	for _, test := range []struct{ files, want, encoding string }{
		{"train.csv test.csv", "train.csv test.csv", "utf-16"},
		{"long.csv", "long.csv ", "utf-16"},
	} {
		e, err := Files(t.Context(), strings.Fields(test.files))
		if err != nil {
			t.Errorf("%s: %v", test.files, err)
			continue
		}
		s := e.Sets[0]
		if got := s.Train + " " + s.Dev + s.Test; got != test.want || s.Format.Encoding != test.encoding ||
			tasksOf(s) != "classification label=label" {
			t.Errorf("%s: %q, encoding %q, %s", test.files, got, s.Format.Encoding, tasksOf(s))
		}
	}
}

// FuzzFiles looks at any file, of each type.
func FuzzFiles(f *testing.F) {
	for i, text := range []string{
		"a,b\nx,1\n", "{\"text\": \"a b\", \"label\": [1]}\n", "a O\n\nb O\n", "[{}]",
		`{"data": [{"paragraphs": [{"context": "a", "qas": [{"question": "b"}]}]}]}`, "1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n",
	} {
		f.Add([]byte(text), i)
	}
	f.Fuzz(func(t *testing.T, text []byte, kind int) {
		types := []string{"csv", "tsv", "json", "jsonl", "conll", "conllu", "txt"}
		path := filepath.Join(t.TempDir(), "a."+types[(kind%len(types)+len(types))%len(types)])
		if err := os.WriteFile(path, text, 0o666); err != nil {
			t.Fatal(err)
		}
		e, err := Files(t.Context(), []string{path})
		if err != nil {
			return
		}
		yaml, err := e.YAML(".", nil)
		if len(yaml) == 0 || err != nil {
			t.Errorf("no experiment, and the error %v", err)
		}
		checkPrintable(t, string(yaml))
	})
}

// yamlOf returns the experiment file.
func yamlOf(t *testing.T, e *Experiment, folder string, models []string) string {
	t.Helper()
	text, err := e.YAML(folder, models)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestTheYAMLGivesReasons(t *testing.T) {
	write(t, map[string]string{
		"data/mails.csv": "nr;body;team;note\n" + rows(60, "%[1]d;this is text number %[1]d;%[2]s;x%[1]d"),
	})
	e, err := Files(t.Context(), []string{"data/mails.csv"})
	if err != nil {
		t.Fatal(err)
	}
	want := `tasks:
  # data/mails.csv: 60 records, all of it
  # semicolons separate the columns
  # text: column body, 5 words on average
  # nr is left out: another number in each of 60 records
  # note is left out: 60 different values in 60 records
  # team: 3 labels in 60 records
  - name: team
    type: classification
    data:
      path: ../data/mails.csv
      # no file is named as dev
      split:
        dev: 0.2
      delimiter: ;
      text: body
      label: team
training:
`
	got := yamlOf(t, e, "experiments", []string{"org/small", "large"})
	if _, got, _ = strings.Cut(got, "tasks:\n"); !strings.HasPrefix("tasks:\n"+got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}

	// without a model it trains from scratch, and names the command that downloads one
	scratch := yamlOf(t, e, ".", nil)
	for _, part := range []string{"jenga pull sentence-transformers/all-MiniLM-L6-v2", "type: transformer",
		"path: data/mails.csv"} {
		if !strings.Contains(strings.ReplaceAll(scratch, "\n#", ""), part) {
			t.Errorf("%q not found in\n%s", part, scratch)
		}
	}
}

// Batches of few records are smaller, so that a training has its steps in as many epochs as are written.
func TestATrainingHasEnoughSteps(t *testing.T) {
	for n, want := range map[int]string{
		4:   "batch_size: 4 num_epochs: 100", // one step an epoch: the smallest batch takes all
		20:  "batch_size: 4 num_epochs: 75",
		60:  "batch_size: 16 num_epochs: 100",
		96:  "batch_size: 32 num_epochs: 100",
		320: "batch_size: 32 num_epochs: 38",
	} {
		write(t, map[string]string{"mails.csv": "body,team\n" + rows(n, "this is text number %[1]d,%[2]s")})
		e, err := Files(t.Context(), []string{"mails.csv"})
		if err != nil {
			t.Fatal(err)
		}
		got := yamlOf(t, e, ".", nil)
		keys := strings.Join(regexp.MustCompile(`(?m)^  ((batch_size|num_epochs): .*\n)`).FindAllString(got, -1), "")
		if keys = strings.Join(strings.Fields(keys), " "); keys != want {
			t.Errorf("%d records: %s, want %s", n, keys, want)
		}
		if small := strings.Contains(got, "# batch_size: with 32 an epoch has "); small != (n < 96) {
			t.Errorf("%d records: a reason of the size of batches: %v", n, small)
		}
	}
}

// YAML has no control characters, and a reader of comments no use for them.
func TestTheYAMLIsPrintable(t *testing.T) {
	write(t, map[string]string{
		"a.csv": "te\x01xt,\x7flabel\u0085,x\ufffe\n" + rows(30, "a text with number %[1]d,%[2]s\x02,\x1b%[2]s"),
	})
	e, err := Files(t.Context(), []string{"a.csv"})
	if err != nil {
		t.Fatal(err)
	}
	text := yamlOf(t, e, ".", []string{"a\x03"})
	checkPrintable(t, text)
	if want := `label: "\x7Flabel\N"`; !strings.Contains(text, want) {
		t.Errorf("%s not found in\n%s", want, text)
	}
}

// checkPrintable requires of comments that they are printable, and of values that they have no control characters.
func checkPrintable(t *testing.T, text string) {
	t.Helper()
	for line := range strings.Lines(text) {
		comment := strings.HasPrefix(strings.TrimSpace(line), "#")
		if i := strings.IndexFunc(strings.TrimSuffix(line, "\n"), func(r rune) bool {
			return comment && !unicode.IsPrint(r) || unicode.IsControl(r) || r == '\ufffe'
		}); i >= 0 {
			t.Errorf("an unprintable character: %q", line)
		}
	}
}
