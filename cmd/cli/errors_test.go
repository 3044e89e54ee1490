package cli

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/mistakes"
)

func TestErrors(t *testing.T) {
	trainMails(t)
	status, out, log := call("", "errors", "runs/mails")
	if status != 0 || !strings.HasPrefix(out, "team, team: 4 of 8 texts of dev wrong\n\n1. mails.csv:") ||
		strings.Count(out, "   gold ") != 4 || !strings.Contains(out, "   gold billing, predicted support (0.5") &&
		!strings.Contains(out, "   gold support, predicted billing (0.5") {
		t.Errorf("%d, %s%s, want the four mails of dev that are wrong", status, out, log)
	}
	const listed = "team, team: 4 of 8 texts of dev wrong; 1 of 4 listed, the one of the largest loss\n\n1. "
	if out := mustCall(t, "", "errors", "runs/mails", "--top", "1"); !strings.HasPrefix(out, listed) ||
		strings.Contains(out, "\n2. ") {
		t.Errorf("--top 1: %s", out)
	}

	// right ones too, as a table and as lines; the lines of all mails
	mustCall(t, "", "errors", "runs/mails", "--all", "--top", "0", "-o", "all.csv", "--data", "team=mails.csv")
	file, err := os.Open("all.csv")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil || len(rows) != strings.Count(mails(), "\n") {
		t.Fatalf("%d rows, %v; want a header and one for each mail", len(rows), err)
	}
	texts := strings.Split(mails(), "\n")
	lines := linesOf(t, mustCall(t, "", "errors", "runs/mails", "--all", "--top", "0", "--format", "jsonl", "--data",
		"team=mails.csv"))
	last := lines[0]["loss"].(float64)
	for i, row := range rows[1:] {
		cell := map[string]string{}
		for c, name := range rows[0] {
			cell[name] = row[c]
		}
		at, err := strconv.Atoi(cell["line"])
		if err != nil || cell["file"] != "mails.csv" || cell["text"]+","+cell["gold"] != texts[at-1] {
			t.Errorf("row %d: %v, want a line of mails.csv", i+1, row)
		}
		line := lines[i]
		loss := line["loss"].(float64)
		if right := line["gold"] == line["predicted"]; line["right"] != right ||
			cell["right"] != strconv.FormatBool(right) || line["text"] != cell["text"] || loss > last {
			t.Errorf("row %d: %v, as a line %v", i+1, row, line)
		}
		last = loss
	}

	mustCall(t, "", "errors", "runs/mails", "-o", "lines.json")
	if lines := readFile(t, "lines.json"); !strings.HasPrefix(lines, `{"task":`) {
		t.Errorf("lines.json has %.40q, want lines of JSON", lines)
	}
	mistakesOfErrors(t)
}

// mistakesOfErrors checks the errors for the run of trainMails.
func mistakesOfErrors(t *testing.T) {
	t.Helper()
	for flags, want := range map[string]string{
		"-o w.parquet":           "--out w.parquet: parquet is none of the formats of the output",
		"-o w.csv.gz":            "--out w.csv.gz: the output is not compressed; want a name without .gz",
		"-o w.xlsx --format csv": "--out w.xlsx: the output is no spreadsheet",
		"--task tone":            `no task "tone"`, "--top -1": "--top -1: want a number from 0 on",
		"--split test": "no test", "--out .": "it is a folder", "--format xml": `"xml"`,
	} {
		status, _, log := call("", append([]string{"errors", "runs/mails"}, strings.Fields(flags)...)...)
		if status == 0 || !strings.Contains(log, want) {
			t.Errorf("%s: %d, %s; want %q", flags, status, log, want)
		}
	}
}

