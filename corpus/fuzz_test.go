package corpus

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

func FuzzJSONL(f *testing.F) {
	fuzzRead(f, "x.jsonl", Format{Fields: map[string]string{"label": "intent", "pair": ""}},
		`{"text": "a", "intent": 1, "words": ["a"], "entities": [{"start": 0, "end": 1, "label": "X"}]}`,
		"\ufeff{\"words\": \"a\\ud800 b\"}\r\n[", `{"text": "\u0000`+"\x00\xff\"}")
}

func FuzzJSON(f *testing.F) {
	fuzzRead(f, "x.json", Format{}, "[\n{\"text\": \"a\"},\n{\"words\": [\"b]\\\"\", null]}]",
		"{\"text\": \"a\"}\n{\"text\": []}", "[{},]]", "[1, [[]",
		`{"version": 2, "data": [{"title": 7, "paragraphs": [{"context": "a kite", "qas": [{"question": "q", "id": 1.5, `+
			`"answers": [{"text": "kite", "answer_start": 2}]}]}]}]}`)
}

func FuzzJSONUnderKeys(f *testing.F) {
	fuzzRead(f, "x.json", Format{Records: "a.b"}, `{"c": [1, "]"], "a": {"n": 1, "b": [{"text": "a"}]}}`, `{"a.b": [`,
		`{"a": {"b": {`, `{"a": [], "a": {"b":[{}]}} x`)
}

func FuzzJSONColumns(f *testing.F) {
	fuzzRead(f, "x.json", Format{Type: "columns"}, `{"text": ["a", null], "n": {"1": 2, "0": [1]}}`, `{"a": [[]]}`, `{"a":[],`)
}

func FuzzLabelStudio(f *testing.F) {
	fuzzRead(f, "x.json", Format{Type: "label_studio"}, `[{"data": {"text": "abc"}, "annotations": [{"result": [`+
		`{"from_name": "a", "type": "labels", "value": {"start": 0, "end": 1, "labels": ["X"]}}, {"from_name": "b", `+
		`"type": "choices", "value": {"choices": [1]}}, 7]}, null]}]`, `[{"annotation_id": 1, "a": [{"rating": 1}]}]`)
}

func FuzzFastText(f *testing.F) {
	fuzzRead(f, "x.txt", Format{Type: "fasttext"}, "__label__a b  c __label__\n\n__label__a\n")
}

func FuzzCSV(f *testing.F) {
	fuzzRead(f, "x.csv", Format{}, "text,label\n\"a\n\"\"b\",c\n", "words,pair\r\na b,\r\n", "a,a\n", "a,\"b")
}

func FuzzDelimited(f *testing.F) {
	fuzzRead(f, "x.tsv", Format{NoHeader: true, Columns: []string{"text", "_", "label"}, Delimiter: "||", Quote: "none",
		Encoding: "latin1"}, "a||b||c||d\n", "\xff\"||\n")
}

func FuzzLabelText(f *testing.F) {
	fuzzRead(f, "x.txt", Format{NoHeader: true, Columns: []string{"label", "text"}, Delimiter: " "}, "1  a b \n",
		"1 \n 2 \"x\n")
}

func FuzzConll(f *testing.F) {
	fuzzRead(f, "x.conll", Format{}, "-DOCSTART- O\n\na b O\nc d B-X\n\ne f O", "1 / 2\tO\n\t\n#\tO")
}

func FuzzConllu(f *testing.F) {
	fuzzRead(f, "x.conllu", Format{Fields: map[string]string{"tags": "xpos"}},
		"# c\n1-2\tdu\t_\t_\t_\t_\t_\t_\t_\t_\n1\tde\tde\tADP\tP\t_\t0\troot\t_\t_\n1.1\tx\t_\t_\t_\t_\t_\t_\t_\t_\n\n")
}

func FuzzPacked(f *testing.F) {
	fuzzRead(f, "x.csv.gz", Format{NoHeader: true},
		"\x1f\x8b\b\x00\x00\x00\x00\x00\x00\xffK\xd4I\xe2\x02\x00o-\xa7\xd2\x04\x00\x00\x00")
}

// fuzzRead fuzzes Read of a file of the format and checks the records and errors by checkRecords.
func fuzzRead(f *testing.F, name string, format Format, seeds ...string) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		records, err := Read(bytes.NewReader(data), name, format)
		lines := bytes.Count(data, []byte("\n")) + 1
		if strings.HasSuffix(name, ".gz") {
			lines = 1 << 30
		}
		checkRecords(t, name, lines, records, err)
	})
}

func FuzzSlots(f *testing.F) {
	f.Add([]byte("a b \nc"), []byte("O B-x\nO\n"), []byte("X\nY\r\n"))
	f.Add([]byte("a\n\n"), []byte("O O\n"), []byte("X\nY\nZ"))
	f.Fuzz(func(t *testing.T, words, tags, labels []byte) {
		m := &mistakes{}
		var readers [len(slotFiles)]*reader
		for i, data := range [][]byte{words, tags, labels} {
			readers[i] = newReader(t.Context(), bytes.NewReader(data), "x/"+slotFiles[i], Format{Encoding: "utf-8"}, m)
		}
		for readers[0].slot(readers[1], readers[2]) {
		}
		records, err := readers[0].finish("x")
		checkRecords(t, "x", bytes.Count(words, []byte("\n"))+1, records, err)
	})
}

