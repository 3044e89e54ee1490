package corpus

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func TestString(t *testing.T) {
	r := Record{Fields: map[string]any{"text": "a b", "number": json.Number("1.50"), "yes": true, "null": nil,
		"empty": ""}}
	for field, want := range map[string]string{"text": "a b", "number": "1.50", "yes": "true", "null": "", "empty": "",
		"absent": ""} {
		got, ok, err := r.String(field)
		if got != want || ok != (want != "") || err != nil {
			t.Errorf("String(%q) = %q, %v, %v, want %q", field, got, ok, err, want)
		}
	}
}

func TestStrings(t *testing.T) {
	r := Record{Fields: map[string]any{
		"list": []any{"a b", json.Number("2"), nil}, "text": " a  b\tc\u00a0d ", "column": []string{"x", "y"},
		"none": []any{}, "null": nil, "empty": "",
	}}
	for field, want := range map[string][]string{
		"list": {"a b", "2", ""}, "text": {"a", "b", "c\u00a0d"}, "column": {"x", "y"}, "none": {}, "null": nil,
		"empty": nil, "absent": nil,
	} {
		got, ok, err := r.Strings(field)
		if !reflect.DeepEqual(got, want) || ok != (want != nil) || err != nil {
			t.Errorf("Strings(%q) = %q, %v, %v, want %q", field, got, ok, err, want)
		}
	}
}

func TestLongCellsAreNoListsOfPython(t *testing.T) {
	if _, ok := ParseCell("['a'" + strings.Repeat(" 'a'", 1<<18) + "]"); ok {
		t.Error("a list of more than 1 MiB is read as Python writes it, whose tokens take many times that")
	}
}

func TestStringsOfJSONCells(t *testing.T) {
	for cell, want := range map[string]string{
		`["to", "New York"]`: `["to" "New York"]`,
		`[3, 0, null]`:       `["3" "0" ""]`,
		`[]`:                 `[]`,
		`[ sic ] to`:         `["[" "sic" "]" "to"]`,
		`['N', 'V']`:         `["N" "V"]`,
		` ["it's", 'V'] `:    `["it's" "V"]`,
		"['N' 'V V'\n 'O']":  `["N" "V V" "O"]`,
		`[1 0 -1]`:           `["1" "0" "-1"]`,
		`[1. 0. 2.5]`:        `["1" "0" "2.5"]`,
		`['a', None, True,]`: `["a" "" "true"]`,
		`[12-15]`:            `["[12-15]"]`,
		`['a' b]`:            `["['a'" "b]"]`,
		`[" go away`:         `["[\"" "go" "away"]`,
	} {
		values, _, err := Record{Place: Place{File: "data.csv", Line: 2},
			Fields: map[string]any{"tags": cell}}.Strings("tags")
		got := fmt.Sprintf("%q", values)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %s, want %s", cell, got, want)
		}
	}
}

func TestAnswersOfJSONCells(t *testing.T) {
	const context = "the cat sat [1]"
	for cell, want := range map[string]string{
		`cat`: `[cat]`, `["cat", "sat"]`: `[cat sat]`, `[]`: `[]`, `[1]`: `[[1]]`,
		`{"text": ["cat"], "answer_start": [4]}`: `[cat]`,
		`["dog"]`:                                `data.csv:2: answer 1 is "dog", which is not in the context; an answer is a verbatim part of it`,
	} {
		answers, ok, err := Record{Place: Place{File: "data.csv", Line: 2},
			Fields: map[string]any{"answers": cell}}.Answers(context)
		texts := []string{}
		for _, answer := range answers {
			texts = append(texts, answer.Text)
		}
		got := fmt.Sprint(texts)
		if err != nil {
			got, ok = err.Error(), true
		}
		if got != want || !ok {
			t.Errorf("%s: %s, %v, want %s", cell, got, ok, want)
		}
	}
}

func TestExample(t *testing.T) {
	at := Place{File: "file", Line: 7}
	for name, c := range map[string]struct {
		fields map[string]any
		want   Example
	}{
		"text alone":       {map[string]any{"text": "a b"}, Example{Text: "a b"}},
		"an empty text":    {map[string]any{"text": ""}, Example{}},
		"a number as text": {map[string]any{"text": json.Number("12")}, Example{Text: "12"}},
		"a pair": {map[string]any{"text": "a", "pair": "b"},
			Example{Text: "a", Pair: "b", Paired: true}},
		"an empty pair is a pair": {map[string]any{"text": "a", "pair": ""}, Example{Text: "a", Paired: true}},
		"a null pair is absent":   {map[string]any{"text": "a", "pair": nil}, Example{Text: "a"}},
		"words are joined by blanks": {map[string]any{"words": []any{"Zoë", "is", "in"}},
			Example{Text: "Zoë is in", Words: []Span{{0, 4}, {5, 7}, {8, 10}}}},
		"words may hold blanks": {map[string]any{"words": []string{"1 / 2", "mile"}},
			Example{Text: "1 / 2 mile", Words: []Span{{0, 5}, {6, 10}}}},
		"an empty list of words": {map[string]any{"words": []any{}}, Example{Words: []Span{}}},
		"words of a text": {map[string]any{"text": " It's\u00a0Zoë.",
			"words": []string{"It", "'s", "Zoë", "."}},
			Example{Text: " It's\u00a0Zoë.", Words: []Span{{1, 3}, {3, 5}, {7, 11}, {11, 12}}}},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Place, c.want.WordsGiven = at, c.want.Words != nil
			got, err := Record{Place: at, Fields: c.fields}.Example()
			if err != nil || !reflect.DeepEqual(got, c.want) {
				t.Errorf("got %+v, %v, want %+v", got, err, c.want)
			}
		})
	}
}

