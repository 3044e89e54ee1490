package inputs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
)

type names = map[string][]string // of Columns

func TestInputParsesPlainTextAndJSON(t *testing.T) {
	named, questions := names{"text": {"body", "note"}, "pair": {"reply"}},
		names{"text": {"body"}, "pair": {"context"}, "question": {"question"}}
	for _, test := range []struct {
		line, text, pair, err string
		columns               names
	}{
		{line: `{"body": "play", "reply": "adele"}`, text: "play", pair: "adele", columns: named},
		{line: `{"note": "play", "text": "adele", "pair": "x"}`, text: "play", pair: "x", columns: named},
		{line: `{"text": "play"}`, text: "play", columns: named},
		{line: `{"body": "play", "text": "adele"}`, text: "play", pair: "adele",
			columns: names{"text": {"body"}, "pair": {"text"}}},
		{line: `{"text": "play", "context": "adele"}`, text: "play"},
		// no pair with itself
		{line: `{"b": "play"}`, text: "play", columns: names{"text": {"a", "b"}, "pair": {"b"}}},
		{line: `{"a": "play", "b": "adele"}`, text: "play", pair: "adele",
			columns: names{"text": {"a", "b"}, "pair": {"b"}}},
		{line: `{"user": {"text": "play"}}`, text: "play", columns: names{"text": {"user.text"}}},
		{line: "play adele", text: "play adele"},
		{line: "\ufeffplay adele", text: "play adele"},
		{line: "[1, 2]", text: "[1, 2]"},
		{line: "\ufeff{\"text\": \"play\", \"pair\": \"adele\"}", text: "play", pair: "adele"},
		{line: `{"words": ["play", "adele"], "label": "music"}`, text: "play adele"},
		{line: `{"question": "Who sings?", "context": "adele sings"}`, text: "Who sings?", pair: "adele sings"},
		{line: `{"question": "Who sings?"}`, text: "Who sings?"},
		{line: `{"question": "Who sings?", "text": "play", "pair": "adele"}`, text: "play", pair: "adele"},
		{line: `{"question": "Who sings?", "context": "adele sings", "text": "play"}`, text: "play"},
		{line: `{"question": "Who sings?", "context": "adele sings", "text": "play", "pair": "x"}`, text: "Who sings?",
			pair: "adele sings", columns: questions},
		{line: `{"question": "Who sings?", "context": "adele sings", "words": ["play"]}`, text: "Who sings?",
			pair: "adele sings", columns: questions},
		{line: `{"question": "Who sings?", "text": "play"}`, text: "play", columns: questions},
		{line: `{"question": "Who sings?", "context": "adele sings", "body": "play"}`, text: "play",
			pair: "adele sings", columns: questions},
		{line: `{"text": "play"`, err: "line 1: the record ends early; want plain text, or a JSON object with text, " +
			"pair or words, or with question and context"},
		{line: `{"text": "play"} adele`,
			err: `line 1: "adele" after the record's end; want plain text, or a JSON object with text, pair ` +
				"or words, or with question and context"},
		{line: `{"txt": "play"}`, err: "line 1: a JSON object with no text, words or question, its keys: txt; want " +
			"plain text, or a JSON object with text, pair or words, or with question and context"},
		{line: "play \xff", err: "line 1: not UTF-8: byte 0xff at offset 5"},
	} {
		e, err := Parse(test.line, 1, Columns{Names: test.columns})
		switch {
		case test.err != "":
			if err == nil || err.Error() != test.err {
				t.Errorf("Parse(%q) = %v, want %s", test.line, err, test.err)
			}
		case err != nil:
			t.Errorf("Parse(%q) = %v", test.line, err)
		case e.Example.Text != test.text || e.Example.Pair != test.pair:
			t.Errorf("Parse(%q) = %q, %q, want %q, %q", test.line, e.Example.Text, e.Example.Pair, test.text, test.pair)
		}
	}
}

