package experiments

import (
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	_ "github.com/jenga-nlp/jenga/encoders/transformer"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/multitask"
)

// smallExperiment writes an experiment of two tasks on the same texts, from scratch, and returns its path.
func smallExperiment(t *testing.T, more string) string {
	t.Helper()
	dir := t.TempDir()
	var lines strings.Builder
	for _, thing := range []string{"invoice", "card", "payment", "bill", "fee"} {
		for _, what := range []string{"was charged twice", "is too high", "came late", "has the wrong sum"} {
			fmt.Fprintf(&lines, `{"words": ["the", %q, %q], "team": "billing", "tags": ["O", "B-thing", "O"]}`+"\n", thing, strings.ReplaceAll(what, " ", "_"))
		}
	}
	for _, thing := range []string{"program", "window", "button", "update", "menu"} {
		for _, what := range []string{"crashes at start", "does not open", "hangs", "shows an error"} {
			fmt.Fprintf(&lines, `{"words": ["a", %q, %q], "team": "support", "tags": ["O", "B-thing", "O"]}`+"\n", thing, strings.ReplaceAll(what, " ", "_"))
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "mails.jsonl"), []byte(lines.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "mails.yaml")
	text := `
model:
  encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32, max_positions: 64}
  fusion: {type: attention, scale: residual}
tokenizer: {max_length: 64, train: {vocab_size: 200}}
tasks:
  - name: team
    type: classification
    data: {path: mails.jsonl, label: team, split: {dev: 0.2, test: 0.2}}
  - name: things
    type: ner
    data: {same_as: team}
training: {learning_rate: 1.0e-2, batch_size: 8, num_epochs: 15}
` + more
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// trainSmall trains an experiment into a folder.
func trainSmall(t *testing.T, path, folder string, sets ...string) (*Run, Done) {
	t.Helper()
	e, err := Read(path, sets)
	if err != nil {
		t.Fatal(err)
	}
	run, err := Prepare(e, Train, Dev)
	if err != nil {
		t.Fatal(err)
	}
	done, err := run.Train(context.Background(), folder, func(any) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	return run, done
}

// files reads all files below a folder.
func files(t *testing.T, folder string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		relative, _ := filepath.Rel(folder, path)
		all[relative] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestSameFileAndSeedGiveTheSameBytesAtAnyThreads(t *testing.T) {
	defer kernel.SetThreads(0)
	path := smallExperiment(t, "")
	var want map[string]string
	for n, threads := range []int{1, 1, 2, 3} {
		kernel.SetThreads(threads)
		folder := filepath.Join(t.TempDir(), "run")
		trainSmall(t, path, folder)
		got := files(t, filepath.Join(folder, bestDir))
		if n == 0 {
			want = got
			continue
		}
		if len(got) != len(want) {
			t.Errorf("%d threads wrote %d files, one thread %d", threads, len(got), len(want))
		}
		for name := range want {
			if got[name] != want[name] {
				t.Errorf("%d threads wrote another %s than one", threads, name)
			}
		}
	}
}

func TestARunOpensAsItWasTrained(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	_, done := trainSmall(t, smallExperiment(t, ""), folder)
	run, err := OpenRun(folder)
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Read(Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	scores, err := run.Evaluate(context.Background(), Dev, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, want := Figures(scores), Figures(done.Best.Groups)
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s = %v in the opened run, %v when it was saved", name, got[name], want[name])
		}
	}
	if v := got["eval_overall"]; v < 0.9 {
		t.Errorf("eval_overall = %v, want at least 0.9: the experiment is easy", v)
	}
	if err := run.Read(Test, "team", nil); err != nil {
		t.Fatal(err)
	}
	if got, want := len(run.Texts[0].Examples[Test]), 8; got != want {
		t.Errorf("%d test examples, want %d", got, want)
	}
	for _, name := range []string{"last", "tasks/team", "tasks/things"} {
		if _, err := OpenRun(filepath.Join(folder, name)); err != nil {
			t.Errorf("OpenRun(%s): %v", name, err)
		}
	}
}

func TestTheResolvedFileTrainsTheSameModelAgain(t *testing.T) {
	first, second := filepath.Join(t.TempDir(), "run"), filepath.Join(t.TempDir(), "again")
	trainSmall(t, smallExperiment(t, ""), first, "training.num_epochs=2")
	trainSmall(t, filepath.Join(first, experimentFile), second)
	got, want := files(t, filepath.Join(second, bestDir)), files(t, filepath.Join(first, bestDir))
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s differs", name)
		}
	}
}

func TestPredictionsDoNotDependOnCompany(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, smallExperiment(t, ""), folder)
	run, err := OpenRun(folder)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{"the invoice was late", `{"words": ["a", "button", "hangs"]}`, "the", `{"text": "a menu hangs", "pair": "often"}`}
	var together []*corpus.Example
	var alone []Answer
	for n, line := range lines {
		e, err := Input(line, n+1, nil)
		if err != nil {
			t.Fatal(err)
		}
		together = append(together, e)
		single, _ := Input(line, n+1, nil)
		answers, err := run.Predictor().Answer([]*corpus.Example{single})
		if err != nil {
			t.Fatal(err)
		}
		alone = append(alone, answers[0])
	}
	answers, err := run.Predictor().Answer(together)
	if err != nil {
		t.Fatal(err)
	}
	for i := range answers {
		if got, want := fmt.Sprint(jsonOf(t, answers[i])), fmt.Sprint(jsonOf(t, alone[i])); got != want {
			t.Errorf("in company %s, alone %s", got, want)
		}
	}
}

func TestEarlyStoppingEndsAfterItsPatience(t *testing.T) {
	path := smallExperiment(t, "")
	e, err := Read(path, []string{"training.num_epochs=50", "training.early_stopping_patience=2"})
	if err != nil {
		t.Fatal(err)
	}
	run, err := Prepare(e, Train, Dev)
	if err != nil {
		t.Fatal(err)
	}
	var values []float64
	if _, err := run.Train(context.Background(), filepath.Join(t.TempDir(), "run"), func(event any) error {
		if v, ok := event.(multitask.Evaluation); ok {
			values = append(values, Figures(v.Groups)["eval_overall"])
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	best := 0
	for i, v := range values {
		if v > values[best] {
			best = i
		}
	}
	if got, want := len(values), best+3; got != want || got == 50 {
		t.Errorf("ended after %d evaluations of %v, want %d: two after the best", got, values, want)
	}
}

func TestClaimRefusesFoldersThatHoldSomething(t *testing.T) {
	dir, e := t.TempDir(), &Experiment{}
	if err := e.Claim(filepath.Join(dir, "new"), false); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
	write(t, filepath.Join(dir, "thesis.txt"), "")
	if err := e.Claim(dir, true); err == nil {
		t.Error("a folder of other files is taken by force")
	}
	write(t, filepath.Join(dir, experimentFile), "")
	if err := os.Mkdir(filepath.Join(dir, tasksDir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := e.Claim(dir, true); err == nil || !strings.Contains(err.Error(), "no run") {
		t.Errorf("a folder with an experiment that never ran: %v", err)
	}
	write(t, filepath.Join(dir, metricsFile), "")
	if err := e.Claim(dir, false); err == nil || !strings.Contains(err.Error(), "--force") {
		t.Errorf("a folder that holds a run: %v", err)
	}
	if err := e.Claim(dir, true); err != nil {
		t.Errorf("a run is not replaced by force: %v", err)
	}

	// a kill has left no figures, but a model
	if err := os.Remove(filepath.Join(dir, metricsFile)); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, lastDir+oldSuffix), 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, lastDir+oldSuffix, modelFile), "")
	if err := e.Claim(dir, true); err != nil {
		t.Errorf("a run without figures is not replaced by force: %v", err)
	}
}

func TestARunThatTheBaseModelIsPartOfIsNotReplaced(t *testing.T) {
	path, folder := smallExperiment(t, ""), filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, folder, "training.num_epochs=1")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(folder, bestDir, encoderDir)
	based := strings.Replace(string(text), "encoder: {type: transformer, layers: 1, width: 16, heads: 2, feed_forward: 32, max_positions: 64}", "base_model: "+base, 1)
	write(t, path, strings.Replace(based, ", train: {vocab_size: 200}", "", 1))
	before := files(t, folder)

	want := folder + " holds a run that the base model is part of, " + base + ": name another folder by --out"
	for _, freeze := range []string{"all", "none"} {
		e := mustRead(t, path, "model.freeze="+freeze)
		if err := e.Claim(folder, true); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("freeze: %s: Claim = %v, want %s", freeze, err, want)
		}
		run, err := Prepare(e, Train, Dev)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := run.Train(context.Background(), folder, func(any) error { return nil }); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("freeze: %s: Train = %v, want %s", freeze, err, want)
		}
		if err := e.Claim(filepath.Join(folder, "next"), true); err != nil {
			t.Errorf("freeze: %s: a folder beside it: %v", freeze, err)
		}
	}
	if got := files(t, folder); !maps.Equal(got, before) {
		t.Error("the run is not what it was")
	}
}

