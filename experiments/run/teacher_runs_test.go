package run

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/plugin"
)

func TestWarningsOfRunsThatTeach(t *testing.T) {
	path := taughtTasks(t, "  max_steps: 4\n")
	trainSmall(t, path, "whole")
	if err := os.CopyFS("begun", os.DirFS("whole")); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(readText(t, "whole/metrics.jsonl"), "\n")
	if err := os.WriteFile("begun/metrics.jsonl", []byte(strings.Join(lines[:2], "")), 0o644); err != nil {
		t.Fatal(err)
	}
	warned := func(sets ...string) string {
		r, err := ready(mustRead(t, path, sets...), config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(plugin.Lines(r.Warnings), "\n")
	}

	if got := warned("model.teacher=whole"); strings.Contains(got, "whole") {
		t.Errorf("a teacher of the same division: %s", got)
	}
	got := warned("model.teacher=whole", "seed=4")
	for _, task := range []string{"cities", "team", "score"} {
		if !strings.Contains(got, `task "`+task+`": the teacher whole was trained on `) ||
			strings.Count(got, " of the 12 texts of dev") != 3 {
			t.Errorf("a teacher that was trained on texts of dev: %s", got)
		}
	}
	if got := warned("tasks.team.teacher=begun"); strings.Count(got, "begun: warning: ") != 1 ||
		!strings.Contains(got, "training of this run was interrupted") {
		t.Errorf("a teacher that is not trained to its end: %s", got)
	}
}

func TestTeachersThatAnswerForNothingAreNotTrained(t *testing.T) {
	path := taughtTasks(t, "  max_steps: 4\n  teachers: alone\n  teacher_weight: 0\n")
	sample.Write(t, "pairs.jsonl", strings.Repeat(`{"text": "a b", "pair": "c d", "label": "x"}`+"\n"+
		`{"text": "a e", "pair": "f d", "label": "y"}`+"\n", 12))
	var lines []string
	for line := range strings.Lines(readText(t, path)) {
		if strings.Contains(line, "name: score") {
			line = "  - {name: same, type: classification, data: {path: pairs.jsonl, split: {dev: 0.25}}}\n"
		}
		lines = append(lines, line)
	}
	sample.Write(t, path, strings.Join(lines, ""))
	trainSmall(t, path, "run")
	for task, want := range map[string]bool{"cities": true, "team": true, "same": false} {
		if runfolder.Exists("run/teachers/"+task) != want {
			t.Errorf("a teacher of %s: %v, want %v", task, !want, want)
		}
	}

	team := func(line string) bool { return strings.Contains(line, "name: team") }
	sample.Write(t, path, strings.Join(slices.DeleteFunc(lines, team), ""))
	if _, err := ready(mustRead(t, path), config.Train, config.Dev); err == nil ||
		!strings.Contains(err.Error(), "taught.yaml:12:13: training: teachers: alone: no task reads texts") {
		t.Errorf("%v, want an error that nothing is taught", err)
	}
}
