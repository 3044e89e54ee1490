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
