package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/jenga-nlp/jenga/predict"
)

// explainer trains the small experiment, and returns a call of explain that must have a status.
func explainer(t *testing.T) func(want int, args ...string) (out, log string) {
	t.Helper()
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", smallExperiment)
	if status, _, log := call("", "train", "--set", "training.num_epochs=15"); status != 0 {
		t.Fatal(log)
	}
	return func(want int, args ...string) (out, log string) {
		t.Helper()
		status, out, log := call("", append([]string{"explain", "runs/mails", "the card is too high"}, args...)...)
		if status != want {
			t.Errorf("%q: status %d, want %d\n%s%s", args, status, want, out, log)
		}
		return out, log
	}
}

func TestExplain(t *testing.T) {
	explain := explainer(t)

	// JSON
	out, _ := explain(0, "--json", "--steps", "9", "--offsets", "bytes")
	var x struct {
		Prediction json.RawMessage
		Readings   []predict.Reading
	}
	if err := json.Unmarshal([]byte(out), &x); err != nil || len(x.Readings) != 1 {
		t.Fatalf("%v: %s", err, out)
	}
	_, predicted, _ := call("the card is too high", "predict", "runs/mails")
	if got := strings.Replace(predicted, `"line":1,`, "", 1); got != string(x.Prediction)+"\n" {
		t.Errorf("the prediction is %s\nthat of predict %s", x.Prediction, got)
	}
	w := x.Readings[0].Windows[0]
	if len(w.Attention) == 0 || len(w.Answers) == 0 {
		t.Errorf("no attention or no answers: %s", out)
	}

	// text: a line for each token, without escape sequences
	text, _ := explain(0, "--steps", "9")
	lines := strings.Split(text, "\n")
	for _, want := range []string{"token", "gradient×input  integrated", "logit", "of the baseline", "+++"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text has no %q:\n%s", want, text)
		}
	}
	for _, token := range w.Tokens {
		if !strings.Contains(text, "\n  "+token.Token+" ") {
			t.Errorf("no line of the token %q in %d lines", token.Token, len(lines))
		}
	}
	if strings.Contains(text, "\x1b") {
		t.Error("colours where the output is no terminal")
	}
	if text, _ := explain(0, "--layer", "0", "--head", "0"); !strings.Contains(text, "layer 0, head 0\n") ||
		!strings.Contains(text, " reads ") {
		t.Errorf("no attention map:\n%s", text)
	}

	// a web page
	out, log := explain(0, "--html", "x.html")
	page, err := os.ReadFile("x.html")
	if err != nil || out != "" || !strings.Contains(log, "wrote x.html") || !strings.Contains(string(page), "<html") {
		t.Errorf("%v: %s%s", err, out, log)
	}
}

// Browsers count in UTF-16: the page's tokens would be others after 👩 with offsets in characters.
func TestWebPagesOfExplainCountInUTF16(t *testing.T) {
	explainer(t)
	const text = "👩 the card"
	for _, args := range [][]string{{}, {"--json"}} {
		status, out, log := call("", append([]string{"explain", "runs/mails", text, "--html", "x.html"}, args...)...)
		if status != 0 || (out != "") != (len(args) > 0) {
			t.Errorf("%q: status %d, %s%s", args, status, out, log)
		}
		page, err := os.ReadFile("x.html")
		if err != nil {
			t.Fatal(err)
		}
		_, data, _ := strings.Cut(string(page), `id="data">`)
		data, _, _ = strings.Cut(data, "</script>")
		var x struct{ Readings []predict.Reading }
		if err := json.Unmarshal([]byte(data), &x); err != nil {
			t.Fatal(err)
		}
		tokens := x.Readings[0].Windows[0].Tokens
		if got, want := tokens[len(tokens)-2].End, len(utf16.Encode([]rune(text))); got != want {
			t.Errorf("%q: the last token ends at %d, want %d", args, got, want)
		}
	}
}

func TestMistakesOfExplain(t *testing.T) {
	explain := explainer(t)
	for _, test := range []struct {
		args string
		want string
	}{
		{"--steps -1", "--steps -1: want a number from 0 to 10000"},
		{"--steps 5 --no-gradients", "--steps and --no-gradients"},
		{"--head 0", "--head 0: want --layer too"},
		{"--layer 9", "--layer 9, --head 0: the encoder has"},
		{"--layer 0 --no-attention", "--layer and --no-attention"},
		{"--layer 0 --json", "has all layers"},
		{"--max-tokens 0", "--max-tokens 0: want a number from 1 on"},
		{"--offsets words", "--offsets"},
		{"--html x.html --offsets bytes", "--offsets bytes: web pages count in utf16"},
		{"--html - --json", "both go to stdout"},
	} {
		if _, log := explain(exitUsage, strings.Fields(test.args)...); !strings.Contains(log, test.want) {
			t.Errorf("%s: %q, want %q", test.args, log, test.want)
		}
	}
	for args, want := range map[string]string{
		"--task teams": "--task: ", "--task team,tem": `--task: no task "tem"`, "--max-tokens 3": "want at most 3",
	} {
		if _, log := explain(exitMistake, strings.Fields(args)...); !strings.Contains(log, want) {
			t.Errorf("%s: %q, want %q", args, log, want)
		}
	}
	for text, want := range map[string]string{
		"": "the text is empty\n", "a\xff": "the text is not UTF-8: byte 0xff at offset 1\n",
	} {
		if status, _, log := call("", "explain", "runs/mails", text); status != exitMistake || log != want {
			t.Errorf("%q: status %d, %s", text, status, log)
		}
	}
	for args, want := range map[string]string{
		"--pair b":     "--pair: texts of stdin have their own",
		"--html x.htm": "--html: a page has one explanation",
	} {
		args := append([]string{"explain", "runs/mails", "-"}, strings.Fields(args)...)
		if status, _, log := call("the card", args...); status != exitUsage || !strings.Contains(log, want) {
			t.Errorf("%q: status %d, %q, want %q", args, status, log, want)
		}
	}
}

