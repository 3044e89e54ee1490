package cli

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/predict"
)

// echo returns the texts of lines.
func echo(lines []inputs.Line) ([]string, error) {
	var results []string
	for _, line := range lines {
		results = append(results, line.Example.Text)
	}
	return results, nil
}

func TestEachTextHasItsLineOfOutput(t *testing.T) {
	const tooLong = `{"error":"line 2: longer than 16777216 bytes","line":2}`
	longest := strings.Repeat("x", maxLine-1) // and the end of the line
	for _, test := range []struct {
		name, in string
		want     []string
	}{
		{"nothing", "", nil},
		{"blank lines", "\n \n\r\n", nil},
		{"ends of lines", "one\r\ntwo\nthree", []string{`"one"`, `"two"`, `"three"`}},
		{"a line as long as lines may be", "one\n" + longest + "\ntwo\n",
			[]string{`"one"`, `"` + longest + `"`, `"two"`}},
		{"a longer line", "one\n" + longest + "x\ntwo\n", []string{`"one"`, tooLong, `"two"`}},
		{"a longer last line", "one\n" + longest + "xx", []string{`"one"`, tooLong}},
		{"more lines than a batch", strings.Repeat("a\n", 3*batchTexts+1),
			slices.Repeat([]string{`"a"`}, 3*batchTexts+1)},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out strings.Builder
			c := &commands{in: strings.NewReader(test.in), out: &out}
			err := eachText(context.Background(), c, textInput{}, echo, jsonLines[string]{})
			if failed := slices.Contains(test.want, tooLong); !failed && err != nil || failed &&
				!errors.Is(err, errReported) {
				t.Errorf("the error is %v", err)
			}
			var got []string
			for line := range strings.Lines(out.String()) {
				got = append(got, strings.TrimSuffix(line, "\n"))
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %.100q, want %.100q", got, test.want)
			}
		})
	}
}

func TestALineWithoutAPredictionIsAnError(t *testing.T) {
	var out strings.Builder
	c := &commands{in: strings.NewReader("one\ntwo\n"), out: &out}
	err := eachText(context.Background(), c, textInput{}, func(lines []inputs.Line) ([]predict.Prediction, error) {
		lines[1].Err = errors.New("line 2: too long")
		return []predict.Prediction{{Text: "one"}, {}}, nil
	}, jsonLines[predict.Prediction]{})
	const want = `{"text":"one","truncated":0,"tasks":null}` + "\n" + `{"error":"line 2: too long","line":2}` + "\n"
	if !errors.Is(err, errReported) || out.String() != want {
		t.Errorf("eachText = %v with lines\n%swant %v with\n%s", err, out.String(), errReported, want)
	}
}

func TestWaitingForTextsCanBeInterrupted(t *testing.T) {
	waiting, _ := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	c := &commands{in: waiting, out: io.Discard}
	if err := eachText(ctx, c, textInput{}, echo, jsonLines[string]{}); !errors.Is(err, context.Canceled) {
		t.Errorf("eachText = %v, want %v", err, context.Canceled)
	}
}

