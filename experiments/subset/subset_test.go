package subset

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/quantize"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/internal/trained"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
	"github.com/jenga-nlp/jenga/predict"
)

// own is a task with texts of its own beside those of sample.Small.
const own = "  - {name: kind, type: classification, data: {path: mails.jsonl, label: team, split: {dev: 0.2, seed: 3}}}\n"

func TestMain(m *testing.M) { os.Exit(shared.RunTests(m)) }

// small trains the tasks of sample.Small, team and things on the same texts, and one with its own, into a new folder.
func small(t *testing.T, sets ...string) string {
	t.Helper()
	file := sample.Small(t, "")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sample.Write(t, file, strings.Replace(string(text), "training:", own+"training:", 1))
	return trained.Run(t, file, filepath.Join(filepath.Dir(file), "runs", "whole"),
		append([]string{"training.max_steps=12"}, sets...)...)
}

// adapted trains three tasks with changes of the encoder for each group.
func adapted(t *testing.T) string {
	t.Helper()
	return trained.NewBase(t).Run(t, "whole", trained.Teams+"  - {name: things, type: ner, data: {same_as: team}}\n"+own,
		"model.lora={r: 2, per_task: true}", "training.max_steps=12")
}

// answers returns the predictions of a run, by tasks.
func answers(t *testing.T, folder string) map[string][]any {
	t.Helper()
	m, err := predict.Open(t.Context(), folder, predict.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	all, err := m.PredictExamples(t.Context(), predict.Form{}, &corpus.Example{Text: "please refund the invoice"},
		&corpus.Example{Text: "the parcel came late, again"})
	if err != nil {
		t.Fatal(err)
	}
	of := map[string][]any{}
	for _, p := range all {
		for task, heads := range p.Tasks {
			var values []any
			for _, value := range heads { // a head's name may be that of its task
				values = append(values, value)
			}
			of[task] = append(of[task], values)
		}
	}
	return of
}

// calibrated writes a calibration of two tasks into the best checkpoint of a run.
func calibrated(t *testing.T, folder string) {
	t.Helper()
	best := filepath.Join(folder, runfolder.BestDir)
	sum, err := runfolder.CRC32C(t.Context(), filepath.Join(best, runfolder.ChecksumsFile))
	if err != nil {
		t.Fatal(err)
	}
	about, err := checkpoint.Read(t.Context(), best, folder)
	if err != nil {
		t.Fatal(err)
	}
	var all []checkpoint.HeadCalibration
	for i, task := range about.Tasks {
		if task.Type == "classification" {
			all = append(all, checkpoint.HeadCalibration{Task: task.Name, Head: task.Heads[0].Name,
				Labels: task.Heads[0].Labels, Temperature: 0.5 + float64(i)})
		}
	}
	if _, err := checkpoint.WriteCalibration(best, sum, nn.Float32, all); err != nil {
		t.Fatal(err)
	}
}

// quantized trains the tasks of small and quantizes their run.
func quantized(t *testing.T) string {
	t.Helper()
	s, err := quantize.Open(t.Context(), small(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	folder := filepath.Join(t.TempDir(), "int8")
	if err := s.Write(t.Context(), folder, false, nil); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestWhatIsKeptPredictsTheSame(t *testing.T) {
	for name, train := range map[string]func(*testing.T) string{
		"attention": func(t *testing.T) string { return small(t) },
		"no fusion": func(t *testing.T) string { return small(t, "model.fusion=none") },
		"frozen":    func(t *testing.T) string { return small(t, "model.freeze=all") },
		"weights":   func(t *testing.T) string { return small(t, "training.metric_for_best_model={team: 2, kind: 1}") },
		"adapters":  adapted,
		"int8":      quantized,
	} {
		t.Run(name, func(t *testing.T) {
			folder := train(t)
			calibrated(t, folder)
			want := answers(t, folder)
			for _, c := range []struct {
				o     Options
				names map[string]string // new → old
			}{
				{Options{Drop: []string{"kind"}}, map[string]string{"team": "team", "things": "things"}},
				{Options{Drop: []string{"team"}, Rename: map[string]string{"things": "spans"}},
					map[string]string{"spans": "things", "kind": "kind"}},
				{Options{Extract: []string{"kind"}, Rename: map[string]string{"kind": "team"}},
					map[string]string{"team": "kind"}},
				{Options{Rename: map[string]string{"team": "kind", "kind": "team"}},
					map[string]string{"kind": "team", "things": "things", "team": "kind"}},
			} {
				s, err := Open(t.Context(), folder, c.o)
				if err != nil {
					t.Fatal(err)
				}
				out := filepath.Join(t.TempDir(), "deep", "new")
				if err := s.Write(t.Context(), out, false); err != nil {
					t.Fatalf("%+v: %v", c.o, err)
				}
				s.Close()
				got := answers(t, out)
				if len(got) != len(c.names) {
					t.Errorf("%+v: tasks %v", c.o, got)
				}
				for now, was := range c.names {
					if !reflect.DeepEqual(got[now], want[was]) {
						t.Errorf("%+v: task %q has %v, want %v", c.o, now, got[now], want[was])
					}
				}
				checkSplits(t, out, c.names)
				if found, err := resume.Find(t.Context(), out); name != "int8" && (err != nil || !found.Done()) {
					t.Errorf("%+v: to resume: %+v, %v", c.o, found, err)
				}
			}
		})
	}
}

// checkSplits checks that splits.jsonl names files that exist, and tasks of the run.
func checkSplits(t *testing.T, folder string, names map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(folder, runfolder.SplitsFile))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var of runfolder.SplitLine
		if err := json.Unmarshal([]byte(line), &of); err != nil {
			t.Fatal(err)
		}
		path, err := runfolder.Resolve(folder, of.File)
		if err != nil || !runfolder.Exists(path) || len(of.Tasks) == 0 {
			t.Errorf("splits.jsonl: %v, %v", of, err)
		}
		for _, task := range of.Tasks {
			if names[task] == "" {
				t.Errorf("splits.jsonl names the task %q", task)
			}
		}
	}
}

// A new run can be trained anew by its experiment file, trained on as a base run, and predicts without the earlier one.
func TestTheNewRunIsWhole(t *testing.T) {
	folder := small(t, "training.metric_for_best_model=eval_team_team_accuracy")
	s, err := Open(t.Context(), folder, Options{Drop: []string{"things"}, Rename: map[string]string{"team": "group"}})
	if err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(filepath.Dir(folder), "new")
	if err := s.Write(t.Context(), out, false); err != nil {
		t.Fatal(err)
	}
	s.Close()
	want := answers(t, out)
	if err := os.RemoveAll(folder); err != nil {
		t.Fatal(err)
	}
	if got := answers(t, out); !reflect.DeepEqual(got, want) {
		t.Errorf("without the earlier run: %v, want %v", got, want)
	}
	e, err := config.Read(t.Context(), filepath.Join(out, runfolder.ExperimentFile), nil)
	if err != nil || e.Training.Selection.Metric != "eval_group_team_accuracy" || e.ProjectName != "new" {
		t.Fatalf("experiment.yaml: %+v, %v", e, err)
	}
	trained.Run(t, filepath.Join(out, runfolder.ExperimentFile), filepath.Join(t.TempDir(), "again"),
		"training.max_steps=2")
	grown := filepath.Join(filepath.Dir(filepath.Dir(folder)), "grown.yaml")
	sample.Write(t, grown, "model: {base_model: runs/new, freeze: all, keep_tasks: [group]}\ntasks:\n"+own+
		"training: {max_steps: 2}\n")
	trained.Run(t, grown, filepath.Join(t.TempDir(), "grown"))
	if found, err := resume.Find(t.Context(), out); err != nil || !found.Done() || found.Point != nil {
		t.Errorf("to resume: %+v, %v", found, err)
	}
	if _, err := run.Refit(t.Context(), out, nil); err != nil {
		t.Errorf("trained again: %v", err)
	}
}

func TestWrongTasks(t *testing.T) {
	folder := small(t)
	for _, c := range []struct {
		o    Options
		want []string
	}{
		{Options{Drop: []string{"tema"}}, []string{`argument drop: no task "tema"; did you mean "team"?`}},
		{Options{Extract: []string{"a", "b"}}, []string{`argument extract: no task "a"`, `no task "b"`}},
		{Options{Drop: []string{"team", "things", "kind"}}, []string{"no task is left; the run has team, things, kind"}},
		{Options{Drop: []string{"team"}, Extract: []string{"kind"}}, []string{"want one of them"}},
		{Options{Rename: map[string]string{"team": "Kind", "things": "a/b"}}, []string{
			`tasks "team" and "kind" would both be called "kind"`, `task "things": `}},
		{Options{Rename: map[string]string{"team": "caf\u00e9", "things": "cafe\u0301"}}, []string{
			"would both be called", "more than case and the encoding of accents"}},
		{Options{Drop: []string{"team"}, Rename: map[string]string{"team": "x"}}, []string{`"team" is not in the new run`}},
	} {
		_, err := Open(t.Context(), folder, c.o)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %s", c.o, err, want)
			}
		}
	}
	s, err := Open(t.Context(), folder, Options{Drop: []string{"things"}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !strings.Contains(strings.Join(plugin.Lines(s.Warnings), "\n"), `task "team" is kept without "things"`) {
		t.Errorf("warnings %v", s.Warnings)
	}
	for _, out := range []string{folder, filepath.Join(folder, "new"), filepath.Dir(folder)} {
		if err := s.Check(out, true); err == nil {
			t.Errorf("a run can be written to %s", out)
		}
	}
}