func TestExplainWritesAPageToStdout(t *testing.T) {
	explainer(t)
	page := mustCall(t, "", "explain", "runs/mails", "the card", "--html", "-")
	if _, err := os.Stat("-"); err == nil || !strings.HasPrefix(page, "<!doctype html>") {
		t.Errorf("%v, %.40s", err, page)
	}
}

func TestExplainReadsTextsOfStdin(t *testing.T) {
	explainer(t)
	const in = "the card\n\n" + `{"text": "a button hangs", "id": 7}` + "\n{\nthe bill of the card is too high\n"
	args := []string{"explain", "runs/mails", "-", "--no-gradients", "--max-tokens", "10"}
	status, out, log := call(in, append(args, "--json")...)
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if status != exitMistake || log != "" || len(lines) != 4 {
		t.Fatalf("status %d\n%s%s", status, out, log)
	}
	for i, want := range []string{`{"prediction":{"line":1,"text":"the card",`,
		`{"prediction":{"line":3,"id":7,"text":"a button hangs",`, `{"error":"line 4: `,
		`{"error":"line 5: the text is read as `} {
		if !strings.HasPrefix(lines[i], want) || strings.Contains(want, "prediction") !=
			strings.Contains(lines[i], `"attention":[[[`) {
			t.Errorf("%s, want %s", lines[i], want)
		}
	}
	status, out, log = call(in, args...)
	if status != exitMistake || !strings.Contains(log, "line 4: ") || !strings.Contains(log, "line 5: ") ||
		!strings.HasPrefix(out, "line 1: the card\nteam: {") ||
		!strings.Contains(out, "\n\nline 3: a button hangs\n") {
		t.Errorf("status %d\n%s%s", status, out, log)
	}
	out = mustCall(t, `{"text": "the \u001b[31mcard"}`+"\n", args[:4]...)
	if !strings.HasPrefix(out, `line 1: "the \x1b[31mcard"`+"\n") {
		t.Errorf("%q, want a text without control characters", out)
	}
}

// 2 layers of 65 heads have 34 million weights for 512 tokens, more than are possible.
func TestExplainOfALongTextNeedsNoAttention(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "mails.csv", mails())
	writeFile(t, ".", "experiment.yaml", strings.NewReplacer("layers: 1, width: 16, heads: 2",
		"layers: 2, width: 130, heads: 65, max_positions: 512", "{train:", "{max_length: 512, train:").
		Replace(smallExperiment))
	if status, _, log := call("", "train", "--set", "training.max_steps=1"); status != 0 {
		t.Fatal(log)
	}
	text := strings.Repeat("the card is too high ", 512)
	args := []string{"explain", "runs/mails", text, "--no-gradients"}
	status, out, log := call("", args...)
	if status != 0 || !strings.Contains(out, "2 layers of 65 heads; --layer and --head write one") {
		t.Errorf("status %d\n%s%s", status, out, log)
	}
	if status, _, log := call("", append(args, "--layer", "0")...); status == 0 || !strings.Contains(log, "weights") {
		t.Errorf("with --layer: status %d, %s", status, log)
	}
	if _, out, _ := call("", append(args, "--no-attention")...); strings.Contains(out, "attention") {
		t.Errorf("with --no-attention:\n%s", out)
	}
}

func TestPagesOfExplainAreCompleteOrAsTheyWere(t *testing.T) {
	explain := explainer(t)
	writeFile(t, ".", "x.html", "before")
	if err := os.Link("x.html", "y.html"); err != nil {
		t.Fatal(err)
	}
	explain(0, "--html", "x.html")
	before, err := os.ReadFile("y.html")
	if err != nil || string(before) != "before" {
		t.Errorf("the file before was written to: %v, %d bytes", err, len(before))
	}
	if fresh, err := filepath.Glob("x.html?*"); err != nil || len(fresh) > 0 {
		t.Errorf("%q are left; %v", fresh, err)
	}
	_, log := explain(exitMistake, "--html", "nowhere/x.html")
	if !strings.Contains(log, "--html nowhere/x.html: no") || strings.Contains(log, ".new") {
		t.Errorf("without the folder: %s", log)
	}
	if _, err := os.Stat("/dev/full"); err == nil { // no regular file
		if _, log := explain(exitMistake, "--html", "/dev/full"); !strings.Contains(log, "no space") {
			t.Errorf("on a full disk: %s", log)
		}
	}
}
