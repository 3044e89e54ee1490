package corpus

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"
)

// shownRecords writes the given fields of records on a line.
func shownRecords(records []Record, names ...string) string {
	var all []string
	for _, r := range records {
		var fields []string
		for _, name := range names {
			value, _ := Field(r.Fields, name)
			fields = append(fields, fmt.Sprint(value))
		}
		all = append(all, strings.Join(fields, " "))
	}
	return strings.Join(all, "; ")
}

// jsonForms are files of JSON in which the records are not the elements of the file, and their fields text and label,
// or the end of the error that reading them gives.
var jsonForms = map[string]struct {
	text   string
	format Format
	want   string
}{
	"under a key": {`{"version": 2, "data": [{"text": "so", "label": "a"}, {"text": "no", "label": "b"}]}`,
		Format{Records: "data"}, "so a; no b"},
	"under keys": {"{\"about\": {\"items\": [1, \"]}\\\"\"]},\n \"data\": {\"n\": 2,\n \"items\": [\n{\"text\": " +
		"\"so\", \"label\": 1}]},\n" +
		`"more": [{"text": "no"}]}`, Format{Records: "data.items"}, "so 1"},
	"under a key with a dot": {`{"b": {}, "a.b": [{"text": "so", "label": true}]}`, Format{Records: "a.b"}, "so true"},
	"lists of columns":       {`{"text": ["so", "no"], "label": [1, null]}`, Format{Type: "columns"}, "so 1; no <nil>"},
	"columns of pandas": {`{"text": {"0": "so", "1": "no", "10": "it"}, "label": {"0": "a", "10": "c", "1": "b"}}`,
		Format{Type: "columns"}, "so a; no b; it c"},
	"numbered records of pandas": {`{"0": {"text": "so", "label": "a"}, "10": {"text": "it", "label": "c"}, "1": ` +
		`{"text": "no", "label": "b"}}`, Format{Type: "columns"}, "so a; no b; it c"},
	"a line of numbered records": {`{"0": {"text": "so", "label": "a"}, "1": {"text": "it"}}`, Format{},
		"the file is one object; format: columns reads its numbered records; a record alone is written in [ ]"},
	"columns with numbers as names": {`{"0": {"0": "so", "1": "no"}, "1": {"0": "a", "1": "b"}}`,
		Format{Type: "columns", Fields: map[string]string{"text": "0", "label": "1"}}, "so a; no b"},
	"columns under a key": {`{"rows": {"text": ["so"], "label": ["a"]}, "n": 1}`, Format{Type: "columns",
		Records: "rows"},
		"so a"},

	"lists under a key": {`{"classes": ["a"], "all": [["so", "a"], ["no", {"b": 1}]]}`, Format{Records: "all",
		Fields: map[string]string{"text": "0", "label": "1"}}, "so a; no map[b:1]"},
	"lists in lines": {"[\"so\", \"a\"]\n[\"no\", \"b\"]\n", Format{Type: "jsonl", Fields: map[string]string{"text": "0",
		"label": "1"}}, "so a; no b"},
	"an array in a line": {`[{"text": "so"}, {"text": "no"}]`, Format{Type: "jsonl"},
		"a.json:1: the record is a list; want one JSON object a line"},

	"no such key": {`{"a": 1, "b": [{"text": "so"}]}`, Format{Records: "c"},
		`a.json:1: no key "c", which records names; the object has "a", "b"`},
	"a key of no object": {`{"a": [{"text": "so"}]}`, Format{Records: "a.b"},
		`a.json:1: '[' where the object with the key "b" begins; records names a path of keys of objects`},
	"no list": {"{\"a\":\n 5}", Format{Records: "a"},
		`a.json:2: '5' where the records begin; want an array of objects under records: a`},
	"it ends": {`{"a": [{"text": "so"}`, Format{Records: "a"},
		`a.json:1, record 1: the file ends within this record; want ] at its end`},
	"a column that is shorter": {`{"text": ["so", "no"], "label": [1]}`, Format{Type: "columns"},
		`a.json:1: column "text" has 2 values, and column "label" has 1; want one for each record`},
	"no column": {`{"text": ["so"], "n": 1}`, Format{Type: "columns"},
		`a.json:1: column "n" is a number; want a list with a value for each record`},
	"a line of columns": {`{"text": ["so", "no"], "label": [1, 2]}`, Format{},
		"a.json:1: the file is one object; format: columns reads lists with a value for each record; a record " +
			"alone is " +
			"written in [ ]"},
	"texts by label": {`{"billing": ["so", "no"], "support": ["it"]}`, Format{},
		"a.json:1: the file is one object; it has lists of different lengths; where they are the texts of a label " +
			`each, write an object for each text, {"text": TEXT, "label": KEY}, in a file of JSON lines; a record ` +
			"alone is written in [ ]"},
	"a line with a list": {`{"about": {"n": 1}, "items": [{"text": "so"}]}`, Format{},
		"a.json:1: the file is one object; records: items reads the list of objects in it; a record alone is " +
			"written in [ ]"},
	"lines with a list": {"{\n\"about\": {\"n\": 1},\n\"all\": {\"items\": [{\"text\": \"so\"}]}}", Format{},
		"one object a line, or SQuAD's form, which begins with \"version\" or \"data\"; records: all.items reads " +
			"the list " +
			"of objects in it"},
	"data, without paragraphs": {`{"data": [{"text": "so", "label": "a"}]}`, Format{},
		"a.json:1: 1 object under the key \"data\", and none has paragraphs, as in SQuAD's form; records: data " +
			"reads them"},
	"columns of other records": {`{"text": {"0": "so", "1": "no"}, "label": {"1": "a", "2": "b"}}`,
		Format{Type: "columns"},
		`a.json:1: columns "label" and "text" are not of the same records: one alone has number 0`},
	"columns of lists and objects": {`{"text": ["so", "no"], "label": {"0": "a", "1": "b"}}`, Format{Type: "columns"},
		"so a; no b"},
	"one record":         {`{"text": "so", "label": "a", "entities": [{"start": 0}]}`, Format{}, "so a"},
	"records of another": {`{"text": "so"}`, Format{Type: "jsonl", Records: "a"}, "format jsonl has no records option"},
}

