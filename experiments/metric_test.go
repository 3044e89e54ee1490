package experiments

import (
	"maps"
	"path/filepath"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/tasks"
)

// What a file may choose the best model by is what evaluations have, name by name.
func TestMetricsAreThoseOfEvaluations(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	for _, sets := range [][]string{
		nil,
		{"tasks.slots.data={train: data/train.csv, tags: slots}"},
		{"tasks=[{name: words, type: tagging, data: {train: data/train.csv}}]", "training.metric_for_best_model=eval_words_loss"},
	} {
		t.Chdir(filepath.Dir(file))
		e := mustRead(t, file, sets...)
		var groups []multitask.GroupScore
		for _, texts := range e.group() {
			groups = append(groups, scoreOfNothing(t, e, texts))
		}
		d := decoding{e: e}
		names, _ := d.metrics()
		got := slices.Sorted(slices.Values(names))
		want := slices.Sorted(maps.Keys(Figures(groups)))
		if !slices.Equal(got, want) || !d.mistakes.None() {
			t.Errorf("with %q a file may name\n%q\nan evaluation has\n%q", sets, got, want)
		}
	}
}

func scoreOfNothing(t *testing.T, e *Experiment, texts Texts) multitask.GroupScore {
	t.Helper()
	var score multitask.GroupScore
	heads := 0
	for _, number := range texts.Tasks {
		task := e.Tasks[number]
		part, err := task.Part.Build(tasks.Site{Name: task.Name, Heads: headNames(task.Heads), Split: splitBlanks})
		if err != nil {
			t.Fatal(err)
		}
		s := multitask.TaskScore{Task: task.Name}
		for _, head := range task.Heads {
			s.Heads = append(s.Heads, multitask.HeadScore{Head: head.Name, Loss: multitask.Loss{Units: 1}, Metrics: part.Judge(nil, nil)})
			heads++
		}
		score.Tasks = append(score.Tasks, s)
	}
	if heads > 1 {
		score.AllRight = new(float64)
	}
	return score
}