// checkRecords checks what holds for the records and errors of all files.
func checkRecords(t *testing.T, name string, lines int, records []Record, err error) {
	if (err == nil) != (len(records) > 0) {
		t.Fatalf("%d records and error %v", len(records), err)
	}
	if err != nil {
		messages := strings.Split(err.Error(), "\n")
		for _, m := range messages {
			if !strings.HasPrefix(m, name) || !utf8.ValidString(m) || len(m) > 1000 {
				t.Fatalf("error %q, want a short valid string that begins with the file", m)
			}
		}
		if len(messages) > mistakesShown+1 {
			t.Fatalf("%d errors, want at most %d", len(messages), mistakesShown+1)
		}
		return
	}
	last := 1
	for _, r := range records {
		if r.Place.Line < last || r.Place.Line > lines {
			t.Fatalf("a record of line %d after one of %d, of %d lines", r.Place.Line, last, lines)
		}
		last = r.Place.Line
		for field := range r.Fields { // must not panic
			r.String(field)
			r.Strings(field)
		}
		e, err := r.Example()
		if err != nil {
			continue
		}
		if !utf8.ValidString(e.Text) || !utf8.ValidString(e.Pair) {
			t.Fatalf("text %q, pair %q", e.Text, e.Pair)
		}
		end := 0
		for _, w := range e.Words {
			if w.Start < end || w.End <= w.Start || w.End > len(e.Text) {
				t.Fatalf("words %v of %q", e.Words, e.Text)
			}
			end = w.End
		}
		entities, _, _ := r.Entities(e.Text)
		for _, entity := range entities {
			if s := entity.Span; s.Start < 0 || s.End <= s.Start || !utf8.ValidString(e.Text[s.Start:s.End]) {
				t.Fatalf("entities %v of %q", entities, e.Text)
			}
		}
	}
}

// Rows that this reader and encoding/csv both accept are the same. Blanks around a quoted cell, and a second CR at the
// end of a line, are dropped here alone.
func FuzzCSVAgainstStandard(f *testing.F) {
	for _, s := range []string{"a,b\n\"c\n\"\"d\",e\n", "a\r\n\r\n\"b\r\nc\"", "a,\"\",\n", "\"a\"b"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, data string) {
		if strings.HasPrefix(data, "\ufeff") || strings.Contains(data, "\r\r") {
			return // encoding/csv reads a byte-order mark, and such a CR, as text
		}
		padded := strings.Contains(data, ` "`) || strings.Contains(data, `" `)
		records, err := Read(strings.NewReader(data), "x.csv", Format{NoHeader: true})
		standard := csv.NewReader(strings.NewReader(data))
		want, wantErr := standard.ReadAll()
		if err == nil && wantErr != nil && !padded {
			t.Fatalf("no error, but encoding/csv: %v", wantErr)
		}
		if err != nil || wantErr != nil {
			return
		}
		for i, r := range records {
			got := make([]string, len(r.Fields))
			for j, name := range Numbered(len(got)) {
				got[j] = r.Fields[name].(string)
			}
			if len(want) != len(records) || !reflect.DeepEqual(got, want[i]) {
				t.Fatalf("row %d of %d is %q, want %q", i, len(records), got, want)
			}
		}
	})
}

// FuzzEntitiesInText reads entities that are written in a text: JSON, Python, or the record's text with brackets.
func FuzzEntitiesInText(f *testing.F) {
	for _, written := range []string{"['", `[(0, 3, "PER"),]`, `[{'start': 0, 'end': 3, 'label': 'it\'s \x41'}]`,
		"[name : Ada] Lo", "[name : Ada] [name : Ada]", `["\`} {
		f.Add(written, "Ada Lo", "")
		f.Add(written, "Ada Ada", "utf16")
	}
	f.Fuzz(func(t *testing.T, written, text, unit string) {
		if !slices.Contains(units, unit) {
			unit = ""
		}
		if !utf8.ValidString(text) {
			return // of a file it is valid
		}
		entities, _, err := Record{Fields: map[string]any{"entities": written}, offsets: unit}.AllEntities(text)
		for _, e := range entities {
			s := e.Span
			if err == nil && (e.Label == "" || s.Start < 0 || s.Start >= s.End || s.End > len(text)) {
				t.Errorf("%q in %q: entity %+v", written, text, e)
			}
		}
	})
}

// FuzzSurrogates compares loneSurrogate with what encoding/json makes of a text.
func FuzzSurrogates(f *testing.F) {
	for _, text := range []string{`\ud800`, `\\ud800`, `\ud83d\ude00`, `\ude00\ud83d`, `\ud83dx`, `\uD83D\n`, `\u00e9`,
		`\\\ud800`, `a\ud83d\ud83d\ude00`, `\ud83d\\ude00`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var value string
		if strings.ContainsRune(text, utf8.RuneError) || strings.Contains(strings.ToLower(text), `ufffd`) ||
			json.Unmarshal([]byte(`"`+text+`"`), &value) != nil {
			return
		}
		if got, want := loneSurrogate([]byte(text)) >= 0, strings.ContainsRune(value, utf8.RuneError); got != want {
			t.Errorf("%q has a lone surrogate: %v, want %v", text, got, want)
		}
	})
}