func TestRecordsInsideOfJSON(t *testing.T) {
	for name, test := range jsonForms {
		t.Run(name, func(t *testing.T) {
			records, err := Read(strings.NewReader(test.text), "a.json", test.format)
			got := shownRecords(records, "text", "label")
			if err != nil {
				got = err.Error()
			}
			if got != test.want && (err == nil || !strings.Contains(got, test.want)) {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}

func TestInside(t *testing.T) {
	for text, want := range map[string]string{
		`{"tokens": [["a"], ["b"]], "tags": [["O"], ["O"]]}`:           " columns",
		`{"tokens": [["a"], ["b"]], "tags": [["O"`:                     " columns",
		`{"tokens": [["a"], ["b"]], "tags": [["O"], ["O"], ["O"]]}`:    "tags [tokens]",
		`{"text": {"0": "a", "1": "b"}, "label": {"0": 1, "1": 2}}`:    " columns",
		`{"tokens": {"0": ["a"], "7": ["b"]}, "label": {"0`:            " columns",
		`{"text": {"0": "a", "x": "b"}, "label": {"0": 1, "x": 2}}`:    "",
		`{"names": {"0": "x", "1": "y"}, "data": [{"text": "a"}]}`:     "data",
		`{"names": {"0": "x", "1": "y"}, "rows": [[0, "a"], [1, ""]]}`: "rows",
		`{"0": {"text": "a"}, "1": {"text": "b"}}`:                     " columns",
		`{"0": {"text": "a", "in": [{"x": 1}]}, "1": {"text": "b"}}`:   " columns",
		`{"1": {"data": [{"x": 1}]}, "2": {"data": [{"x": 1}]}}`:       "1.data",
		`{"labels": [{"x": 1}, {"x": 2}], "train": [{"text": "a"}]}`:   "train [labels]",
		`{"train": [{"text": "a"}], "test": [{"x": 1}, {"x": 2}]}`:     "train [test]",
		`{"few": [{"x": 1}], "many": [{"x": 1}, {"x": 2}]}`:            "many [few]",
		`{"test": [["a"], ["b"], ["c"]], "train": [["a"], ["b"]]}`:     "train [test]",
		`{"val": [["a", "x"]], "train": [["b", "x"]]}`:                 "train [val]",
		`{"d": {"train": [{"x": 1}], "dev": [{"x": 1}]}, "e": [{}]}`:   "d.train [dev]",
	} {
		got, beside, columns := Inside(t.Context(), []byte(text))
		if columns {
			got += " columns"
		}
		if beside != nil {
			got += fmt.Sprint(" ", beside)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// Each takes some 0.2 s, and minutes where a path is joined for each array in it.
func TestInsideOfHostileJSONIsLinear(t *testing.T) {
	const size = 1 << 20 // bytes, about
	begin := time.Now()
	for name, test := range map[string]struct{ text, want string }{
		"deep, with arrays": {strings.Repeat(`{"a":[],"b":`, size/12), ""},
		"deep, with the records before": {`{"train":[{"x":1}],"a":` + strings.Repeat(`{"a":[{}],"b":`, size/14),
			"train"},
		"deep, with a path of its own to all": {strings.Repeat(`{"train":[{}],"b":`, size/18), ""},
		"a long key above many": {`{"` + strings.Repeat("k", size/2) + `":{` +
			strings.Repeat(`"train":[{}],`, size/26), ""},
		"a key of 4,000 bytes above many": {`{"` + strings.Repeat("k", 4000) + `":{` +
			strings.Repeat(`"train":[{}],`, size/13), ""},
		"brackets alone": {`{"a":` + strings.Repeat("[", size), ""},
	} {
		got, _, _ := Inside(t.Context(), []byte(test.text))
		if test.want != "" && got != test.want {
			t.Errorf("%s: %.40q, want %q", name, got, test.want)
		}
		if len(got) > maxDepth*(maxKey+1) {
			t.Errorf("%s: a path of %d bytes, which records cannot name", name, len(got))
		}
	}
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("it took %v", took)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, _, _ := Inside(ctx, []byte(`{"train":[{}]}`)); got != "" {
		t.Errorf("%q after the context ended", got)
	}
}
