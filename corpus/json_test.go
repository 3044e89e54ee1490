package corpus

import (
	"strings"
	"testing"
)

func TestALoneSurrogateIsAnError(t *testing.T) {
	half := func(at, unit, character string) string {
		return at + ": " + unit + " at character " + character + " is half of a surrogate pair, which is no " +
			"character; write both halves, or the character itself"
	}
	for _, test := range []struct{ name, data, want string }{
		{"x.jsonl", `{"text": "so"}` + "\n" + `{"text": "é\ud800"}`, half("x.jsonl:2", `\ud800`, "12") +
			"; want one JSON object a line"},
		{"x.jsonl", `{"text": "so", "tags": ["a", "\uDC00b"]}`, half("x.jsonl:1", `\uDC00`, "31")},
		{"x.jsonl", `{"\ud83d\ud83d\ude00": 1}`, half("x.jsonl:1", `\ud83d`, "3")},
		{"x.json", "[{\"text\": \"so\"},\n{\"text\":\n \"\\udead\"}]", half("x.json:3, record 2", `\udead`, "3")},
		{"x.json", "{\"data\": [{\"paragraphs\": [\n{\"context\": \"\\ud800 \", \"qas\": []}]}]}",
			half("x.json:2: not SQuAD's form", `\ud800`, "14")},
	} {
		_, err := Read(strings.NewReader(test.data), test.name, Format{})
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %s", test.data, err, test.want)
		}
	}
	if _, err := ParseObject(`{"text": "\ud800"}`); err == nil ||
		!strings.Contains(err.Error(), "half of a surrogate") {
		t.Errorf("a request: %v", err)
	}
	for data, want := range map[string]string{
		`{"text": "\ud83d\uDE00"}`: "😀", `{"text": "\\ud800"}`: `\ud800`, `{"text": "\ufffd"}`: "\ufffd",
		`{"text": "\u00e9\\\u0041"}`: `é\A`,
	} {
		records, err := Read(strings.NewReader(data), "x.jsonl", Format{})
		if err != nil || records[0].Fields["text"] != want {
			t.Errorf("%s: %v, %v, want %q", data, records, err, want)
		}
	}
}

func TestAKeyTwiceInARecordIsAnError(t *testing.T) {
	const advice = "; remove or rename one, as only one of two values can be read"
	for _, test := range []struct{ name, data, want string }{
		{"x.jsonl", `{"text": "so"}` + "\n" + `{"text": "a", "label": "x", "text": "b"}` + "\n" + `{"n": 1, "n": 1}`,
			`x.jsonl:2: two keys are named "text"` + advice + "\n" + `x.jsonl:3: two keys are named "n"` + advice},
		{"x.jsonl", `{"text": "a:b{,}", "\u0074ext": "b"}`, `x.jsonl:1: two keys are named "text"` + advice},
		{"x.jsonl", `["a", {"t": {"u": [], "u": null}}]`, `x.jsonl:1: two keys are named "u"` + advice},
		{"x.json", "[{\"text\": \"so\"},\n{\"text\":\n 1,\n\"text\": [{}]}]",
			`x.json:4, record 2: two keys are named "text"` + advice},
		{"x.json", `{"text": "a", "text": "b"}`, `x.json:1: two keys are named "text"` + advice},
		{"x.json", `{"text": ["a"], "label": ["b"], "text": ["c"]}`, `two keys are named "text"` + advice},
	} {
		format := Format{}
		if strings.HasPrefix(test.data, `{"text": [`) {
			format.Type = columnsForm
		}
		_, err := Read(strings.NewReader(test.data), test.name, format)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %s", test.data, err, test.want)
		}
	}
	if _, err := ParseObject(`{"text": "a", "text": "a"}`); err == nil {
		t.Error("a request with a key twice has no error")
	}
	for _, data := range []string{
		`{"a": {"text": "x"}, "text": "\": \":"}`, `[{"a": 1}, {"a": 2}]`, "{\"a\":\"\t:\"}",
	} {
		if _, err := ParseObject(data); err != nil && strings.Contains(err.Error(), "two keys") {
			t.Errorf("%s: %v", data, err)
		}
	}
}

func BenchmarkObject(b *testing.B) {
	line := []byte(`{"id": "x-1", "text": "` + strings.Repeat("A word of it: so, and more. ", 8) +
		`", "label": "billing", "tokens": [` + strings.Repeat(`"word", `, 20) + `"end"], "meta": {"n": 1.5, "of": "web"}}`)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		if _, _, err := object(line); err != nil {
			b.Fatal(err)
		}
	}
}
