package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
)

// teacherRun trains the run runs/mails, of four layers, in a new working directory.
func teacherRun(t *testing.T) {
	t.Helper()
	rateTest(t)
	mustCall(t, "", "train", "--set", "training.max_steps=4", "--set", "model.encoder.layers=4")
	writeFile(t, ".", "more.txt", strings.Repeat("pay me\nplease help\n", 8))
}

// studentOf reads the experiment file of a run.
func studentOf(t *testing.T, folder string) *config.Experiment {
	t.Helper()
	e, err := config.Read(t.Context(), filepath.Join(folder, runfolder.ExperimentFile), nil)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestDistilTrainsAStudentOfARun(t *testing.T) {
	teacherRun(t)
	was := names(t)
	status, out, log := call("", "distil", "runs/mails", "--set", "training.max_steps=4")
	if status != 0 || !strings.Contains(log, "training a student of runs/mails: 2 layers, [0 3] of 4, in "+
		filepath.Join("runs", "mails-distilled")) || !strings.Contains(out, "mails-distilled") {
		t.Fatalf("%d, %s%s", status, out, log)
	}
	if now := names(t); !slices.Equal(now, was) {
		t.Errorf("the working directory has %q, before %q", now, was)
	}
	e := studentOf(t, "runs/mails-distilled")
	m, own := e.Model, studentOf(t, "runs/mails")
	if e.ProjectName != "mails-distilled" || m.From != filepath.Join("runs", "mails") || m.Teacher.Name != m.From ||
		!slices.Equal(m.Layers, []int{0, 3}) || e.Training.Rate != own.Training.Rate ||
		e.Training.HeadRate != own.Training.HeadRate || e.Training.TeacherWeight != 0.5 ||
		e.Training.Temperature != 2 || e.Tasks[0].Data.Train.Name != "mails.csv" {
		t.Errorf("the student's experiment: %+v\n%+v\n%+v", m, e.Training, e.Tasks[0].Data)
	}
	mustCall(t, "please pay\n", "predict", "runs/mails-distilled")
	mustCall(t, "", "eval", "runs/mails-distilled", "--split", "dev")

	// its options, and that it is resumed as a run
	lines := strings.Split(strings.TrimSpace(mustCall(t, "", "distil", "runs/mails/best", "--layers", "1",
		"--unlabelled", "mor?.txt", "-o", "small", "--json", "--set",
		"training.max_steps=4")), "\n")
	var done struct {
		Event, Folder string
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &done); err != nil || done.Event != "done" {
		t.Errorf("the last line of --json: %s, %v", lines[len(lines)-1], err)
	}
	if e := studentOf(t, "small"); !slices.Equal(e.Model.Layers, []int{0}) ||
		!slices.Equal(e.Training.Unlabelled.Files.Paths(), []string{"more.txt"}) {
		t.Errorf("the student's experiment: %+v, %+v", e.Model, e.Training.Unlabelled)
	}
	mustCall(t, "", "train", "--resume", "small")
	mustCall(t, "", "distil", "small", "-o", "smaller", "--set", "training.max_steps=4", "--force")
	if e := studentOf(t, "smaller"); e.Training.Unlabelled.Given() || e.Model.From != "small" {
		t.Errorf("a student of a student: %+v, %+v", e.Model, e.Training.Unlabelled)
	}
}

func TestErrorsOfDistil(t *testing.T) {
	teacherRun(t)
	mustCall(t, "", "quantize", "runs/mails", "--no-dev", "--out", "int8")
	mustCall(t, "", "train", "--set", "training.max_steps=4", "--set", "model.encoder={type: bilstm}", "-o", "lstm")
	text, err := os.ReadFile("runs/mails/metrics.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	if err := os.CopyFS("begun", os.DirFS("runs/mails")); err != nil {
		t.Fatal(err)
	}
	writeFile(t, "begun", "metrics.jsonl", strings.Join(lines[:2], ""))
	for _, c := range []struct{ args, want string }{
		{"runs/mails --layers 0", "--layers: want a number from 1 on, have 0"},
		{"runs/mails --layers 5", "runs/mails: its encoder has 4 layers; want a student of 1 to 4, have 5"},
		{"runs/mails -o runs/mails", "runs/mails holds a run that the teacher is part of"},
		{"runs/mails -o runs/mails --force", "runs/mails holds a run that the teacher is part of"},
		{"runs/mails --unlabelled more.txt --set training.unlabelled=more.txt", "want one of them"},
		{"runs/mails --unlabelled gone.txt", "training: unlabelled: gone.txt: no such file"},
		{"runs/mails --set training.num_epoch=1", "num_epoch"},
		{"runs/mails --set training.teacher_weight=0", `the student of runs/mails: task "team": teacher: no other`},
		{"gone", "gone: no such folder"},
		{"mails.csv", "mails.csv"},
		{"int8", "int8: it is quantized to int8"},
		{"lstm", "lstm: its encoder has no layers that can be picked"},
		{"begun", "a student has a run as its teacher whose training is done"},
		{"", "an argument is missing"},
	} {
		status, out, log := call("", append([]string{"distil"}, strings.Fields(c.args)...)...)
		if status == 0 || out != "" || !strings.Contains(log, c.want) {
			t.Errorf("distil %s: %d, %s%s\nwant %s", c.args, status, out, log, c.want)
		}
	}
	if runfolder.Exists("runs/mails-distilled") {
		t.Error("a run folder was written")
	}
	if err := os.Rename("mails.csv", "moved.csv"); err != nil {
		t.Fatal(err)
	}
	status, _, log := call("", "distil", "runs/mails")
	if status == 0 || !strings.Contains(log,
		filepath.Join("runs", "mails", "experiment.yaml")+":") || !strings.Contains(log, "mails.csv: no such file") {
		t.Errorf("without its data: %d, %s", status, log)
	}
	if status, _, log := call("", "distil", "runs/mails", "--set", "tasks.team.data={train: moved.csv, text: body, "+
		"label: team}", "--set", "training.max_steps=2"); status != 0 {
		t.Errorf("with other data: %d, %s", status, log)
	}
}