// The cells of a table are data: labels as they are, lists as JSON.
func TestMistakesAsATable(t *testing.T) {
	right, loss, tag, pair := false, 0.5, "B-x", "other"
	heads := []mistakesList{{Head: mistakes.Head{Judged: []mistakes.Judged{
		{Task: "t", Head: "h", File: "a.json", Line: 2, Entry: "record 3", Right: &right, Loss: &loss,
			Gold: []string{"a,b", "c"}, Predicted: []string{}, Text: "text", Pair: &pair},
		{File: "b", Line: 1, NoLoss: "why", Gold: "x\x1b", Predicted: "none", Abstained: true},
		{File: "c", Line: 1, Gold: []*string{&tag, nil}, Predicted: json.Number("2"),
			Spans: []mistakes.Span{{Kind: mistakes.Missed, Gold: "x", Start: 0, End: 4, Text: "text"}}},
	}}}}
	const want = "task,head,file,line,entry,right,loss,no_loss,error,gold,predicted,abstained,probability,spans," +
		"text,pair\n" +
		`t,h,a.json,2,record 3,false,0.5,,,"[""a,b"",""c""]",[],,,,text,other` + "\n" +
		",,b,1,,,,why,,x\x1b,none,true,,,,\n" +
		`,,c,1,,,,,,"[""B-x"",null]",2,,,"[{""kind"":""missed"",""gold"":""x"",""start"":0,""end"":4,` +
		`""text"":""text""}]",,` + "\n"
	var out strings.Builder
	if err := writeMistakesTable(&out, "csv", heads); err != nil || out.String() != want {
		t.Errorf("%v\n%s\nwant\n%s", err, out.String(), want)
	}
}

func listsOfMistakes() []mistakesList {
	right, error, loss, pair := false, -0.5, 2.5, "the other"
	tagged := mistakes.Judged{File: "a.jsonl", Line: 7, Right: &right, Loss: &loss, Text: "\x1b[2Jin Rome\nand Bath",
		Spans: []mistakes.Span{{Kind: mistakes.Missed, Gold: "city", Start: 7, End: 11, Text: "Rome"},
			{Kind: mistakes.Label, Gold: "city", Predicted: "x\x1b", Start: 16, End: 20, Text: "Bath"}}}
	number := mistakes.Judged{File: "b.csv", Line: 2, Error: &error, Text: "one", Pair: &pair, Gold: json.Number("2"),
		Predicted: json.Number("1.5")}
	answered := true
	labelled := []mistakes.Judged{
		{File: "c\x1b.csv", Line: 1, Entry: "record 2", Right: &right, NoLoss: `train has no label "z\x1b"`, Gold: "z",
			Predicted: "a", Text: "two"},
		{File: "c.csv", Line: 3, Right: &right, Gold: []string{"a", "b"}, Predicted: []string{}, Abstained: true,
			Probability: &loss, Text: "three"},
		{File: "c.csv", Line: 4, Right: &answered, Loss: &loss, Gold: map[string]any{"rank": "\u009b"},
			Predicted: []any{}, Text: "four"},
	}
	return []mistakesList{
		{mistakes.Head{Task: "names", Head: "names", Examples: 9, Wrong: 2, Judged: []mistakes.Judged{tagged},
			Spans: map[string]int{"right": 3, "missed": 1, "label": 1}}, 2},
		{mistakes.Head{Task: "like", Head: "like", Examples: 3, Numbers: true, Judged: []mistakes.Judged{number}}, 3},
		{mistakes.Head{Task: "pos", Head: "pos", Examples: 1, Words: true, Spans: map[string]int{"right": 5}}, 0},
		{mistakes.Head{Task: "topic", Head: "topic", Examples: 9, Wrong: 2, Judged: labelled}, 9},
		{mistakes.Head{Task: "none", Head: "none"}, 0},
	}
}

