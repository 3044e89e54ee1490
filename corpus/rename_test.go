package corpus

import (
	"strings"
	"testing"
)

// The form of chat logs: {"userInput": {"text": …}, "labels": …}.
func TestFieldsOfNestedObjects(t *testing.T) {
	const data = `{"userInput": {"text": "hi", "lang": "en"}, "a.b": 1, "a": {"b": 2, "c": null}}` + "\n" +
		`{"userInput": null, "a.b": 3}` + "\n"
	read := func(fields map[string]string) ([]Record, error) {
		return Read(strings.NewReader(data), "x.jsonl", Format{Fields: fields})
	}
	records, err := read(map[string]string{"text": "userInput.text", "label": "a.b"})
	if err != nil {
		t.Fatal(err)
	}
	if text, _, _ := records[0].String("text"); text != "hi" {
		t.Errorf("text %q", text)
	}
	if label, _, _ := records[0].String("label"); label != "1" { // the name with the dot comes first
		t.Errorf("label %q, want 1", label)
	}
	if text, ok, err := records[1].String("text"); text != "" || ok || err != nil {
		t.Errorf("text %q, %v, %v of a record without one", text, ok, err)
	}
	if value, ok := Field(records[0].Fields, "a.c"); value != nil || !ok {
		t.Errorf("a.c is %v, %v, want null", value, ok)
	}

	for _, test := range []struct{ path, want string }{
		{"userInput.txt", `no field "userInput.txt" for text; did you mean "userInput.text"? available: a.b, a.b, ` +
			`a.c, userInput.lang, userInput.text`},
		{"a.c", `field "a.c" for text is empty in every record`},
		{"userInput.text.more", `no field "userInput.text.more" for text`},
	} {
		_, err := read(map[string]string{"text": test.path})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want %s", test.path, err, test.want)
		}
	}
}

// The first record may lack fields that others have.
func TestAvailableFieldsAreThoseOfAllRecords(t *testing.T) {
	records := []Record{
		{Fields: map[string]any{"text": "a", "ann": map[string]any{"score": 1.0}}},
		{Fields: map[string]any{"text": "b", "ann": map[string]any{"emotions": "joy", "score": 2.0}}},
	}
	_, err := Format{Fields: map[string]string{"labels": "ann.emotoins"}}.Rename("f.json", records)
	const want = `f.json: no field "ann.emotoins" for labels; did you mean "ann.emotions"? available: ann.emotions, ` +
		`ann.score, text`
	if err == nil || err.Error() != want {
		t.Errorf("Rename = %v, want %s", err, want)
	}
}

// A field that the first record lacks, and that others have without a value.
func TestAFieldWithoutAnyValueIsEmpty(t *testing.T) {
	records := []Record{
		{Fields: map[string]any{"text": "a"}},
		{Fields: map[string]any{"text": "b", "topic": nil}},
	}
	_, err := Format{Fields: map[string]string{"label": "topic"}}.Rename("f.jsonl", records)
	const want = `f.jsonl: field "topic" for label is empty in every record; want a value in one at least`
	if err == nil || err.Error() != want {
		t.Errorf("Rename = %v, want %s", err, want)
	}
}