func TestFieldsBesideTheTextsPassThrough(t *testing.T) {
	columns := names{"text": {"body"}, "pair": {"reply"}, "words": {"tokens"}}
	for _, test := range []struct {
		line    string
		columns names
		want    map[string]any
	}{
		{"plain", nil, nil},
		{`{"id": 7, "text": "a", "pair": "b", "note": null}`, nil, map[string]any{"id": json.Number("7"), "note": nil}},
		{`{"question": "a", "context": "b", "id": "x"}`, nil, map[string]any{"id": "x"}},
		{`{"question": "a", "context": "b", "text": "c"}`, nil, map[string]any{"question": "a", "context": "b"}},
		{`{"question": "a", "context": "b", "text": "c"}`, names{"question": {"question"}},
			map[string]any{"text": "c"}},
		{`{"body": "a", "reply": "b", "text": "c", "pair": "d"}`, columns, map[string]any{"text": "c", "pair": "d"}},
		{`{"text": "a", "reply": "b"}`, columns, map[string]any{}},
		{`{"tokens": ["a", "b"]}`, columns, map[string]any{"tokens": []any{"a", "b"}}}, // tags stand for them
		{`{"words": ["a", "b"], "text": "a b"}`, nil, map[string]any{"words": []any{"a", "b"}}},
	} {
		line, err := Parse(test.line, 3, Columns{Names: test.columns})
		if err != nil || line.Number != 3 || !reflect.DeepEqual(line.Fields, test.want) {
			t.Errorf("%s: %+v, %v, want the fields %v", test.line, line, err, test.want)
		}
	}
}

func TestTextsThatAreMissingAreEmpty(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.csv")
	table := "body,reply,label\nn/a,so,n/a\nplay,n/a,x\nn/a it is,,x\n"
	if err := os.WriteFile(path, []byte(table), 0o666); err != nil {
		t.Fatal(err)
	}
	var warnings []string
	format := corpus.Format{Warn: func(at corpus.Place, text string) {
		warnings = append(warnings, fmt.Sprint(at, ": ", text))
	}}
	read := func(missing map[string][]string) (texts []string) {
		format.Missing = missing
		lines, err := Read(t.Context(), path, format, ColumnsIn(
			corpus.Format{Fields: map[string]string{"text": "body", "pair": "reply"}, Missing: missing}))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range lines {
			e := line.Example
			texts = append(texts, fmt.Sprintf("%s|%s|%v|%v", e.Text, e.Pair, e.Paired, line.Given["label"]))
		}
		return texts
	}
	got := read(map[string][]string{"": {"n/a"}}) // of all columns but those of the texts, as in training
	if want := []string{"n/a|so|true|n/a", "play|n/a|true|x", "n/a it is||true|x"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	got = read(map[string][]string{"body": {"n/a"}, "reply": {"n/a"}, "label": {"n/a"}})
	if want := []string{"|so|true|n/a", "play||false|x", "n/a it is||true|x"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	if want := []string{path + `:2: 2 texts by missing, as "n/a", are read as empty`}; !slices.Equal(warnings, want) {
		t.Errorf("warnings %q, want %q", warnings, want)
	}

	// rows of words without a sentence of their own
	table = "Sentence,Word\n1,so\nn/a,it\n2,is\n"
	if err := os.WriteFile(path, []byte(table), 0o666); err != nil {
		t.Fatal(err)
	}
	format.Sentence, format.Missing = "Sentence", map[string][]string{"": {"n/a"}}
	lines, err := Read(t.Context(), path, format, Columns{Names: names{"words": {"Word"}}})
	if err != nil || len(lines) != 2 || lines[0].Example.Text != "so it" {
		t.Errorf("%v, %v", lines, err)
	}
}

// Lines and requests have the texts that are missing by the lists of all formats that they may be in.
func TestTextsOfObjectsThatAreMissingAreEmpty(t *testing.T) {
	columns := ColumnsIn(corpus.Format{Fields: map[string]string{"text": "body", "pair": "reply"},
		Missing: map[string][]string{"": {"so"}, "body": {"-"}}},
		corpus.Format{Missing: map[string][]string{"body": {"n/a", "-1"}, "reply": {"n/a"}, "text": {"n/a"}}},
		corpus.Format{Fields: map[string]string{"text": "user.text"}, Missing: map[string][]string{"user.text": {"-"}}})
	for object, want := range map[string]string{
		`{"body": "n/a", "reply": "so"}`:      "|so|true",
		`{"body": " n/a ", "id": ["n/a"]}`:    "||false",
		`{"body": "-", "reply": "n/a"}`:       "||false",
		`{"body": "-1.0"}`:                    "||false",
		`{"body": "so"}`:                      "so||false",
		`{"user": {"text": "-"}}`:             "||false",
		`{"text": "n/a", "pair": "n/a"}`:      "|n/a|true",
		`{"text": ["n/a"], "body": "n/a it"}`: "n/a it||false",
		"n/a":                                 "n/a||false", // of no column
	} {
		line, err := Parse(object, 1, columns)
		if err != nil {
			t.Fatal(err)
		}
		e := line.Example
		if got := fmt.Sprintf("%s|%s|%v", e.Text, e.Pair, e.Paired); got != want {
			t.Errorf("%s: %s, want %s", object, got, want)
		}
	}
}
