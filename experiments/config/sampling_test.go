package config

import (
	"path/filepath"
	"strings"
	"testing"
)

// A name that no task has is reported with the other mistakes, before data is read.
func TestOptionsOfTheSamplerNameTasks(t *testing.T) {
	file := filepath.Join(supportDeskFolder(t), "exp.yaml")
	for sampling, want := range map[string]string{
		"{type: weights, weights: {intnt: 2}}":             `no task "intnt"; did you mean "intent"?`,
		"{type: dynamic, targets: {intnt: 0.5}}":           `no task "intnt"; did you mean "intent"?`,
		"{type: weights, weights: {intent: 2, slots: 1}}":  `tasks "intent" and "slots" read the same texts`,
		"{type: uniform, groups: 7}":                       "groups is 7; want at most as many",
		"{type: weights, weights: {intent: 2}, groups: 1}": "",
	} {
		_, err := Read(file, []string{"training.batch_size=0", "training.sampling=" + sampling})
		for _, want := range []string{want, "batch_size: want a whole number"} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %s", sampling, err, want)
			}
		}
	}

	// a value of a wrong kind is one mistake
	_, err := Read(file, []string{"training.sampling={type: dynamic, targets: {intent: 5}}"})
	if err == nil || strings.Count(err.Error(), "want a number") != 1 || !strings.Contains(err.Error(), "have 5") {
		t.Errorf("%v, want one mistake of targets", err)
	}

	// without groups of tasks there is nothing to compare with
	for _, set := range []string{"tasks.slots.name=intent", "tasks.slots.name=null",
		"tasks.intent.data={same_as: slots}"} {
		_, err := Read(file, []string{set, "training.sampling={type: weights, weights: {x: 1}}"})
		if err == nil || strings.Contains(err.Error(), "weights") {
			t.Errorf("with %s: %v", set, err)
		}
	}
}
