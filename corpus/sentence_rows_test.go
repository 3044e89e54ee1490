package corpus

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
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
		{"sentences already", "a.conll", "a O\n", `a.conll: format conll has no sentence: its lines belong ` +
			`together already; ` +
			`csv, tsv, json, jsonl and parquet have one`},
	} {
		_, err := Read(strings.NewReader(test.data), test.file, Format{Sentence: "s"})
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: %v, want %s", test.name, err, test.want)
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
		{"tags alone", "w,t\na,O\nb,O\nc,X\nd,O\ne,O\nf,X\ng,X\nh,O\ni,O\n", ""},
		{"a number of each row", "id,w\n1,a\n2,b\n3,c\n", ""},
		{"one sentence", "id,w\n1,a\n1,b\n", ""},
	} {
		records, err := Read(strings.NewReader(test.data), "a.csv", Format{})
		if err != nil {
			t.Fatal(err)
		}
		if got := SentenceField(records); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}
