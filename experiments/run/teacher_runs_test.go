package run

import (
	"os"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
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
