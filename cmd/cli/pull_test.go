package cli

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/internal/hub"
	"github.com/jenga-nlp/jenga/internal/hub/hubtest"
)

func TestPull(t *testing.T) {
	t.Chdir(t.TempDir())
	hubtest.New(t, map[string]string{"config.json": "{}", "model.safetensors": strings.Repeat("x", 1e6),
		"tokenizer_config.json": `{"do_lower_case": true}`, "vocab.txt": "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nkite\n"})

	// a model that is not there: the error names the command
	const hint = `; if it is a model of the hub, "jenga pull org/small" downloads it` + "\n"
	status, _, log := call("kite", "tokenize", "org/small")
	if status != exitMistake || !strings.HasSuffix(log, hint) {
		t.Errorf("tokenize before: %d, %s\nwant %s", status, log, hint)
	}
	writeFile(t, ".", "experiment.yaml", strings.Replace(smallExperiment,
		"encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}", "base_model: org/small", 1))
	if status, _, log := call("", "check"); status != exitMistake || !strings.Contains(log, strings.TrimSpace(hint)) {
		t.Errorf("check before: %d, %s\nwant %s", status, log, hint)
	}

	// the folder goes to stdout
	folder := filepath.Join(os.Getenv("HF_HOME"), "hub", "models--org--small", "snapshots", hubtest.Commit)
	const files = "config.json  2 B\ntokenizer_config.json  23 B\nvocab.txt  36 B\nmodel.safetensors  977 KiB\n"
	const done = "org/small, commit 01234567: 4 files, 977 KiB; use it as base_model: org/small@v1\n"
	status, out, log := call("", "pull", "org/small@v1")
	if status != 0 || out != folder+"\n" || log != files+done {
		t.Errorf("pull: %d, %s%s\nwant %s\n%s%s", status, out, log, folder, files, done)
	}
	if status, out, log = call("", "pull", "org/small@v1"); status != 0 || out != folder+"\n" || log != done {
		t.Errorf("a second pull: %d, %s%s\nwant %s\n%s", status, out, log, folder, done)
	}
	if status, out, log := call("kite", "tokenize", "org/small@v1"); status != 0 || !strings.Contains(out, `[2,5,3]`) {
		t.Errorf("tokenize: %d, %s%s", status, out, log)
	}

	for _, test := range []struct {
		args   string
		status int
		want   string
	}{
		{"pull", exitUsage, "an argument is missing; usage: jenga pull NAME[@REVISION]"},
		{"pull a/b/c", exitUsage, "NAME or ORG/NAME"},
		{"pull org/none", exitMistake, `has no model "org/none"`},
		{"pull org/small --onnx", exitMistake, "org/small has no model.onnx and no onnx/model.onnx; it has " +
			"safetensors, which are downloaded without --onnx\n"},
		{"pull --help", 0, "jenga pull distilbert-base-uncased\n"},
	} {
		status, out, log := call("", strings.Fields(test.args)...)
		if status != test.status || !strings.Contains(out+log, test.want) {
			t.Errorf("%s: %d, %s%s\nwant %d, %s", test.args, status, out, log, test.status, test.want)
		}
	}
	t.Setenv("HF_HUB_OFFLINE", "1")
	if status, _, log := call("", "pull", "org/small"); status != exitMistake ||
		log != "HF_HUB_OFFLINE=1 forbids downloads; unset it\n" {
		t.Errorf("offline: %d, %s", status, log)
	}
}

func TestAnInterruptedPullSaysWhatIsKept(t *testing.T) {
	s := hubtest.New(t, map[string]string{"config.json": "{}", "model.safetensors": "x"})
	us, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	s.Intercept = func(w http.ResponseWriter, r *http.Request) bool {
		if strings.HasSuffix(r.URL.Path, "config.json") {
			if err := us.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
			<-r.Context().Done()
		}
		return false
	}
	const want = "what is there is kept: the same command goes on from it\ninterrupted\n"
	if status, out, log := call("", "pull", "org/small"); status != exitInterrupted || out != "" || log != want {
		t.Errorf("%d, %s%s\nwant %d, %s", status, out, log, exitInterrupted, want)
	}
}

func TestDownloadsShowABarOrLines(t *testing.T) {
	events := []hub.Event{{File: "a", Done: 0, Size: 2e5}, {File: "a", Done: 1e5, Size: 2e5}, {Note: "again"},
		{File: "a", Done: 2e5, Size: 2e5}}
	for _, bars := range []bool{false, true} {
		var log bytes.Buffer
		d := downloads{log: &log, bars: bars}
		for _, e := range events {
			d.event(e)
		}
		d.end()
		const want = "again\na  195 KiB\n"
		if got := log.String(); !bars && got != want || bars && !strings.Contains(got, "/195)") {
			t.Errorf("with bars %v: %q, want %q, or a bar of 195 KiB", bars, got, want)
		}
	}
	var log bytes.Buffer
	d := downloads{log: &log, file: "a", last: time.Now().Add(-time.Minute)}
	d.event(events[1])
	if got, want := log.String(), "a  97.7 KiB of 195 KiB\n"; got != want {
		t.Errorf("after a minute: %q, want %q", got, want)
	}
}
