package predict

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/plugin"
)

// openSmall trains an experiment for an epoch and opens its run.
func openSmall(t *testing.T) *Opened {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	run, err := OpenRun(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestAnOpenedRunsEncoderIsFrozen(t *testing.T) {
	if run := openSmall(t); !run.Model.Frozen() || run.Data.Experiment.Model.Freeze.Always != "none" {
		t.Errorf("frozen: %v, of an experiment that freezes %+v", run.Model.Frozen(), run.Data.Experiment.Model.Freeze)
	}
}

func TestReadReportsAllMistakesOfTheData(t *testing.T) {
	run := openSmall(t)
	path := filepath.Join(t.TempDir(), "bad.jsonl")
	text := `{"words": ["a", "menu"], "team": {"name": "support"}, "tags": ["O", "O"]}
{"words": ["a", "fee"], "team": "billing", "tags": ["O"]}
`
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	err := run.Read(t.Context(), config.Dev, "", map[string][]string{"team": {path}})
	want := path + `:1: task "team": field "label" is an object; it takes a text, a number, true or false` + "\n" +
		path + `:2: task "things": field "tags" has 1 tag for 2 words; want a tag for each`
	if err == nil || err.Error() != want {
		t.Errorf("Read =\n%v\nwant\n%s", err, want)
	}
}

func TestAnOpenedRunRepairsTagsToTheSchemeOfTraining(t *testing.T) {
	const broken = "so O\nbad B-x\nday I-x\n\n" // BIO in itself
	run, opened := trainedRun(t, "  - {name: slots, type: ner, broken_tags: repair, data: {train: a.conll, "+
		"dev: b.conll, test: b.conll}}\n",
		map[string]string{"a.conll": "so O\ngood S-x\n\n" + broken, "b.conll": broken})
	if err := opened.Read(t.Context(), config.Test, "", nil); err != nil {
		t.Fatal(err)
	}
	for name, run := range map[string]*Opened{"trained": run.Opened, "opened": opened} {
		target := run.Data.Groups[0].Examples[config.Test][0].Targets[0]
		if got := strings.Join(outputs.As[outputs.TagsTarget](target).Tags, " "); got != "O B-x E-x" {
			t.Errorf("%s: tags %s, want O B-x E-x", name, got)
		}
	}
}

func TestASplitIsReadWithoutFilesThatAreNotPartOfIt(t *testing.T) {
	const data = `{"text": "so good", "label": "good"}` + "\n" + `{"text": "so bad", "label": "bad"}` + "\n"
	run, err := prepare(t, "  - {name: mood, type: classification, data: {train: a.jsonl, dev: a.jsonl}}\n"+
		"  - {name: tone, type: classification, data: {train: b.jsonl, test: b.jsonl}}\n",
		map[string]string{"a.jsonl": data, "b.jsonl": data})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Train(context.Background(), "run", ignore); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove("a.jsonl"); err != nil {
		t.Fatal(err)
	}
	opened, err := OpenRun(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Read(t.Context(), config.Test, "", nil); err != nil || len(opened.Warnings) > 0 {
		t.Errorf("Read = %v, and warnings %q: test has neither a file nor a split of a.jsonl", err, opened.Warnings)
	}
}

func TestARunWithoutItsBestModelOpensItsLast(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	if err := os.RemoveAll(filepath.Join(folder, runfolder.BestDir)); err != nil {
		t.Fatal(err)
	}
	run, err := OpenRun(t.Context(), folder)
	if err != nil {
		t.Fatal(err)
	}
	if want := folder + ": warning: there is no best model; using last"; len(run.Warnings) != 1 ||
		run.Warnings[0].String() != want {
		t.Errorf("warnings %q, want %q", run.Warnings, want)
	}
}

func TestReadRefusesTwoFilesForTheSameTexts(t *testing.T) {
	run := openSmall(t)
	err := run.Read(t.Context(), config.Dev, "", map[string][]string{"team": {"a.jsonl"}, "things": {"b.jsonl"}})
	want := `tasks "team" and "things" read the same texts, but argument data names a.jsonl and b.jsonl; ` +
		"want one file for both"
	if err == nil || err.Error() != want {
		t.Errorf("Read = %v, want %s", err, want)
	}
}

func TestTasksOnTheSameTextsReadAPipe(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("a pipe may have no path")
	}
	const data = `{"text": "so good", "label": "good", "tone": "fair"}` + "\n" +
		`{"text": "so bad", "label": "bad", "tone": "foul"}` + "\n"
	run, err := prepare(t, "  - {name: mood, type: classification, data: {train: a.jsonl, format: jsonl}}\n"+
		"  - {name: tone, type: classification, data: {same_as: mood, label: tone}}\n",
		map[string]string{"a.jsonl": data})
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
	pipe := map[string][]string{"mood": {fmt.Sprintf("/dev/fd/%d", r.Fd())}}
	if err := run.Read(t.Context(), config.Dev, "", pipe); err != nil {
		t.Fatal(err)
	}
	if dev := run.Data.Groups[0].Examples[config.Dev]; len(dev) != 2 || labelOf(dev[1].Targets[0]) != "bad" ||
		labelOf(dev[1].Targets[1]) != "foul" {
		t.Errorf("dev is %+v, want two texts with both tasks' labels", dev)
	}
}

func TestReadRefusesAFileOfATaskThatIsNotSelected(t *testing.T) {
	run, err := prepare(t, "  - {name: mood, type: classification, data: {train: a.jsonl, dev: a.jsonl}}\n"+
		"  - {name: tone, type: classification, data: {same_as: mood}}\n"+
		"  - {name: kind, type: classification, data: {train: a.jsonl, dev: a.jsonl}}\n",
		map[string]string{"a.jsonl": `{"text": "so good", "label": "good"}` + "\n" +
			`{"text": "so bad", "label": "bad"}` + "\n"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ task, of, want string }{
		{"mood", "kind", `argument data kind=a.jsonl: task "mood", which argument task selects, reads other ` +
			"texts; leave one of them out"},
		{"kind", "tone", `argument data tone=a.jsonl: task "kind", which argument task selects, reads other ` +
			"texts; leave one of them out"},
		{"mood", "tone", ""},
		{"", "kind", ""},
	} {
		err := run.Read(t.Context(), config.Dev, test.task, map[string][]string{test.of: {"a.jsonl"}})
		if (err == nil) != (test.want == "") || err != nil && err.Error() != test.want {
			t.Errorf("task %s with a file of %s: Read = %v, want %q", test.task, test.of, err, test.want)
		}
	}
}

func TestLabelsThatTrainDoesNotHaveGiveAWarning(t *testing.T) {
	run := openSmall(t)
	path := filepath.Join(t.TempDir(), "more.jsonl")
	text := `{"words": ["a", "menu", "hangs"], "team": "Support", "tags": ["O", "B-thing", "O"]}` + "\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run.Read(t.Context(), config.Test, "", map[string][]string{"team": {path}}); err != nil {
		t.Fatal(err)
	}
	want := `warning: task "team": ` + path + ` has 1 label that train does not have, which counts as wrong: ` +
		`"Support" 1 time`
	if got := strings.Join(plugin.Lines(run.Warnings), "\n"); got != want {
		t.Errorf("Warnings = %s, want %s", got, want)
	}
	metrics, err := run.Evaluate(context.Background(), config.Test, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := report.Metrics(metrics)["eval_team_team_accuracy"]; got != 0 {
		t.Errorf("accuracy = %v, want 0", got)
	}
}

func TestATestSplitOfOneKindGivesAWarning(t *testing.T) {
	const normal, odd = `{"text": "so good", "label": "normal"}` + "\n", `{"text": "so bad", "label": "odd"}` + "\n"
	_, opened := trainedRun(t, "  - {name: odd, type: anomaly, data: {train: a.jsonl, dev: a.jsonl, test: b.jsonl}}\n",
		map[string]string{"a.jsonl": normal + odd, "b.jsonl": odd})
	err := opened.Read(t.Context(), config.Test, "", nil)
	const want = `warning: task "odd": test has no normal text: auroc and specificity of head "odd" are undefined`
	if err != nil || !slices.Contains(plugin.Lines(opened.Warnings), want) {
		t.Errorf("warnings %q, %v, want %q", opened.Warnings, err, want)
	}
}

func TestAnOlderModelFileIsRefused(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "run")
	trainSmall(t, sample.Small(t, ""), folder, "training.num_epochs=1")
	path := filepath.Join(folder, runfolder.BestDir, runfolder.ModelFile)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ text, want string }{
		{"{", "unexpected end of JSON input"},
		{"{}", `model.json: no field "format"; want a file that jenga train has written`},
		{strings.Replace(string(good), `"format": 1`, `"format": 9`, 1), "format 9; this jenga reads 1"},
		{strings.Replace(string(good), `"billing"`, `""`, 1), "empty"},
		{strings.Replace(string(good), `"billing",`, `"billing", "sales",`, 1), "has shape"},
		{strings.Replace(string(good), `"name": "things"`, `"name": "thongs"`, 1), `no head "things"`},
	} {
		if err := os.WriteFile(path, []byte(test.text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := runfolder.WriteChecksums(t.Context(), filepath.Dir(path)); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenRun(t.Context(), folder); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("Open = %v, want an error with %q", err, test.want)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want := path + ": no such file: the checkpoint is incomplete; restore the file from a copy, or train again"
	if _, err := OpenRun(t.Context(), folder); err == nil || !strings.HasPrefix(err.Error(), want+"\n") {
		t.Errorf("Open = %v, want %s", err, want)
	}
}

func TestABatchOfEvaluationThatDoesNotFitIsAnError(t *testing.T) {
	run := openSmall(t)
	if err := run.Read(t.Context(), config.Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	run.machine = machine(map[string]string{"proc/meminfo": "MemAvailable: 1 kB\n"})
	_, err := run.Evaluate(context.Background(), config.Dev, nil)
	if err == nil || !strings.HasPrefix(err.Error(), run.Data.Experiment.Path+":") ||
		!strings.Contains(err.Error(), ": a batch of 8 texts with ") || strings.Contains(err.Error(), "optimizer") {
		t.Errorf("Evaluate = %v, want an error at the batch size's place, without the memory of training", err)
	}
	run.machine = machine(nil) // of another system
	if _, err := run.Evaluate(context.Background(), config.Dev, nil); err != nil {
		t.Errorf("Evaluate on a machine of unknown memory = %v", err)
	}
}

func TestEvaluationFitsIntoItsReservedMemory(t *testing.T) {
	run := openSmall(t)
	if err := run.Read(t.Context(), config.Dev, "", nil); err != nil {
		t.Fatal(err)
	}
	training := run.Data.Experiment.Training
	_, bytes := run.Model.Largest(multitask.EvaluationSizes(run.Data.Groups[0].Examples[config.Dev], training.BatchSize,
		training.BatchTokens), encoders.Workload{})
	for _, test := range []struct {
		free int64
		fits bool
	}{{bytes, false}, {multitask.Reserve(bytes), true}} {
		kib := (test.free+test.free/15)>>10 + 1 // of which a sixteenth is reserved
		run.machine = machine(map[string]string{"proc/meminfo": fmt.Sprintf("MemAvailable: %d kB\n", kib)})
		if _, err := run.Evaluate(context.Background(), config.Dev, nil); (err == nil) != test.fits {
			t.Errorf("Evaluate with %d bytes, of %d for a batch = %v", test.free, bytes, err)
		}
	}
}

func labelOf(t corpus.Target) string { return outputs.As[outputs.LabelTarget](t).Label }
