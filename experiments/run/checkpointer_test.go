package run

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
	"github.com/jenga-nlp/jenga/tasks"
)

// evaluation has the main metric of each of two tasks.
func evaluation(team, things float64) train.Evaluation {
	metrics := func(task string, v float64) multitask.TaskMetrics {
		head := multitask.HeadMetrics{Head: task, Examples: 1, Metrics: []tasks.Metric{{Name: "f1", Value: v}}}
		return multitask.TaskMetrics{Task: task, Heads: []multitask.HeadMetrics{head}}
	}
	return train.Evaluation{Groups: []multitask.GroupMetrics{
		{Tasks: []multitask.TaskMetrics{metrics("team", team), metrics("things", things)}},
	}}
}

func TestEarlyStoppingCountsEvaluationsSinceTheBest(t *testing.T) {
	for _, test := range []struct {
		name     string
		patience string
		values   []float64
		stops    int // evaluations until training ends; 0: it does not end
	}{
		{"without patience", "0", []float64{.5, .4, .3, .2}, 0},
		{"worse at once", "2", []float64{.5, .4, .3, .2}, 3},
		{"as good is no improvement", "2", []float64{.5, .5, .5, .5}, 3},
		{"an improvement between", "2", []float64{.5, .4, .6, .5, .4}, 5},
		{"always better", "1", []float64{.1, .2, .3, .4}, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			e := mustRead(t, sample.Small(t, ""), "training.early_stopping_patience="+test.patience)
			r, err := ready(e, config.Train, config.Dev)
			if err != nil {
				t.Fatal(err)
			}
			metrics, err := events.CreateLog(filepath.Join(t.TempDir(), "metrics"))
			if err != nil {
				t.Fatal(err)
			}
			defer metrics.Close()
			folder := filepath.Join(t.TempDir(), "run")
			lock, err := runfolder.Acquire(folder)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Release()
			c, stopped := r.newCheckpointer(lock, folder, training(t, r), metrics), 0
			defer c.wait()
			for i, v := range test.values {
				err := c.evaluated(evaluation(v, v))
				if err != nil && !errors.Is(err, train.ErrStop) {
					t.Fatal(err)
				}
				if err != nil {
					stopped = i + 1
					break
				}
			}
			if stopped != test.stops {
				t.Errorf("values %v stop training after %d evaluations, want %d", test.values, stopped, test.stops)
			}
		})
	}
}

func TestTheBestOfTheRunAndOfEachTaskAreReplacedWhereBetter(t *testing.T) {
	best, team, things := runfolder.BestDir, filepath.Join(runfolder.TasksDir, "team"),
		filepath.Join(runfolder.TasksDir, "things")
	evaluations := []struct {
		evaluation train.Evaluation
		want       []string
	}{
		{evaluation(.5, .3), []string{best, team, things}},
		{evaluation(.6, .1), []string{team}},
		{evaluation(.2, .8), []string{best, things}},
		{evaluation(.2, .8), nil},
	}
	overall := report.Selection{Metric: report.Overall, Higher: true}
	var b resume.Bests
	for i, test := range evaluations {
		got, err := b.Add(test.evaluation, overall, true)
		if err != nil || !slices.Equal(got, test.want) {
			t.Errorf("evaluation %d replaces %q, %v, want %q", i+1, got, err, test.want)
		}
	}
	if b.Value != .5 || b.Worse != 1 || b.Evaluations != 4 || b.TaskBest["team"] != .6 || b.TaskBest["things"] != .8 {
		t.Errorf("after all: %+v", b)
	}
	if _, err := b.Add(train.Evaluation{}, overall, true); err == nil {
		t.Error("an evaluation without metrics is no error")
	}
}

// A run that is continued in another process has its bests from a file.
func TestBestsAreTheSameAfterJSON(t *testing.T) {
	r, err := ready(mustRead(t, sample.Small(t, ""), "training.num_epochs=2"), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	overall := report.Selection{Metric: report.Overall, Higher: true}
	var b resume.Bests
	_, err = r.Train(context.Background(), filepath.Join(t.TempDir(), "run"), func(event train.Event) error {
		if e, ok := event.(train.Evaluation); ok {
			_, err := b.Add(e, overall, true)
			return err
		}
		return nil
	})
	if err != nil || b.Evaluations != 2 {
		t.Fatalf("Train = %v, with %d evaluations, want 2", err, b.Evaluations)
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	var again resume.Bests
	if err := json.Unmarshal(text, &again); err != nil || !reflect.DeepEqual(again, b) {
		t.Errorf("from %s: %v\n%+v\nwant\n%+v", text, err, again, b)
	}
}