// A run on a disk that does not answer, or whose weights have become huge, holds up no signal.
func TestCommandsThatSumARunCanBeInterrupted(t *testing.T) {
	trainedMails(t)
	for _, checkpoint := range []string{"best", "last"} {
		if err := os.Truncate(filepath.Join("runs", "mails", checkpoint, "model.safetensors"), 1<<40); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range []string{
		"predict runs/mails", "eval runs/mails", "embed runs/mails", "tokenize runs/mails", "tasks runs/mails",
		"calibrate runs/mails", "quantize runs/mails --out small", "serve runs/mails", "bench runs/mails",
		"distil runs/mails", "merge runs/mails runs/mails/last --out both",
		"train --set model.encoder=null --set model.base_model=runs/mails/best/encoder",
	} {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		var log bytes.Buffer
		root := (&commands{in: strings.NewReader(""), out: io.Discard, log: &log}).root()
		root.SetArgs(strings.Fields(command))
		begun := time.Now()
		err := root.ExecuteContext(ctx)
		var stopped interruption // of a training
		if !errors.Is(err, context.Canceled) && !errors.As(err, &stopped) || time.Since(begun) > 5*time.Second {
			t.Errorf("%s: %v after %v, want the context's error at once\n%s", command, err, time.Since(begun), &log)
		}
	}
}

func TestASingleLineDoesNotWaitForOthers(t *testing.T) {
	in, lines := io.Pipe()
	results, out := io.Pipe()
	ended := make(chan error)
	go func() {
		c := &commands{in: in, out: out}
		ended <- eachText(context.Background(), c, textInput{}, echo, jsonLines[string]{})
	}()
	got := bufio.NewReader(results)
	for _, text := range []string{"one", "two"} {
		fmt.Fprintln(lines, text)
		if line, err := got.ReadString('\n'); err != nil || line != `"`+text+`"`+"\n" {
			t.Fatalf("the output for %q is %q, %v", text, line, err)
		}
	}
	lines.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// A bar counts the lines of a file, and the records of a data file.
func TestLinesOfAFileAreCounted(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "a.txt", strings.Repeat("one\n\n", 50_000))
	writeFile(t, ".", "open.txt", "one\ntwo") // the last line has no end
	writeFile(t, ".", "empty.txt", "")
	writeFile(t, ".", "a.csv", "text\n\"one\ntwo\"\nthree\n")
	writeFile(t, ".", "a.txt.gz", "")
	for name, want := range map[string]int{
		"a.txt": 100_000, "open.txt": 2, "empty.txt": 0, "a.csv": 2, "a.txt.gz": 0, "": 0,
	} {
		from := textInput{file: name}
		lines, err := from.open(context.Background(), strings.NewReader(""))
		if err != nil {
			t.Fatal(err)
		}
		defer lines.close()
		if got := from.lineCount(lines); got != want {
			t.Errorf("%q has %d lines, want %d", name, got, want)
		}
		if name != "a.csv" {
			continue
		}
		if read, err := lines.next(); !errors.Is(err, io.EOF) || len(read) != 2 || from.lineCount(lines) != 2 {
			t.Errorf("%q: read %d, %v", name, len(read), err)
		}
	}
}

func TestMain(m *testing.M) { os.Exit(shared.RunTests(m)) }

// trainMails makes the working directory a folder of the test's own, with the small experiment, trained on mails for an
// epoch, which happens once for all tests.
func trainMails(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	trained := filepath.Join(shared.PackageDir(), "mails")
	if _, err := os.Stat(filepath.Join(trained, "runs")); err != nil {
		writeFile(t, ".", "mails.csv", mails())
		writeFile(t, ".", "experiment.yaml", smallExperiment)
		if status, _, log := call("", "train", "--set", "training.num_epochs=1"); status != 0 {
			t.Fatal(log)
		}
		if err := os.CopyFS(trained, os.DirFS(".")); err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := os.CopyFS(".", os.DirFS(trained)); err != nil {
		t.Fatal(err)
	}
}

// linesOf parses lines of JSON.
func linesOf(t *testing.T, out string) []map[string]any {
	t.Helper()
	var all []map[string]any
	for text := range strings.Lines(out) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		all = append(all, line)
	}
	return all
}

func TestPredictionsHaveTheirLineAndItsFields(t *testing.T) {
	trainMails(t)
	const in = "the card\n\n" + `{"id": "x", "body": "a bill", "tasks": 1, "note": "n"}` + "\n" + `{"id": 2}` + "\n"
	for _, test := range []struct{ flags, want string }{
		{"", `"line":3,"id":"x","text":"a bill","truncated":0,"note":"n","input":{"tasks":1},"tasks":{"team":`},
		{"--keep all -", `"line":3,"id":"x","text":"a bill","truncated":0,"note":"n","input":{"tasks":1},"tasks":{`},
		{"--keep none", `"line":3,"text":"a bill","truncated":0,"tasks":{"team":`},
		{"--keep note,id", `"line":3,"id":"x","text":"a bill","truncated":0,"note":"n","tasks":{"team":`},
		{"--keep none --top 2 --task team", `"line":3,"text":"a bill","truncated":0,"tasks":{"team":{"team":{"label":`},
		{"--task team --keep id", `"line":3,"id":"x","text":"a bill","truncated":0,"tasks":{"team":`},
	} {
		status, out, log := call(in, append([]string{"predict", "runs/mails"}, strings.Fields(test.flags)...)...)
		lines := strings.Split(out, "\n")
		if status != exitMistake || len(lines) != 4 || !strings.HasPrefix(lines[0], `{"line":1,"text":"the card",`) ||
			!strings.HasPrefix(lines[1], "{"+test.want) || !strings.Contains(lines[2], `,"line":4`) {
			t.Errorf("%s: %d\n%s%s\nwant %s", test.flags, status, out, log, test.want)
		}
	}
	_, out, _ := call("the card\n", "predict", "runs/mails", "--top", "9")
	if strings.Count(out, `{"label":`) != 3 || !strings.Contains(out, `,"top":[{"label":`) { // and two of two labels
		t.Errorf("--top 9: %s", out)
	}
	if _, _, log := call(in, "predict", "runs/mails", "--keep", "id,nte"); !strings.Contains(log,
		`warning: --keep: no line has a field "nte" besides its text`) {
		t.Errorf("no warning of a field that no line has: %s", log)
	}
	if _, out, _ := call(`{"body": "a bill", "meta": {"id": 7, "by": "me"}}`, "predict", "runs/mails", "--keep",
		"meta.id"); !strings.Contains(out, `"meta.id":7`) || strings.Contains(out, "me\"") {
		t.Errorf("--keep with a path into JSON: %s", out)
	}
	if status, _, log := call(in, "predict", "runs/mails", "--task", "tam"); status != exitMistake ||
		!strings.Contains(log, "--task: ") {
		t.Errorf("an unknown task: %d, %s", status, log)
	}
}

func TestEmptyTextsOfFilesArePredicted(t *testing.T) {
	trainMails(t)
	writeFile(t, ".", "new.csv", "id,body\n1,a card\n2,\n3,a window\n")
	writeFile(t, ".", "new.jsonl", "{\"text\": \"a card\"}\n\n{\"text\": \"\"}\n{\"text\": \"a \xff\"}\na window\n")
	const invalid = `{"error":"line 4: not UTF-8: byte 0xff at offset `
	for file, want := range map[string]struct{ predicted, errors int }{"new.csv": {3, 0}, "new.jsonl": {3, 1}} {
		status, out, _ := call("", "predict", "runs/mails", file)
		predicted, errors := strings.Count(out, `"label":`), strings.Count(out, invalid)
		if (status != 0) != (want.errors > 0) || predicted != want.predicted || errors != want.errors {
			t.Errorf("%s: %d, %s, want %+v", file, status, out, want)
		}
	}
}

func TestTheFormatIsThatOfTheFilesExtension(t *testing.T) {
	trainMails(t)
	writeFile(t, ".", "new.csv", "body,n\na card,1\n")
	for _, test := range []struct{ out, format, like string }{
		{"out.csv", "", "csv"}, {"out.TSV", "", "tsv"}, {"out.parquet", "", "parquet"}, {"out.jsonl", "", "jsonl"},
		{"out.json", "", "jsonl"}, {"out", "", "jsonl"}, {"out.csv", "jsonl", "jsonl"}, {"out.txt", "csv", "csv"},
	} {
		mustCall(t, "", "predict", "runs/mails", "new.csv", "--format", test.like, "--out", "want")
		args := []string{"predict", "runs/mails", "new.csv", "--out", test.out}
		if test.format != "" {
			args = append(args, "--format", test.format)
		}
		mustCall(t, "", args...)
		if got, want := readFile(t, test.out), readFile(t, "want"); got != want {
			t.Errorf("%q: %q, want %q", args, got, want)
		}
	}
	for name, want := range map[string]string{"out.csv.gz": "without .gz", "out.xlsx": "ends in .csv"} {
		status, _, log := call("", "predict", "runs/mails", "new.csv", "--out", name)
		if status != exitUsage || !strings.Contains(log, want) {
			t.Errorf("--out %s: %d, %s", name, status, log)
		}
	}
	if status, _, log := call("", "predict", "runs/mails", "new.csv", "--out", "out.csv", "--top", "2"); status !=
		exitUsage || !strings.Contains(log, "--format csv has no place for other labels") {
		t.Errorf("--top in a table: %d, %s", status, log)
	}
	want := mustCall(t, "", "predict", "runs/mails", "new.csv")
	if got := mustCall(t, "", "predict", "runs/mails", "new.csv", "--out", "-"); got != want || got == "" {
		t.Errorf("--out -: %q, want %q", got, want)
	}
}

func TestPredictionsGoToAFile(t *testing.T) {
	trainMails(t)
	writeFile(t, ".", "in.txt", "the card\n")
	status, out, log := call("", "predict", "runs/mails", "in.txt", "--out", "out.jsonl")
	if text := readFile(t, "out.jsonl"); status != 0 || out != "" || len(linesOf(t, text)) != 1 {
		t.Errorf("%d, %s%s and in the file %s", status, out, log, text)
	}
	if status, _, log := call("", "predict", "runs/mails", "in.txt", "--out", "in.txt"); status != exitMistake ||
		readFile(t, "in.txt") != "the card\n" {
		t.Errorf("the input is overwritten: %d, %s", status, log)
	}

	// a mistake leaves the file of an earlier command
	before := readFile(t, "out.jsonl")
	for _, mistake := range []string{"none.txt", ".", "in.txt --format conll"} {
		args := append(strings.Fields("predict runs/mails --out out.jsonl"), strings.Fields(mistake)...)
		if status, _, log := call("", args...); status != exitMistake || readFile(t, "out.jsonl") != before {
			t.Errorf("%s: %d, %sand in the file %q", mistake, status, log, readFile(t, "out.jsonl"))
		}
	}

	// without a text
	writeFile(t, ".", "empty.txt", "\n")
	if status, _, log := call("", "predict", "runs/mails", "empty.txt", "--out", "out.jsonl"); status != 0 ||
		readFile(t, "out.jsonl") != "" {
		t.Errorf("no text: %d, %sand in the file %q", status, log, readFile(t, "out.jsonl"))
	}
	if _, err := os.Stat("/dev/full"); err != nil {
		return
	}
	if status, _, log := call("", "predict", "runs/mails", "in.txt", "--out", "/dev/full"); status != exitMistake {
		t.Errorf("a full disk: %d, %s", status, log)
	}
}

func TestFilesOfDataAreReadAsDataIs(t *testing.T) {
	trainMails(t)
	var gz bytes.Buffer
	w := gzip.NewWriter(&gz)
	w.Write([]byte("the card\n"))
	w.Close()
	for _, test := range []struct{ name, text, want string }{
		{"new.csv", "id,body,team\n1,\"the\ncard\",billing\n2,a bug,\n",
			`2 the|card id=1 team=billing; 4 a bug id=2 team=`},
		{"new.tsv", "id\tbody\n1\tthe \"card\n", `0 quote`}, // RFC 4180: refused
		{"ok.tsv", "id\tbody\n1\tthe card\n", `2 the card id=1`},
		{"new.json", `[{"body": "the card", "id": 1},` + "\n" + `{"body": "a bug", "id": 2}]`,
			`1 the card id=1; 2 a bug id=2`},
		{"new.conll", "the X\ncard Y\n\na Z\n", `1 the card 1=[the card] 2=[X Y] tags=[X Y] words=[the card]; ` +
			`4 a 1=[a] 2=[Z] tags=[Z] words=[a]`},
		{"new.txt.gz", gz.String(), `1 the card`},
		{"new.jsonl", `{"body": "the card", "id": "x"}`, `1 the card id=x`},
		{"bad.csv", "id,txt\n1,a\n",
			"0 bad.csv: no field for the text; want body or text or words; available: id, txt"},
		{"bad.txt.gz", "the card\n", "0 bad.txt.gz: the file is not a gzip file, but its name ends " +
			"in .gz; if it is not compressed, in its folder, mv 'bad.txt.gz' 'bad.txt', and name it so, " +
			"else download it again"},
	} {
		writeFile(t, ".", test.name, test.text)
		status, out, log := call("", "predict", "runs/mails", test.name)
		var got []string
		for _, line := range linesOf(t, out) {
			shown := fmt.Sprintf("%v %s", line["line"], strings.ReplaceAll(line["text"].(string), "\n", "|"))
			for _, key := range slices.Sorted(maps.Keys(line)) {
				if !slices.Contains([]string{"line", "text", "truncated", "tasks"}, key) {
					shown += fmt.Sprintf(" %s=%v", key, line[key])
				}
			}
			got = append(got, shown)
		}
		if mistake, bad := strings.CutPrefix(test.want, "0 "); bad && (status != exitMistake || out != "" ||
			!strings.Contains(log, mistake)) || !bad && (status != 0 || strings.Join(got, "; ") != test.want) {
			t.Errorf("%s: %d, %s\n%s, want %s", test.name, status, strings.Join(got, "; "), log, test.want)
		}
	}
}

func TestFilesAreReadWithTheFormatOfTheRunsData(t *testing.T) {
	t.Chdir(t.TempDir())
	for delimiter, keys := range map[string]string{";": `delimiter: ";"`, "\t": "format: tsv"} {
		writeFile(t, ".", "mails.csv", strings.ReplaceAll(mails(), ",", delimiter))
		keys = "text: body, " + keys + ","
		writeFile(t, ".", "experiment.yaml", strings.Replace(smallExperiment, "text: body,", keys, 1))
		if status, _, log := call("", "train", "--set", "training.num_epochs=1", "--force"); status != 0 {
			t.Fatal(log)
		}
		writeFile(t, ".", "new.csv", strings.ReplaceAll("body;id\nthe card, twice;7\n", ";", delimiter))
		status, out, log := call("", "predict", "runs/mails", "new.csv")
		if lines := linesOf(t, out); status != 0 || len(lines) != 1 || lines[0]["text"] != "the card, twice" ||
			lines[0]["id"] != "7" {
			t.Errorf("%q: %d, %s%s", delimiter, status, out, log)
		}
	}
}

func TestPredictionsInTheColumnsOfTheInput(t *testing.T) {
	trainMails(t)
	const bill = "billing"
	writeFile(t, ".", "new.csv", "id,team,body,note\n007,,\"the card, was charged twice\",\"a \"\"b\"\"\"\n"+
		"2,support,the bill came late,\n")
	for _, test := range []struct{ in, flags, want string }{
		{"", "new.csv --format csv", "id,team,body,note\n" +
			"007,billing,\"the card, was charged twice\",\"a \"\"b\"\"\"\n2,billing,the bill came late,\n"},
		{"", "new.csv --format tsv --keep id", "id\tbody\tteam\n007\tthe card, was charged twice\tbilling\n" +
			"2\tthe bill came late\tbilling\n"},
		{"the bill came late\n", "--format csv", "body,team\nthe bill came late,billing\n"},
		{`{"text": "the bill came late", "id": 7, "a": [1]}` + "\n" + `{"id": "x"}` + "\n", "--format csv",
			"a,id,text,team\n[1],7,the bill came late,billing\n,x,,\n"},
		{`{"id": "x"}` + "\n{\n" + `{"text": "the bill came late", "id": 7}` + "\n", "--format csv",
			"id,text,team\nx,,\n,,\n7,the bill came late,billing\n"},
		{`{"id": "x"}` + "\n" + `{"id": "y"}` + "\n", "--format csv --keep id", "id,team\nx,\ny,\n"},
		{`{"id": "x", "note": 1}` + "\n", "--keep id",
			`{"error":"line 1: a JSON object with no text, words or ` +
				`question, its keys: id, note; want plain text, or a JSON object with text, pair or words, ` +
				`or with question and context","line":1,"id":"x"}` + "\n"},
	} {
		_, out, log := call(test.in, append([]string{"predict", "runs/mails"}, strings.Fields(test.flags)...)...)
		if out = strings.ReplaceAll(out, "support", bill); out != test.want { // whatever it has learned
			t.Errorf("%s: %s\n%s, want %s", test.flags, out, log, test.want)
		}
	}
	status, out, log := call("the card\n", "predict", "runs/mails", "--format", "xls")
	if status != exitUsage || out != "" {
		t.Errorf("format xls: %d, %s%s", status, out, log)
	}
}

func TestTextsThatAreNotWhereTheyBelong(t *testing.T) {
	trainMails(t)
	for _, test := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{"predict", "runs/mails", "the card"}, exitMistake,
			"the card: no such file; want a file with a text in each line, or the text on stdin: echo TEXT | "},
		{[]string{"explain", "runs/mails", "the", "card"}, exitUsage,
			`unexpected argument "card"; want a text of several words in quotation marks`},
	} {
		if status, _, log := call("", test.args...); status != test.status || !strings.Contains(log, test.want) {
			t.Errorf("%v: status %d, %s; want %d, %s", test.args, status, log, test.status, test.want)
		}
	}
}

