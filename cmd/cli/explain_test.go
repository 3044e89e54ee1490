package cli

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/jenga-nlp/jenga/experiments/predict"
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
	for _, args := range [][]string{{}, {"--json", "--offsets", "utf16"}} {
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
		{"--html x.html --json", "--html and --json: want --offsets utf16"},
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
}
