package corpus

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
)

const smallSquad = `{"version": "v2.0", "data": [
 {"title": "Kites", "paragraphs": [
  {"context": "A red kite flew.", "qas": [
   {"id": "1", "question": "What flew?", "answers": [{"text": "red kite", "answer_start": 2}], "is_impossible": false},
   {"id": "2", "question": "Who flew?", "answers": [], "is_impossible": true}]},
  {"context": "Zoë saw it.", "qas": [{"id": "3", "question": "Who saw it?", "answers": [{"text": "Zoë", "answer_start": 0}]}]}]}]}`

func readSquad(t *testing.T, text string) ([]Record, error) {
	t.Helper()
	return Read(strings.NewReader(text), "kites.json", Format{})
}

func TestSquadFileHasRecordPerQuestion(t *testing.T) {
	records, err := readSquad(t, smallSquad)
	if err != nil {
		t.Fatal(err)
	}
	if len(records) != 3 {
		t.Fatalf("%d records, want 3", len(records))
	}
	for i, want := range []struct {
		line     int
		question string
		answers  []TextSpan
	}{
		{3, "What flew?", []TextSpan{{"red kite", Span{2, 10}}}},
		{3, "Who flew?", []TextSpan{}},
		{6, "Who saw it?", []TextSpan{{"Zoë", Span{0, 4}}}},
	} {
		e, err := records[i].Example()
		if err != nil {
			t.Fatal(err)
		}
		answers, ok, err := records[i].Answers(e.Pair)
		if err != nil || !ok || len(answers) != len(want.answers) || len(answers) > 0 && answers[0] != want.answers[0] {
			t.Errorf("question %d: answers %+v, %v, %v, want %+v", i+1, answers, ok, err, want.answers)
		}
		if e.Text != want.question || !e.Paired || e.Place.Line != want.line {
			t.Errorf("question %d is %q of line %d, want %q of line %d", i+1, e.Text, e.Place.Line, want.question,
				want.line)
		}
	}
}

func TestMalformedSquadFiles(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{`"qas": [{"id": "3"`, `"qas": {"id": "3"`, "kites.json:6: not SQuAD's form"},
		{`"qas": [` + "\n", `"qas": "none", "others": [` + "\n",
			"kites.json:3: not SQuAD's form: qas has a wrong value, the string here; a paragraph has a context and qas"},
		{`"data": [`, `"data": [7, `, "kites.json:1: not SQuAD's form: data has a wrong value, the number here"},
		{`"context": "Zoë saw it."`, `"context": 5, "other": 1`, ""}, // the task checks the context
		{`{"id": "3", "question": "Who saw it?", "answers": [{"text": "Zoë", "answer_start": 0}]}`, `null`,
			"kites.json:6: a question is null"},
		{`{"id": "3", "question": "Who saw it?", "answers": [{"text": "Zoë", "answer_start": 0}]}`, `7`,
			"kites.json:6: not SQuAD's form"},
		{`"data": [`, `"data": [,`, `kites.json:1: not SQuAD's form: not JSON from ",\n`},
		{"Zoë saw", "Zo\xeb saw", "kites.json:6: byte 0xeb"},
		{`]}]}]}]}`, `]}]}]}]} {}`, `kites.json:6: not SQuAD's form: "{}" after the file's end`},
	} {
		_, err := readSquad(t, strings.Replace(smallSquad, c.from, c.to, 1))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.to, err, c.want)
		}
	}
}

func TestSquadTitleMayBeNumber(t *testing.T) {
	records, err := readSquad(t, strings.Replace(smallSquad, `"Kites"`, "7.50", 1))
	if err != nil {
		t.Fatal(err)
	}
	if title, ok, err := records[0].String("title"); title != "7.50" || !ok || err != nil {
		t.Errorf("title %q, %v, %v, want 7.50", title, ok, err)
	}
}

func TestAnswerStartsMustMatchTexts(t *testing.T) {
	for starts, want := range map[string]string{
		`[2]`:    "",
		`[2.0]`:  "",
		`null`:   "",
		`2`:      `kites.jsonl:1: field "answers": its "answer_start" is a number; want a list, as long as that of "text"`,
		`[2, 6]`: `kites.jsonl:1: field "answers": 1 of "text" and 2 of "answer_start"; want one for each`,
		`[]`:     `kites.jsonl:1: field "answers": 1 of "text" and 0 of "answer_start"; want one for each`,
	} {
		records, err := Read(strings.NewReader(`{"answers": {"text": ["red kite"], "answer_start": `+starts+`}}`),
			"kites.jsonl", Format{})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = records[0].Answers("A red kite flew.")
		if (err == nil) != (want == "") || err != nil && err.Error() != want {
			t.Errorf("answer_start: %s: error %v, want %q", starts, err, want)
		}
	}
}

