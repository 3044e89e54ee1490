package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// shownFile returns a Go file that a page shows: its first line is a comment with the file's name.
func shownFile(t *testing.T, page, name string) string {
	t.Helper()
	block := regexp.MustCompile("(?s)```go\n// " + regexp.QuoteMeta(name) + "\n(.*?)```").FindStringSubmatch(page)
	if block == nil {
		t.Fatalf("no page shows %s", name)
	}
	return block[1]
}

func TestReadmeHeadBuildsAndTrainsOutsideTheRepository(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program of another module")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	pages := readFile(t, filepath.Join(root, "README.md")) +
		readFile(t, filepath.Join(root, "docs", "own-parts.md"))
	dir := t.TempDir()

	writeModule(t, dir, root, "example.com/mine")
	for _, name := range []string{"maxpool/maxpool.go", "maxpool/maxpool_test.go", "main.go"} {
		writeFile(t, dir, name, shownFile(t, pages, name))
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

// The programs of docs/go.md train an experiment with a metric of their own, and answer by a run.
func TestProgramsOfThePageBuildAndTrainOutsideTheRepository(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program of another module")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir, page := t.TempDir(), readFile(t, filepath.Join(root, "docs", "go.md"))
	writeModule(t, dir, root, "example.com/answers")
	for _, name := range []string{"train/main.go", "answers/main.go"} {
		writeFile(t, dir, name, shownFile(t, page, name))
	}
	writeFile(t, dir, "mails.csv", mails())
	const more = "\ntraining: {metric_for_best_model: eval_team_team_billing_recall, "
	experiment := strings.Replace(smallExperiment, "type: classification", "type: rated", 1)
	writeFile(t, dir, "experiment.yaml", strings.Replace(experiment, "\ntraining: {", more, 1))

	goCommand(t, dir, "vet", "./...")
	goCommand(t, dir, "build", "-o", "program", "./train")
	for i, want := range []string{"epoch 8: billing_recall ", "runs/mails holds a run"} {
		train := exec.Command(filepath.Join(dir, "program"))
		train.Dir = dir
		out, err := train.CombinedOutput()
		if !strings.Contains(string(out), want) || (err != nil) != (i > 0) {
			t.Errorf("run %d: %v, %s; want %s", i+1, err, out, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "runs/mails/best/model.json")); err != nil {
		t.Error(err)
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
	cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod -ldflags=-w", "GOWORK=off") // linking is half of the time
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

// A module outside the repository adds an output kind with its task and head: testdata/grading.
func TestAnOutputKindOfAnotherModuleTrainsAndPredicts(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program of another module")
	}
	grading := buildGrading(t)
	if list := grading.run("", "parts", "section", "data"); !strings.Contains(list, "column of a grade") {
		t.Errorf("the kind's field is not among the keys of data:\n%s", list)
	}
	grading.run("", "train")

	// the run folder can be opened and evaluated
	var evaluated struct {
		Tasks map[string]struct{ Heads map[string]map[string]any }
	}
	out := grading.run("", "eval", "runs/notes", "--split", "test", "--json")
	if err := json.Unmarshal([]byte(out), &evaluated); err != nil {
		t.Fatal(err)
	}
	metrics := evaluated.Tasks["urgency"].Heads["urgency"]
	qwk, _ := metrics["qwk"].(float64)
	mae, ok := metrics["mae"].(float64)
	if !ok || !(qwk > 0.5 && mae < 0.5) {
		t.Errorf("metrics %v, want qwk > 0.5 and mae < 0.5", metrics)
	}

	// it predicts
	var prediction struct {
		Tasks map[string]map[string]struct {
			Grade       string
			Rank        *int
			Probability float64
		}
	}
	line := grading.run("Please pay the dental bill.\n", "predict", "runs/notes")
	if err := json.Unmarshal([]byte(line), &prediction); err != nil {
		t.Fatal(err)
	}
	got := prediction.Tasks["urgency"]["urgency"]
	rank := slices.Index([]string{"routine", "soon", "urgent"}, got.Grade)
	if got.Rank == nil || *got.Rank != rank || got.Probability <= 0 {
		t.Errorf("predicted %s", line)
	}
	table := grading.run("Please pay the dental bill.\n", "predict", "runs/notes", "--format", "csv")
	if !strings.HasSuffix(table, "\nPlease pay the dental bill.,"+got.Grade+"\n") {
		t.Errorf("as csv: %s", table)
	}

	// a head without a loss against probabilities learns what its teacher predicts
	more := strings.Replace(readFile(t, filepath.Join("testdata", "grading", "experiment.yaml")), "training:", `
  - {name: kind, type: classification, data: {train: train.jsonl.gz, dev: dev.jsonl, label: claim_type, limit: 400}}
training:`, 1)
	writeFile(t, grading.folder, "taught.yaml", more)
	events := grading.run("", "train", "taught.yaml", "--out", "taught", "--json", "--set", "training.num_epochs=1",
		"--set", "tasks.urgency.teacher=runs/notes")
	if !strings.Contains(events, `head \"urgency\" has no probabilities that could be learned`) {
		t.Errorf("no event says that predictions are learned:\n%s", events)
	}
}

// program is the binary of a module outside the repository, in the module's folder.
type program struct {
	t      *testing.T
	folder string
}

// buildGrading tests and builds testdata/grading as a module of its own, beside the shipped notes.
func buildGrading(t *testing.T) program {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	writeModule(t, folder, root, "example.com/grading")
	for _, name := range []string{
		"main.go", "experiment.yaml", "grade/kind.go", "grade/head.go", "grade/task.go", "grade/grade_test.go",
	} {
		writeFile(t, folder, name, readFile(t, filepath.Join("testdata", "grading", name)))
	}
	for _, name := range []string{"train.jsonl.gz", "dev.jsonl"} {
		writeFile(t, folder, name, readFile(t, filepath.Join(root, "experiments", "claims", name)))
	}
	goCommand(t, folder, "test", "./grade")
	goCommand(t, folder, "build", "-o", "grading", ".")
	return program{t, folder}
}

// run returns what a command writes to stdout.
func (p program) run(stdin string, args ...string) string {
	p.t.Helper()
	c := exec.Command(filepath.Join(p.folder, "grading"), args...)
	c.Dir, c.Stdin = p.folder, strings.NewReader(stdin)
	var stderr strings.Builder
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		p.t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return string(out)
}
