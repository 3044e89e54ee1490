package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// readmeFile returns a Go file that the README shows: its first line is a comment with the file's name.
func readmeFile(t *testing.T, readme, name string) string {
	t.Helper()
	block := regexp.MustCompile("(?s)```go\n// " + regexp.QuoteMeta(name) + "\n(.*?)```").FindStringSubmatch(readme)
	if block == nil {
		t.Fatalf("the README shows no %s", name)
	}
	return block[1]
}

func TestReadmeHeadBuildsAndTrainsOutsideTheRepository(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	readme := readFile(t, filepath.Join(root, "README.md"))
	dir := t.TempDir()

	writeModule(t, dir, root, "example.com/mine")
	for _, name := range []string{"maxpool/maxpool.go", "maxpool/maxpool_test.go", "main.go"} {
		writeFile(t, dir, name, readmeFile(t, readme, name))
	}
	writeFile(t, dir, "mails.csv", mails())
	writeFile(t, dir, "experiment.yaml", `
project_name: mails
model:
  encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32}
tokenizer: {train: {vocab_size: 200}}
tasks:
  - name: team
    type: classification
    data: {path: mails.csv, text: body, label: team, split: {dev: 0.2}}
    heads: [{name: team, type: max_pool, dropout: 0.2}]
training: {learning_rate: 3.0e-3, batch_size: 8, num_epochs: 8}
`)

	goCommand(t, dir, "test", "./maxpool")
	binary := filepath.Join(dir, "mine")
	goCommand(t, dir, "build", "-o", binary, ".")
	list, err := exec.Command(binary, "parts", "head", "max_pool").Output()
	if err != nil || !strings.Contains(string(list), "a number in [0, 1)  dropout rate of the pooled features") {
		t.Errorf("the list of options is %q, %v", list, err)
	}
	check := exec.Command(binary, "check", "--set", "tasks.team.heads.team.dropout=2")
	check.Dir = dir
	if out, err := check.CombinedOutput(); err == nil || !strings.Contains(string(out), "want a number in [0, 1)") {
		t.Errorf("check of a dropout rate of 2: %v, %s", err, out)
	}
	train := exec.Command(binary)
	train.Dir = dir
	if out, err := train.CombinedOutput(); err != nil {
		t.Fatalf("training with the head: %v\n%s", err, out)
	}
	predict := exec.Command(binary, "predict", "runs/mails")
	predict.Dir = dir
	predict.Stdin = strings.NewReader("the invoice was charged twice\nthe program crashes at start\n")
	out, err := predict.Output()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{`"label":"billing"`, `"label":"support"`} {
		if got := strings.Split(string(out), "\n")[i]; !strings.Contains(got, want) {
			t.Errorf("prediction %d = %s, want %s", i+1, got, want)
		}
	}
}

// writeModule writes a user's module to dir: jenga's own requirements, and jenga replaced by root.
func writeModule(t *testing.T, dir, root, name string) {
	t.Helper()
	mod := strings.Replace(readFile(t, filepath.Join(root, "go.mod")), "module github.com/jenga-nlp/jenga",
		"module "+name, 1)
	mod = regexp.MustCompile(`(?m)^tool .*$`).ReplaceAllString(mod, "")
	writeFile(t, dir, "go.mod", mod+"\nrequire github.com/jenga-nlp/jenga v0.0.0\nreplace "+
		"github.com/jenga-nlp/jenga => "+root+"\n")
	writeFile(t, dir, "go.sum", readFile(t, filepath.Join(root, "go.sum")))
}

// mails is a CSV of two teams' mails that differ in a word or two.
func mails() string {
	var b strings.Builder
	b.WriteString("body,team\n")
	for _, noun := range []string{"invoice", "card", "payment", "bill"} {
		for _, problem := range []string{"was charged twice", "is too high", "came late", "must be refunded",
			"has the wrong sum"} {
			b.WriteString("the " + noun + " " + problem + ",billing\n")
		}
	}
	for _, noun := range []string{"program", "window", "button", "update"} {
		for _, problem := range []string{"crashes at start", "does not open", "hangs", "shows an error",
			"needs a password"} {
			b.WriteString("the " + noun + " " + problem + ",support\n")
		}
	}
	return b.String()
}

func goCommand(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func writeFile(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