func TestJSONLinesWithFieldDataAreNotSquad(t *testing.T) {
	records, err := Read(strings.NewReader(`{"data": "a text", "label": "x"}`+"\n"), "lines.json",
		Format{Fields: map[string]string{"text": "data"}})
	if err != nil || len(records) != 1 || records[0].Fields["text"] != "a text" {
		t.Errorf("records %+v, error %v", records, err)
	}
}

func TestRenamedQuestionKeepsContext(t *testing.T) {
	text := `{"q": "What flew?", "context": "A red kite flew.", "answers": ["red kite"]}` + "\n"
	records, err := Read(strings.NewReader(text), "kites.jsonl", Format{Fields: map[string]string{"question": "q"}})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := records[0].Example(); err != nil || e.Text != "What flew?" || e.Pair != "A red kite flew." {
		t.Errorf("example %+v, %v: want the field context as the context if only the question is renamed", e,
			err)
	}
}

func TestRenamedQuestionAndContextHideTextAndPair(t *testing.T) {
	text := `{"text": "a title", "question": "What flew?", "context": "A red kite flew."}` + "\n"
	for _, fields := range []map[string]string{{"context": "context"}, {"question": "question"}} {
		records, err := Read(strings.NewReader(text), "kites.jsonl", Format{Fields: fields})
		if err != nil {
			t.Fatal(err)
		}
		if e, err := records[0].Example(); err != nil || e.Text != "What flew?" || e.Pair != "A red kite flew." {
			t.Errorf("%v: example %+v, %v", fields, e, err)
		}
	}
}

func TestIsImpossible(t *testing.T) {
	for impossible, want := range map[string]string{"True": "", "false": "", "": "",
		"perhaps": `field "is_impossible" is "perhaps"; want true or false`} {
		r := Record{Fields: map[string]any{"is_impossible": impossible, "answers": []any{"kite"}}}
		answers, ok, err := r.Answers("a kite")
		switch {
		case want != "":
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: error %v, want %q", impossible, err, want)
			}
		case err != nil || !ok || (len(answers) == 0) != (impossible == "True"):
			t.Errorf("%q: answers %v, %v, %v", impossible, answers, ok, err)
		}
	}
}

func TestTokensOfWindows(t *testing.T) {
	e := Example{Text: "q", Pair: "abc def ghi", Paired: true}
	// <q|abcde|, <q|defgh|, <q|ghi|
	e.Windows = Windowing{MaxLength: 9, Windows: true, Stride: 2}.Encode(letterTokenizer{}, &e)
	want := []Span{{}, {3, 6}, {}}
	for w, window := range e.Windows {
		if got := window.TokensOf(Span{4, 7}, e.Pair); got != want[w] { // def
			t.Errorf("windows %q: tokens %v of window %d, want %v", formatWindows(e.Windows), got, w, want[w])
		}
	}
}

func FuzzSquad(f *testing.F) {
	f.Add(smallSquad)
	f.Add(`{"data":[{"paragraphs":[{"context":null,"qas":[{}]}]}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		records, err := Read(strings.NewReader(text), "kites.json", Format{})
		if err != nil {
			return
		}
		for _, r := range records {
			if e, err := r.Example(); err == nil {
				r.Answers(e.Pair)
			}
		}
	})
}

// The positions in a context are found once, not for each of its questions.
func TestManyQuestionsAboutALongContextTakeLinearTime(t *testing.T) {
	const questions = 500
	context := strings.Repeat("ä kite ", 100_000)
	var qas []string
	for i := range questions {
		const question = `{"id": "%d", "question": "q", "answers": [{"text": "kite", "answer_start": %d}]}`
		qas = append(qas, fmt.Sprintf(question, i, 2+7*i))
	}
	data := `{"data": [{"paragraphs": [{"context": "` + context + `", "qas": [` + strings.Join(qas, ",") + `]}]}]}`
	records, err := Read(strings.NewReader(data), "x.json", Format{})
	if err != nil || len(records) != questions {
		t.Fatalf("%d records, %v", len(records), err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for i, r := range records {
		answers, _, err := r.Answers(r.Fields["context"].(string))
		if err != nil || len(answers) != 1 || answers[0].Span != (Span{3 + 8*i, 7 + 8*i}) {
			t.Fatalf("question %d: %v, %v", i, answers, err)
		}
	}
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; made > 20<<20 { // 8 bytes for each of 700,000 characters
		t.Errorf("%d MiB were made for the positions in a text of %d bytes", made>>20, len(context))
	}
}
