package corpus

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/shared"
)

func TestRowsOfAWordAreJoinedToSentences(t *testing.T) {
	first := map[string]any{"s": "1", "w": []string{"a", "b"}, "t": []string{"O", "X"}}
	second := map[string]any{"s": "2", "w": []string{"c"}, "t": []string{"O"}}
	both := []map[string]any{first, second}
	for _, test := range []struct {
		name, file, data string
		want             []map[string]any
	}{
		{"a value in each row", "a.csv", "s,w,t\n1,a,O\n1,b,X\n2,c,O\n", both},
		{"in the first row of each sentence", "a.csv", "s,w,t\n1,a,O\n,b,X\n2,c,O\n", both},
		{"tabs, and empty lines between", "a.tsv", "s\tw\tt\n1\ta\tO\n1\tb\tX\n\n2\tc\tO\n", both},
		{"JSON lines", "a.jsonl", `{"s": 1, "w": "a", "t": "O"}` + "\n" + `{"s": 1, "w": "b", "t": "X"}` + "\n" +
			`{"s": 2, "w": "c", "t": "O"}`, both},
		{"JSON, a key in the first row alone", "a.json", `[{"s": "1", "w": "a", "t": "O"}, {"w": "b", "t": "X"}, ` +
			`{"s": "2", "w": "c", "t": "O"}]`, []map[string]any{
			{"s": "1", "w": []string{"a", "b"}, "t": []string{"O", "X"}}, second}},
		{"the same mark at each beginning", "a.csv", "s,w\nx,a\n,b\nx,c\n,d\n", []map[string]any{
			{"s": "x", "w": []string{"a", "b"}}, {"s": "x", "w": []string{"c", "d"}}}},
		{"a value that one row lacks", "a.csv", "s,w\n1,a\n1,b\n,c\n1,d\n", []map[string]any{
			{"s": "1", "w": []string{"a", "b", "c", "d"}}}},
		{"a word without a tag", "a.jsonl", "{\"s\": 1, \"w\": \"a\"}\n{\"s\": 1, \"w\": \"b\", \"t\": \"X\"}\n",
			[]map[string]any{{"s": "1", "w": []string{"a", "b"}, "t": []any{nil, "X"}}}},
		{"a number that begins again", "a.csv", "s,w\n1,a\n2,b\n1,c\n", []map[string]any{
			{"s": "1", "w": []string{"a"}}, {"s": "2", "w": []string{"b"}}, {"s": "1", "w": []string{"c"}}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			records, err := Read(strings.NewReader(test.data), test.file, Format{Sentence: "s"})
			if err != nil {
				t.Fatal(err)
			}
			var got []map[string]any
			for _, r := range records {
				got = append(got, r.Fields)
			}
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

// Sentences of two documents that have the same number are one where one ends the first and one begins the second.
func TestSentencesOfTwoDocumentsThatAreOneGiveADoubt(t *testing.T) {
	rows := func(sentences func(doc int) int, other string) string { // a word, of 3 of each sentence, a row
		var b strings.Builder
		b.WriteString("doc,s,w,t,n,other\n")
		for doc, n := range make([]int, 10) {
			for s := range sentences(doc) {
				for i, tag := range []string{"O", "B-X", "O"} {
					fmt.Fprintf(&b, "d%d,%d,w%d,%s,%d,%s\n", doc, s+1, n+doc*9+i, tag, b.Len(), other)
				}
			}
		}
		return b.String()
	}
	one := func(int) int { return 1 }
	some := func(doc int) int { return 1 + doc%3 }
	for name, test := range map[string]struct{ field, text, want string }{
		"one sentence each": {"s", rows(one, "x"), `field "doc" changes from "d0" to "d1" here within a sentence, ` +
			"by sentence: s, and 8 more times: if these are two sentences, sentence: doc keeps them apart"},
		"one sentence in some": {"s", rows(some, ""), `field "doc" changes from "d0" to "d1" here within a sentence, ` +
			"by sentence: s, and 2 more times: if these are two sentences, a field with another value in each " +
			`sentence, as "d1-1", keeps them apart`},
		"two in each":  {"s", rows(func(int) int { return 2 }, ""), ""},
		"by documents": {"doc", rows(some, "x"), ""},
		"few rows":     {"s", "s,w,t\n1,a,O\n1,b,O\n1,c,X\n", ""},
	} {
		var got []string
		format := Format{Sentence: test.field, Warn: func(at Place, text string) {
			got = append(got, text)
			if at.Line != 5 {
				t.Errorf("%s: at %v, want line 5", name, at)
			}
		}}
		if _, err := Read(strings.NewReader(test.text), "a.csv", format); err != nil ||
			strings.Join(got, "\n") != test.want {
			t.Errorf("%s: %v, %q, want %q", name, err, got, test.want)
		}
	}
}

// A field that divides sentences, as a chunk, a line or a page, is none of documents, whatever numbers sentences have.
func TestPartsOfSentencesGiveNoDoubt(t *testing.T) {
	number := func(n int) string { return strconv.Itoa(n + 1) }
	once := func(i int) string { return number(i / 8) }                  // 8 words each
	within := func(i int) string { return number(i / 8 % 4) }            // of documents of 4 sentences
	mark := func(i int) string { return []string{"x", ""}[min(i%8, 1)] } // in the first row alone
	parts := func(words int) func(i int) string { return func(i int) string { return number(i / words) } }
	title := func(i int) string { return []string{"title", "body"}[min(i/3, 1)] }
	for name, of := range map[string]struct{ sentence, part func(i int) string }{
		"phrases": {once, parts(4)}, "pages": {once, parts(60)}, "a title": {once, title},
		"phrases of documents": {within, parts(4)}, "pages of documents": {within, parts(60)},
		"a title of documents": {within, func(i int) string { return title(i % 32) }},
		"phrases below a mark": {mark, parts(4)}, "pages below a mark": {mark, parts(60)},
	} {
		text := "s,w,part\n"
		for i := range 59 * 8 {
			text += fmt.Sprintf("%s,w%d,%s\n", of.sentence(i), i, of.part(i))
		}
		format := Format{Sentence: "s", Warn: func(at Place, text string) { t.Errorf("%s: %v: %s", name, at, text) }}
		if _, err := Read(strings.NewReader(text), "a.csv", format); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Which fields of many are compared is the same in each run, and what they take is bounded.
func TestFieldsOfManyThatAreCompared(t *testing.T) {
	row := func(doc, n int) Record {
		fields := map[string]any{"s": "1", "a": fmt.Sprintf("d%d", doc)}
		for i := range 300 {
			fields[fmt.Sprintf("f%03d", i)] = fmt.Sprintf("%d", n%3)
		}
		return Record{Fields: fields}
	}
	for range 20 {
		d := reader{mistakes: &mistakes{}, format: Format{Sentence: "s"}}
		for n := range 30 {
			d.runs.add(row(n/3, n), "s", "1", n == 0)
		}
		if d.runs.report(&d); len(d.doubts) != 1 {
			t.Fatalf("%d warnings, want one, of the first field", len(d.doubts))
		}
	}

	var f fieldRuns
	fields := map[string]any{"d": "x"}
	for n := range 2*maxRunValues + 2 {
		value := strconv.Itoa(n / 2)
		fields["a"], fields["b"], fields["c"] = value, value, value
		f.add(Record{Fields: fields}, "s", "1", n == 0)
	}
	var names []string
	for _, run := range f.runs {
		names = append(names, run.name)
	}
	if want := []string{"d"}; !slices.Equal(names, want) || f.values != 1 {
		t.Errorf("fields %q with %d values are compared, want %q and 1", names, f.values, want)
	}
}

func TestMistakesOfRowsOfAWord(t *testing.T) {
	bomb := ""
	for i := range 3000 {
		bomb += fmt.Sprintf(`{"s": 1, "w%d": "a"}`+"\n", i)
	}
	for _, test := range []struct{ name, file, data, want string }{
		{"no such field", "a.csv", "sent,word\n1,a\n1,b\n",
			`a.csv:2: no field "s", which sentence: names; available: sent, word`},
		{"misspelt", "a.jsonl", `{"ss": 1, "w": "a"}` + "\n" + `{"ss": 1, "w": "b"}`,
			`a.jsonl:1: no field "s", which sentence: names; did you mean "ss"? available: ss, w`},
		{"empty in the first row", "a.csv", "s,w\n,a\n1,b\n",
			`a.csv:2: field "s", which sentence: names, is empty in the first row; a sentence begins with a row ` +
				`that has a ` +
				`value`},
		{"a list", "a.jsonl", `{"s": [1], "w": "a"}`,
			`a.jsonl:1: field "s", which sentence: names, is a list; it takes a text or a number`},
		{"rows with other fields each", "a.jsonl", bomb, `a.jsonl:1: the sentence that begins here has more than `},
	} {
		_, err := Read(strings.NewReader(test.data), test.file, Format{Sentence: "s"})
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
		}
	}
}

// What sentence: names has one mistake where it is not there, whatever form the records are in.
func TestAWrongSentenceIsOneMistake(t *testing.T) {
	const none = `no field "number", which sentence: names; available: `
	t.Chdir(t.TempDir())
	row := `{"w": "a", "t": "O"}`
	for path, text := range map[string]string{
		"a.parquet": string(written(t, []struct{ W, T string }{{"a", "O"}, {"b", "O"}})),
		"a.csv":     "w,t\na,O\nb,O\n", "a.tsv": "w\tt\na\tO\nb\tO\n", "a.jsonl": row + "\n" + row + "\n",
		"a.json": "[" + row + ",\n" + row + "]", "lines.json": row + "\n" + row + "\n",
		"keys.json":    `{"data": [` + row + ",\n" + row + `], "more": 1}`,
		"columns.json": `{"w": ["a", "b"], "t": ["O", "X"]}`,
		"squad.json":   `{"data": [{"paragraphs": [{"context": "a", "qas": [{"question": "b"}, {"question": "c"}]}]}]}`,
		"tasks.json":   `[{"data": ` + row + `}, {"data": ` + row + `}]`, "a.txt": "__label__x a\n__label__y b\n",
		"a.conll": "a O\n", "a.conllu": "1\ta\t_\t_\t_\t_\t_\t_\t_\t_\n", "brat/1.txt": "a",
		"brat/1.ann": "T1\tX 0 1\ta\n",
		"brat/2.txt": "a", "slots/seq.in": "a\nb\n", "slots/seq.out": "O\nO\n", "slots/label": "x\ny\n",
	} {
		write(t, path, text)
	}
	for _, test := range []struct {
		path   string
		format Format
		want   string
	}{
		{"a.csv", Format{}, none + "t, w; header: false"}, {"a.tsv", Format{}, none}, {"a.jsonl", Format{}, none},
		{"a.json", Format{}, none}, {"lines.json", Format{}, none}, {"keys.json", Format{Records: "data"}, none},
		{"columns.json", Format{Type: columnsForm}, none}, {"squad.json", Format{}, none},
		{"tasks.json", Format{Type: "label_studio"}, none}, {"a.parquet", Format{}, none},
		{"a.txt", Format{Type: "fasttext"}, "format fasttext has no sentence"},
		{"a.conll", Format{}, "format conll has no sentence"}, {"a.conllu", Format{}, "format conllu has no sentence"},
		{"brat", Format{}, "format brat has no sentence"},
		{"brat", Format{Type: bratForm}, "format brat has no sentence"},
		{"brat/1.txt", Format{Type: bratForm}, "format brat has no sentence, as no record of it is a word: " +
			"leave it out; csv, tsv, json, jsonl, columns, label_studio and parquet have one"},
		{"slots", Format{}, "format slots has no sentence"},
	} {
		test.format.Sentence = "number"
		_, err := Open(t.Context(), test.path, test.format)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s… alone", test.path, err, test.want)
		}
		if test.format.CheckStream(test.path) == nil {
			_, err = Scan(t.Context(), []string{test.path}, test.format, func(Record, int64) {})
			if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%s, streamed: %v, want %s… alone", test.path, err, test.want)
			}
		}
	}
}

// What stands for no value is none: pandas writes NaN in the rows after the first of a sentence.
func TestMarksInTheFieldOfASentence(t *testing.T) {
	for mark, format := range map[string]Format{"NaN": {Sentence: "s"}, "-": {Sentence: "s",
		Missing: map[string][]string{"s": {"-"}}}} {
		data := strings.ReplaceAll("s,w\n0.0,a\nX,b\n1.0,c\nX,d\nX,e\n", "X", mark)
		records, err := Read(strings.NewReader(data), "a.csv", format)
		if err != nil || len(records) != 2 || !reflect.DeepEqual(records[1].Fields["w"], []string{"c", "d", "e"}) {
			t.Errorf("%s: %v, %v", mark, records, err)
		}
	}
}

// A sentence that never ends takes no more memory than its bound.
func TestASentenceHasABound(t *testing.T) {
	const rows = maxSentence/2 + 10
	data := "s,w\n1,a\n" + strings.Repeat(",a\n", rows)
	_, err := Read(strings.NewReader(data), "a.csv", Format{Sentence: "s"})
	if err == nil || !strings.Contains(err.Error(), "a.csv:2: the sentence that begins here has more than 2097152 "+
		"words") {
		t.Errorf("%v, want an error of the length", err)
	}
	data = "s,w\n1,a\n" + strings.Repeat(","+strings.Repeat("a", 1<<20)+"\n", 18)
	_, err = Read(strings.NewReader(data), "a.csv", Format{Sentence: "s"})
	if err == nil || !strings.Contains(err.Error(), "a.csv:2: the sentence that begins here has more than 16 MiB "+
		"up to line 18") {
		t.Errorf("%v, want an error of the size", err)
	}
}

func TestTheCaseOfAWordARow(t *testing.T) {
	path := filepath.Join(shared.Dir(t), "cases/word-a-row/st.csv")
	rows, err := Open(t.Context(), path, Format{})
	if err != nil {
		t.Fatal(err)
	}
	field := SentenceField(rows)
	if field != "sentence_id" {
		t.Errorf("the field of the sentence is %q, want sentence_id", field)
	}
	sentences, err := Open(t.Context(), path, Format{Sentence: field})
	if err != nil || len(sentences) != 60 {
		t.Fatalf("%d sentences, %v; want 60", len(sentences), err)
	}
	for _, s := range sentences {
		if e, err := s.Example(); err != nil || len(e.Words) != 8 {
			t.Fatalf("%d words, %v; want 8", len(e.Words), err)
		}
	}
	first := filepath.Join(t.TempDir(), "first.csv") // the value in the first row alone
	text := "Sentence #,words,labels\n"
	for i, r := range rows {
		mark := ""
		if i%8 == 0 {
			mark = fmt.Sprintf("Sentence: %d", i/8+1)
		}
		text += fmt.Sprintf("%s,%s,%s\n", mark, r.Fields["words"], r.Fields["labels"])
	}
	if err := os.WriteFile(first, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	again, err := Open(t.Context(), first, Format{Sentence: "Sentence #"})
	if err != nil || len(again) != 60 || !reflect.DeepEqual(again[59].Fields["labels"],
		sentences[59].Fields["labels"]) {
		t.Errorf("%d sentences, %v; want the same 60", len(again), err)
	}
}

func TestTheFieldOfASentence(t *testing.T) {
	for _, test := range []struct{ name, data, want string }{
		{"numbers", "id,w,t\n1,a,O\n1,b,X\n1,c,O\n2,d,O\n2,e,O\n", "id"},
		{"the first row alone", "Sentence #,w,t\nS1,a,O\n,b,X\n,c,O\nS2,d,O\n,e,O\n", "Sentence #"},
		{"a document beside it", "doc,sent,w\nA,1,a\nA,1,b\nA,2,c\nA,2,d\nB,3,e\nB,3,f\n", "sent"},
		{"numbers within documents", "doc,sent,w\nA,1,a\nA,1,b\nA,2,c\nA,2,d\nB,1,e\nB,1,f\nB,2,g\nB,2,h\n" +
			"C,1,i\nC,1,j\nC,2,k\nC,2,l\n", "sent"},
		{"numbers that begin again anywhere", "doc,t,w\nA,1,a\nA,1,b\nA,2,c\nA,1,d\nA,1,e\nA,2,f\nA,2,g\n", ""},
		{"NaN after the first row", "id,w\n0.0,a\nNaN,b\nNaN,c\n1.0,d\nNaN,e\n", "id"},
		{"tags alone", "w,t\na,O\nb,O\nc,X\nd,O\ne,O\nf,X\ng,X\nh,O\ni,O\n", ""},
		{"a number of each row", "id,w\n1,a\n2,b\n3,c\n", ""},
		{"one sentence", "id,w\n1,a\n1,b\n", ""},
		{"the words of many sentences by their places", "id,w,words,tags\n1,x,a,B\n2,y,b,B\n3,z,c,B\n" +
			"1,x,so,O\n2,y,so,O\n3,z,so,O\n1,x,it,O\n2,y,it,O\n3,z,it,O\n", ""},
	} {
		records, err := Read(strings.NewReader(test.data), "a.csv", Format{})
		if err != nil {
			t.Fatal(err)
		}
		if got := SentenceField(records, "words", "tags"); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
