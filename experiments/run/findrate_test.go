package run

import (
	"context"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/internal/sample"
)

// The rate of a test of one step would be that of no place between the first and the last.
func TestARateTestHasItsSteps(t *testing.T) {
	for steps, want := range map[int]string{-1: "-1", 1: "argument steps 1: want a number from 10", 0: "", 10: ""} {
		r := prepared(t, sample.Small(t, ""), 1<<40)
		curve, err := r.FindRate(context.Background(), RateTest{From: 1e-4, To: 1e-3, Steps: steps}, func(int, int) {})
		if want != "" {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%d steps: %v, want %s", steps, err, want)
			}
			continue
		}
		if steps == 0 {
			steps = 100
		}
		if err != nil || len(curve.Points) != steps || curve.Points[0].Rate != 1e-4 ||
			curve.Points[steps-1].Rate != 1e-3 {
			t.Errorf("%d steps: %v, %+v", steps, err, curve.Points)
		}
	}
}

// Teachers would have to be trained first: a test goes without them, to the same curve.
func TestARateTestHasNoTeachers(t *testing.T) {
	path := taughtTasks(t, "  num_epochs: 1\n")
	curve := func(sets ...string) events.RateCurve {
		r, err := ready(mustRead(t, path, sets...), config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		c, err := r.FindRate(t.Context(), RateTest{From: 1e-4, To: 1e-2, Steps: 20}, func(int, int) {})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	alone := curve()
	if taught := curve("training.teachers=alone", "training.anneal=true"); !reflect.DeepEqual(taught, alone) {
		t.Errorf("the curve of tasks with teachers is %+v, want that without, %+v", taught, alone)
	}
}

// No rate is at fault where the first loss, before any update, is not finite.
func TestARateTestOfWeightsThatOverflowIsAnError(t *testing.T) {
	r := prepared(t, sample.Small(t, ""), 1<<40)
	for _, param := range r.Model.AllParams() {
		for i := range param.Data {
			param.Data[i] = 3e38
		}
	}
	_, err := r.FindRate(context.Background(), RateTest{From: 1e-4, To: 1e-3}, func(int, int) {})
	const start, end = "step 1: task ", "; no update came before it: it follows from the texts, their targets " +
		"and the initial weights"
	if err == nil || !strings.HasPrefix(err.Error(), start) || !strings.HasSuffix(err.Error(), end) {
		t.Errorf("error %v, want %s…%s", err, start, end)
	}
}
