package predict

import (
	"context"
	"math"
	"testing"
	"testing/fstest"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/memory"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// trained is a run that is ready to train, and to predict with its current weights.
type trained struct {
	*Opened
	run *run.Run
}

// Train trains the run into a folder.
func (t trained) Train(ctx context.Context, folder string, observe func(event train.Event) error) (events.Done, error) {
	return t.run.Train(ctx, folder, observe)
}

// ready loads an experiment's splits and prepares its model for training.
func ready(e *config.Experiment, splits ...string) (trained, error) {
	r, err := run.Prepare(context.Background(), e, nil, splits...)
	if err != nil {
		return trained{}, err
	}
	return trained{&Opened{Data: r.Data, Model: r.Model, Warnings: r.Warnings, machine: memory.This()}, r}, nil
}

// asked returns a model of the run, with the named tasks or all, that computes each call in one batch. The run stays
// open.
func (o *Opened) asked(t testing.TB, tasks ...string) *Model {
	t.Helper()
	m, err := New(o, Options{Tasks: tasks, BatchTokens: math.MaxInt})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		m.predicting.Close()
		m.embedding.Close()
		m.explaining.Close()
	})
	return m
}

// answer returns the predictions for examples.
func (o *Opened) answer(t testing.TB, form Form, examples []*corpus.Example) ([]Prediction, error) {
	t.Helper()
	return o.asked(t).PredictExamples(context.Background(), form, examples...)
}

// prepare writes an experiment of the given tasks and data files, and prepares it in their folder.
func prepare(t *testing.T, tasks string, data map[string]string, sets ...string) (trained, error) {
	t.Helper()
	sample.Tasks(t, tasks, data)
	e, err := config.Read(t.Context(), "exp.yaml", sets)
	if err != nil {
		t.Fatal(err)
	}
	return ready(e, config.Train, config.Dev, config.Test)
}

// trainSmall trains an experiment into a folder.
func trainSmall(t *testing.T, path, folder string, sets ...string) (trained, events.Done) {
	t.Helper()
	e, err := config.Read(t.Context(), path, sets)
	if err != nil {
		t.Fatal(err)
	}
	return trainTo(t, e, folder)
}

func trainTo(t *testing.T, e *config.Experiment, folder string) (trained, events.Done) {
	t.Helper()
	r, err := ready(e, config.Train, config.Dev)
	if err != nil {
		t.Fatal(err)
	}
	done, err := r.Train(context.Background(), folder, ignore)
	if err != nil {
		t.Fatal(err)
	}
	return r, done
}

// trainedRun prepares an experiment as prepare does, trains it into the folder run, and opens that.
func trainedRun(t *testing.T, tasks string, files map[string]string, settings ...string) (trained, *Opened) {
	t.Helper()
	run, err := prepare(t, tasks, files, settings...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Train(context.Background(), "run", ignore); err != nil {
		t.Fatal(err)
	}
	opened, err := OpenRun(t.Context(), "run")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	return run, opened
}

// ignore is an observer that ignores events.
func ignore(train.Event) error { return nil }

// machine returns a machine with the given files.
func machine(files map[string]string) memory.Machine {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return memory.Machine{Files: m}
}

// readAll returns an example as the groups of a model read it.
func readAll(t testing.TB, m *Model, e *corpus.Example) *reading {
	t.Helper()
	r, err := m.read(t.Context(), e, &Form{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return r
}
