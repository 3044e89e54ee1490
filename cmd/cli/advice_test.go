package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/shared"
)

// noModels hides the models of this machine, so that init trains from scratch.
func noModels(t *testing.T) {
	t.Helper()
	t.Setenv("JENGA_MODELS", "")
	t.Setenv("HF_HUB_CACHE", t.TempDir())
}

func TestAWordARowFromInitToPredict(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(shared.Dir(t), "cases/word-a-row/st.csv"))
	if err != nil {
		t.Fatal(err)
	}
	// the same with the value in the first row of each sentence alone
	first, before := "", ""
	for line := range strings.Lines(string(text)) {
		id, rest, _ := strings.Cut(line, ",")
		if id == before {
			id = ""
		} else {
			before = id
		}
		first += id + "," + rest
	}
	// and as JSON lines
	objects := ""
	for i, line := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if cells := strings.Split(line, ","); i > 0 {
			objects += fmt.Sprintf(`{"sentence_id": %s, "words": %q, "labels": %q}`+"\n", cells[0], cells[1], cells[2])
		}
	}
	for name, content := range map[string]string{"st.csv": string(text), "first.csv": first, "st.jsonl": objects} {
		t.Run(name, func(t *testing.T) {
			t.Chdir(t.TempDir())
			noModels(t)
			writeFile(t, ".", name, content)
			mustCall(t, "", "init", name)
			out := mustCall(t, "", "check", "--set", "training.max_steps=1")
			if !strings.Contains(out, "train  48 ") {
				t.Errorf("check has no 48 sentences:\n%s", out)
			}
			mustCall(t, "", "train", "--set", "training.max_steps=1", "--out", "run")
			if out := mustCall(t, "", "predict", "run", name); strings.Count(out, "\n") != 60 {
				t.Errorf("%d predictions, want 60", strings.Count(out, "\n"))
			}
			task := strings.TrimSuffix(filepath.Base(name), filepath.Ext(name))
			mustCall(t, "", "eval", "run", "--data", task+"="+name)

			// the output is a file as the input is
			mustCall(t, "", "predict", "run", name, "--out", "out.csv")
			rows, _ := os.ReadFile("out.csv")
			if n := strings.Count(string(rows), "\n"); n != 481 {
				t.Errorf("out.csv has %d lines, want the header and 480 rows", n)
			}
			mustCall(t, "", "eval", "run", "--data", task+"=out.csv")
		})
	}
}
