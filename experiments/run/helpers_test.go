package run

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/runfolder"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/internal/shared"
	"github.com/jenga-nlp/jenga/multitask/train"
)

func TestMain(m *testing.M) { os.Exit(shared.RunTests(m)) }

// mustRead reads an experiment file.
func mustRead(t *testing.T, path string, sets ...string) *config.Experiment {
	t.Helper()
	e, err := config.Read(t.Context(), path, sets)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ready prepares an experiment for training.
func ready(e *config.Experiment, splits ...string) (*Run, error) {
	return Prepare(context.Background(), e, nil, splits...)
}

// prepare writes an experiment of the given tasks and data files, and prepares it in their folder.
func prepare(t *testing.T, tasks string, data map[string]string, sets ...string) (*Run, error) {
	t.Helper()
	sample.Tasks(t, tasks, data)
	return ready(mustRead(t, "exp.yaml", sets...), config.Train, config.Dev, config.Test)
}

// trainSmall trains an experiment into a folder.
func trainSmall(t *testing.T, path, folder string, sets ...string) (*Run, events.Done) {
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
func ignore(train.Event) error { return nil }

// save writes the model to a folder of the run.
func (r *Run) save(folder string) error {
	m, err := r.saved(filepath.Dir(folder), nil)
	if err != nil {
		return err
	}
	return runfolder.Replace(folder, func(fresh string) error { return m.Write(context.Background(), fresh) })
}