// What a terminal would obey is not written to it, and colours only where they are asked for.
func TestMistakesAsText(t *testing.T) {
	for colours, want := range map[bool]string{
		false: `names, names: 2 of 9 texts of dev wrong; spans: 3 right, 1 missed, 0 spurious, 1 with a wrong label, ` +
			`0 with a wrong boundary; 1 of 2 listed, the one of the largest loss

1. a.jsonl:7, loss 2.5000
   "Rome": missed city
   "Bath": gold city, predicted "x\x1b"
   �[2Jin Rome and Bath

like, like: 3 texts of dev; 1 of 3 listed, the one of the largest error

1. b.csv:2, error -0.5
   gold 2, predicted 1.5
   one
   the other

pos, pos: 0 of 1 text of dev wrong; words: 5 right

topic, topic: 2 of 9 texts of dev wrong; 3 of 9 listed, those of the largest loss

1. "c\x1b.csv:1, record 2", no loss: train has no label "z\x1b"
   gold z, predicted a
   two

2. c.csv:3, no loss
   gold a, b, predicted none (2.50), abstained
   three

3. c.csv:4, loss 2.5000
   gold {"rank":"�"}, predicted no answer
   four

none, none: no labels in dev
`,
		true: "   �[2Jin \x1b[32mRome\x1b[0m and \x1b[31mBath\x1b[0m\n",
	} {
		var out strings.Builder
		if err := (mistakesText{colours}).write(&out, "dev", listsOfMistakes()); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); !colours && got != want || !strings.Contains(got, want) {
			t.Errorf("%s\nwant %s", got, want)
		}
	}
	var out strings.Builder
	err := mistakesText{}.write(&out, "a\x1b.csv", listsOfMistakes()[4:])
	if err != nil || strings.Contains(out.String(), "\x1b") {
		t.Errorf("%q, %v; want the name of a file without what a terminal obeys", out.String(), err)
	}
}

// Colours are of characters, of which 400 are shown: one span may be within another, or end after them.
func TestColoursOfMistakes(t *testing.T) {
	const green, red, end = "\x1b[32m", "\x1b[31m", "\x1b[0m"
	span := func(kind string, start, end int) mistakes.Span {
		return mistakes.Span{Kind: kind, Start: start, End: end}
	}
	long := strings.Repeat("é", 400)
	for _, c := range []struct {
		text  string
		spans []mistakes.Span
		want  string
	}{
		{"é bc d e", []mistakes.Span{span(mistakes.Missed, 2, 4), span(mistakes.Spurious, 5, 6)},
			"é " + green + "bc" + end + " " + red + "d" + end + " e"},
		{"a bc d e", []mistakes.Span{span(mistakes.Spurious, 0, 6), span(mistakes.Missed, 2, 4)},
			red + "a " + end + green + "bc" + end + red + " d" + end + " e"},
		{"a bc d e", []mistakes.Span{span(mistakes.Boundary, 0, 4), span(mistakes.Missed, 2, 6)},
			red + "a " + end + green + "bc d" + end + " e"},
		{long, []mistakes.Span{span(mistakes.Label, 399, 400)}, long[:len(long)-2] + red + "é" + end},
		{long + "e", []mistakes.Span{span(mistakes.Label, 399, 401)},
			long[:len(long)-2] + red + "é" + end + " …"},
		{"क्\u200dष 👩\u200d💻\x1b\u009b\n", []mistakes.Span{span(mistakes.Label, 12, 12)},
			"क्\u200dष 👩\u200d💻�� "},
	} {
		if got := (mistakesText{true}).marked(mistakes.Judged{Text: c.text, Spans: c.spans}); got != c.want {
			t.Errorf("%q, %v: %q, want %q", c.text, c.spans, got, c.want)
		}
		plain := mistakesText{}.marked(mistakes.Judged{Text: c.text, Spans: c.spans})
		if want := strings.NewReplacer(green, "", red, "", end, "").Replace(c.want); plain != want {
			t.Errorf("without colours: %q, want %q", plain, want)
		}
	}
}

func TestManySpansOfAText(t *testing.T) {
	j := mistakes.Judged{Spans: slices.Repeat([]mistakes.Span{{Kind: mistakes.Missed, Gold: "x",
		Text: strings.Repeat("a", 1000)}}, 23)}
	var out strings.Builder
	mistakesText{}.one(&out, 1, j)
	if text := out.String(); strings.Count(text, ": missed x\n") != 20 || !strings.Contains(text,
		"\n   … and 3 more\n") || len(text) > (21)*(450) {
		t.Errorf("%s; want %d lines, and how many there are more", text, 20)
	}
}
