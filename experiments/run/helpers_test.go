package run

import (
	"context"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/dataset"
	"github.com/jenga-nlp/jenga/experiments/internal/sample"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/experiments/report"
)

// ready loads an experiment's splits and prepares its model for training.
func ready(e *config.Experiment, splits ...string) (*Run, error) {
	data, err := dataset.Load(e, splits...)
	if err != nil {
		return nil, err
	}
	built, err := model.New(data)
	if err != nil {
		return nil, err
	}
	return New(built)
}

// mustRead reads an experiment file.
func mustRead(t *testing.T, path string, sets ...string) *config.Experiment {
	t.Helper()
	e, err := config.Read(path, sets)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// prepare writes an experiment of the given tasks and data files, and prepares it in their folder.
func prepare(t *testing.T, tasks string, data map[string]string, sets ...string) (*Run, error) {
	t.Helper()
	sample.Tasks(t, tasks, data)
	return ready(mustRead(t, "exp.yaml", sets...), config.Train, config.Dev, config.Test)
}

// trainSmall trains an experiment into a folder.
func trainSmall(t *testing.T, path, folder string, sets ...string) (*Run, report.Done) {
	t.Helper()
	run, err := ready(mustRead(t, path, sets...), config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	done, err := run.Train(context.Background(), folder, ignore)
	if err != nil {
		t.Fatal(err)
	}
	return run, done
}

// ignore is an observer that ignores events.
func ignore(any) error { return nil }