func TestEntitiesAreByteSpansInOrder(t *testing.T) {
	entity := func(start, end, label string) any {
		return map[string]any{"start": json.Number(start), "end": json.Number(end), "label": label}
	}
	// Characters: Zoë is 3 (4 bytes), 🏥 is 1 (4 bytes; 2 in UTF-16, which offsets do not count).
	const text = "Zoë 🏥 Nairobi"
	r := Record{Fields: map[string]any{"entities": []any{entity("6", "13", "LOC"), entity("0", "3", "PER"),
		entity("4", "5", "ORG")}}}
	want := []Entity{{"PER", Span{0, 4}}, {"ORG", Span{5, 9}}, {"LOC", Span{10, 17}}}
	got, ok, err := r.Entities(text)
	if !reflect.DeepEqual(got, want) || !ok || err != nil {
		t.Errorf("got %v, %v, %v, want %v", got, ok, err, want)
	}

	r.Fields["entities"] = []any{entity("6.0", "13.0", "LOC"), []any{"0.0", json.Number("3.0"), "PER"},
		map[string]any{"offset": json.Number("4.0"), "length": json.Number("1.0"), "label": "ORG"}} // of pandas
	if got, ok, err = r.Entities(text); !reflect.DeepEqual(got, want) || !ok || err != nil {
		t.Errorf("floats: got %v, %v, %v, want %v", got, ok, err, want)
	}
	r.Fields["entities"] = []any{entity("6.5", "13", "LOC")}
	if _, _, err = r.Entities(text); err == nil || !strings.HasSuffix(err.Error(), `"6.5"; want a whole number`) {
		t.Errorf("6.5: error %v", err)
	}

	if got, ok, err := (Record{Fields: map[string]any{"entities": nil}}).Entities("a"); got != nil || ok || err != nil {
		t.Errorf("of null: got %v, %v, %v, want none", got, ok, err)
	}
	if got, ok, err := (Record{Fields: map[string]any{"entities": []any{}}}).Entities("a"); len(got) != 0 || !ok ||
		err != nil {
		t.Errorf("of an empty list: got %v, %v, %v, want a text without entities", got, ok, err)
	}
}

func TestStringsReturnsACopy(t *testing.T) {
	r := Record{Fields: map[string]any{"tags": []string{"1", "2"}}}
	first, _, _ := r.Strings("tags")
	first[0] = "changed"
	if second, _, _ := r.Strings("tags"); second[0] != "1" {
		t.Errorf("changing the returned list changes the record: %q", second)
	}
}

func TestErrorsNameTheFieldsOfTheFile(t *testing.T) {
	const table = "body,team\na,b\n"
	read := func(fields map[string]string) ([]Record, error) {
		return Read(strings.NewReader(table), "a.csv", Format{Fields: fields})
	}
	_, err := read(map[string]string{"text": "body", "label": "tem"})
	const want = `a.csv: no field "tem" for label; did you mean "team"? available: body, team`
	if err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	records, err := read(map[string]string{"text": "body", "label": "team"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := records[0].FieldNames(), "body, team"; got != want {
		t.Errorf("FieldNames = %s, want %s", got, want)
	}
}

func TestMessagesHaveTheSingularForOne(t *testing.T) {
	var m mistakes
	for range mistakesShown + 1 {
		m.add(Place{File: "x"}, "wrong")
	}
	if got, want := m.err("x").Error(), "x: and 1 more mistake"; !strings.HasSuffix(got, "\n"+want) {
		t.Errorf("got\n%s\nwant the last line %s", got, want)
	}
}

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

func TestOffsetsMayBeTextsInAList(t *testing.T) {
	for _, list := range []string{`["0", "4", "PER"]`, `[0, 4, "PER"]`, `["PER", 0, 4]`, `["PER", "0", "4"]`,
		`[0, 4, "7"]`} {
		entities, ok, err := Record{Fields: map[string]any{"entities": "[" + list + "]"}}.Entities("Anna is here")
		if err != nil || !ok || len(entities) != 1 || entities[0].Span != (Span{0, 4}) {
			t.Errorf("%s: %v, %v, %v", list, entities, ok, err)
		}
	}
}

func TestValuesThatWhereCompares(t *testing.T) {
	for _, test := range []struct {
		field any
		want  []string
	}{
		{`["a", "b"]`, []string{`["a", "b"]`, "a", "b"}}, {`['a', 'b']`, []string{`['a', 'b']`, "a", "b"}},
		{"[]", []string{"[]", ""}}, {`{"a": 1}`, []string{`{"a": 1}`}}, {`{'a': 1}`, []string{`{'a': 1}`}},
		{"[a]", []string{"[a]"}}, {"", []string{""}}, {nil, []string{""}}, {[]any{}, []string{""}},
	} {
		if got, ok := valuesOf(test.field); !ok || !slices.Equal(got, test.want) {
			t.Errorf("%v: %q, %v; want %q", test.field, got, ok, test.want)
		}
	}
}
