package experiments

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// openSmall trains an experiment for an epoch and opens its run.
func openSmall(t *testing.T) *Run {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, smallExperiment(t, ""), folder, "training.num_epochs=1")
	run, err := OpenRun(folder)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestAnOpenedRunsEncoderIsFrozen(t *testing.T) {
	if run := openSmall(t); !run.Model.Frozen() || run.Experiment.Model.Freeze != "none" {
		t.Errorf("frozen: %v, of an experiment that freezes %q", run.Model.Frozen(), run.Experiment.Model.Freeze)
	}
}

func TestReadSaysAllThatIsWrongWithTheData(t *testing.T) {
	run := openSmall(t)
	path := filepath.Join(t.TempDir(), "bad.jsonl")
	text := `{"words": ["a", "menu"], "team": ["support"], "tags": ["O", "O"]}
{"words": ["a", "fee"], "team": "billing", "tags": ["O"]}
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	err := run.Read(Dev, "", map[string]string{"team": path})
	want := path + `:1: task "team": field "label" is a list; it takes a text, a number, true or false` + "\n" +
		path + `:2: task "things": 1 tags for 2 words; want a tag for each`
	if err == nil || err.Error() != want {
		t.Errorf("Read =\n%v\nwant\n%s", err, want)
	}
}

func TestAnOpenedRunRepairsTagsToTheSchemeOfTraining(t *testing.T) {
	const broken = "so O\nbad B-x\nday I-x\n\n" // by itself in bio
	run, err := prepare(t, "  - {name: slots, type: ner, broken_tags: repair, data: {train: a.conll, dev: b.conll, test: b.conll}}\n",
		map[string]string{"a.conll": "so O\ngood S-x\n\n" + broken, "b.conll": broken})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Train(context.Background(), "run", nothing); err != nil {
		t.Fatal(err)
	}
	opened, err := OpenRun("run")
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Read(Test, "", nil); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]*Run{"trained": run, "opened": opened} {
		if got := strings.Join(run.Texts[0].Examples[Test][0].Targets[0].Tags, " "); got != "O B-x E-x" {
			t.Errorf("%s: tags %s, want O B-x E-x", name, got)
		}
	}
}

func TestASplitIsReadWithoutFilesThatAreNotPartOfIt(t *testing.T) {
	const data = `{"text": "so good", "label": "good"}` + "\n" + `{"text": "so bad", "label": "bad"}` + "\n"
	run, err := prepare(t, "  - {name: mood, type: classification, data: {train: a.jsonl, dev: a.jsonl}}\n"+
		"  - {name: tone, type: classification, data: {train: b.jsonl, test: b.jsonl}}\n", map[string]string{"a.jsonl": data, "b.jsonl": data})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Train(context.Background(), "run", func(any) error { return nil }); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove("a.jsonl"); err != nil {
		t.Fatal(err)
	}
	opened, err := OpenRun("run")
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Read(Test, "", nil); err != nil || len(opened.Remarks) > 0 {
		t.Errorf("Read = %v, and remarks %q: test has neither a file nor a share of a.jsonl", err, opened.Remarks)
	}
}

func TestARunWithoutItsBestAnswersByItsLast(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, smallExperiment(t, ""), folder, "training.num_epochs=1")
	if err := os.RemoveAll(filepath.Join(folder, bestDir)); err != nil {
		t.Fatal(err)
	}
	run, err := OpenRun(folder)
	if err != nil {
		t.Fatal(err)
	}
	if want := folder + ": there is no best model, so its last is taken"; len(run.Remarks) != 1 || run.Remarks[0] != want {
		t.Errorf("remarks %q, want %q", run.Remarks, want)
	}
}

func TestReadRefusesTwoFilesForTheSameTexts(t *testing.T) {
	run := openSmall(t)
	err := run.Read(Dev, "", map[string]string{"team": "a.jsonl", "things": "b.jsonl"})
	want := `tasks "team" and "things" read the same texts, but --data names a.jsonl and b.jsonl; want one file for both`
	if err == nil || err.Error() != want {
		t.Errorf("Read = %v, want %s", err, want)
	}
}

func TestTasksOnTheSameTextsReadAPipe(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a pipe may have no name to open it by")
	}
	const data = `{"text": "so good", "label": "good", "tone": "fair"}` + "\n" + `{"text": "so bad", "label": "bad", "tone": "foul"}` + "\n"
	run, err := prepare(t, "  - {name: mood, type: classification, data: {train: a.jsonl, format: jsonl}}\n"+
		"  - {name: tone, type: classification, data: {same_as: mood, label: tone}}\n", map[string]string{"a.jsonl": data})
	if err != nil {
		t.Fatal(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if _, err := w.WriteString(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := run.Read(Dev, "", map[string]string{"mood": fmt.Sprintf("/dev/fd/%d", r.Fd())}); err != nil {
		t.Fatal(err)
	}
	if dev := run.Texts[0].Examples[Dev]; len(dev) != 2 || dev[1].Targets[0].Label != "bad" || dev[1].Targets[1].Label != "foul" {
		t.Errorf("dev is %+v, want two texts with both tasks' labels", dev)
	}
}

func TestReadRefusesAFileThatATaskAloneDoesNotRead(t *testing.T) {
	run, err := prepare(t, "  - {name: mood, type: classification, data: {train: a.jsonl, dev: a.jsonl}}\n"+
		"  - {name: tone, type: classification, data: {same_as: mood}}\n"+
		"  - {name: kind, type: classification, data: {train: a.jsonl, dev: a.jsonl}}\n",
		map[string]string{"a.jsonl": `{"text": "so good", "label": "good"}` + "\n" + `{"text": "so bad", "label": "bad"}` + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ task, of, want string }{
		{"mood", "kind", `--data kind=a.jsonl: task "mood", which --task judges alone, reads other texts; leave one of them out`},
		{"kind", "tone", `--data tone=a.jsonl: task "kind", which --task judges alone, reads other texts; leave one of them out`},
		{"mood", "tone", ""},
		{"", "kind", ""},
	} {
		err := run.Read(Dev, test.task, map[string]string{test.of: "a.jsonl"})
		if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("task %s with a file of %s: Read = %v, want %q", test.task, test.of, err, test.want)
		}
	}
}

func TestReadRemarksOnLabelsThatTrainingHasNot(t *testing.T) {
	run := openSmall(t)
	path := filepath.Join(t.TempDir(), "more.jsonl")
	text := `{"words": ["a", "menu", "hangs"], "team": "Support", "tags": ["O", "B-thing", "O"]}` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run.Read(Test, "", map[string]string{"team": path}); err != nil {
		t.Fatal(err)
	}
	want := `task "team": test has label "Support" 1 times, which train has not: it is judged as wrong`
	if got := strings.Join(run.Remarks, "\n"); got != want {
		t.Errorf("Remarks = %s, want %s", got, want)
	}
	scores, err := run.Evaluate(context.Background(), Test, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := Figures(scores)["eval_team_team_accuracy"]; got != 0 {
		t.Errorf("accuracy = %v, want 0", got)
	}
}