func TestAFileThatEndsAsTheRunsDataButIsReadAsLinesIsAWarning(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.train", mails())
	writeFile(t, ".", "experiment.yaml", strings.NewReplacer("mails.csv", "mails.train, format: csv").
		Replace(smallExperiment))
	if status, _, log := call("", "train", "--set", "training.num_epochs=1", "--out", "run"); status != 0 {
		t.Fatal(log)
	}
	const want = "mails.train is read as a text in each line, while the run's data mails.train is csv; --set-data " +
		"format=csv reads it so"
	if status, _, log := call("", "predict", "run", "mails.train"); status != 0 || !strings.Contains(log, want) {
		t.Errorf("status %d, %s; want %s", status, log, want)
	}
	status, out, log := call("", "predict", "run", "mails.train", "--set-data", "format=csv")
	if status != 0 || strings.Contains(log, "is read as") || !strings.Contains(out, `"line":2,`) {
		t.Errorf("status %d, %s%s", status, out, log)
	}
	writeFile(t, ".", "texts.txt", "the card\n")
	if status, _, log := call("", "predict", "run", "texts.txt"); status != 0 || strings.Contains(log, "is read as") {
		t.Errorf("status %d, %s", status, log)
	}
}

func TestMinProbability(t *testing.T) {
	trainMails(t)
	for _, test := range []struct {
		flags     string
		abstained bool
	}{
		{"", false}, {"--min-probability 1", true}, {"--min-probability 0", false},
		{"--min-probability team=1", true}, {"--min-probability 1 --min-probability team.team=0", false},
		{"--min-probability 1,team.team=0", false}, {"--min-probability 0,team=1 --task team,team", true},
	} {
		flags := append([]string{"predict", "runs/mails"}, strings.Fields(test.flags)...)
		status, out, log := call("the card\n", flags...)
		if status != 0 || strings.Contains(out, `,"abstained":true`) != test.abstained ||
			!strings.Contains(out, `{"label":"`) {
			t.Errorf("%s: %d, %s%s", test.flags, status, out, log)
		}
	}
	status, out, log := call("the card\n", "predict", "runs/mails", "--format", "csv", "--min-probability", "1")
	if status != 0 || !strings.HasSuffix(out, "the card,\n") {
		t.Errorf("as csv: %d, %s%s\nwant an empty cell for the team", status, out, log)
	}
	for flags, want := range map[string]string{
		"--min-probability 2":                     `--min-probability "2": want a number from 0 to 1, or TASK=NUMBER`,
		"--min-probability NaN":                   `--min-probability "NaN": want a number from 0 to 1`,
		"--min-probability 0.5,team=2":            `--min-probability "team=2": want a number from 0 to 1`,
		"--min-probability=":                      `--min-probability "": want a number from 0 to 1`,
		"--task=":                                 `--task: no task ""; `,
		"--task team,tem":                         `--task: no task "tem"; did you mean "team"?`,
		"--min-probability =1":                    `--min-probability "=1": want a number from 0 to 1`,
		"--min-probability team=":                 `--min-probability "team=": want a number from 0 to 1`,
		"--min-probability tem=1":                 `--min-probability: no task with labels "tem"; did you mean "team"?`,
		"--min-probability team.tem=1":            `no task with labels "team.tem"; did you mean "team.team"?`,
		"--min-probability 1 --min-probability 0": `--min-probability "0": there is one before it; want one`,
	} {
		status, out, log := call("the card\n", append([]string{"predict", "runs/mails"}, strings.Fields(flags)...)...)
		if status == 0 || out != "" || !strings.Contains(log, want) {
			t.Errorf("%s: %d, %s%s\nwant %s", flags, status, out, log, want)
		}
	}
}