func TestAForcedRunLeavesNothingOfTheOneBefore(t *testing.T) {
	path, folder := smallExperiment(t, ""), filepath.Join(t.TempDir(), "run")
	trainSmall(t, path, folder, "training.num_epochs=2")
	want := slices.Sorted(maps.Keys(files(t, folder)))

	// a kill, and tasks that the next run has not
	for _, name := range []string{"best.new", "last.new", "last.old", "tasks/other"} {
		if err := os.CopyFS(filepath.Join(folder, name), os.DirFS(filepath.Join(folder, bestDir))); err != nil {
			t.Fatal(err)
		}
	}
	trainSmall(t, path, folder, "training.num_epochs=2")
	if got := slices.Sorted(maps.Keys(files(t, folder))); !slices.Equal(got, want) {
		t.Errorf("files are %v, want %v", got, want)
	}
}

func TestTheBestStaysWhenTheLastIsWritten(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	run, _ := trainSmall(t, smallExperiment(t, ""), folder, "training.num_epochs=1")
	want := files(t, filepath.Join(folder, bestDir))
	for _, w := range run.Model.Params.All() {
		w.Data[0]++
	}
	if err := run.save(filepath.Join(folder, lastDir)); err != nil {
		t.Fatal(err)
	}
	got, last := files(t, filepath.Join(folder, bestDir)), files(t, filepath.Join(folder, lastDir))
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("best/%s changed with last/", name)
		}
	}
	for _, name := range []string{tensorsFile, filepath.Join(encoderDir, tensorsFile)} {
		if last[name] == want[name] {
			t.Errorf("last/%s is the best's", name)
		}
	}
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
