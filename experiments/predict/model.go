package predict

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/internal/batch"
	"github.com/jenga-nlp/jenga/nn"
)

// Options are how Open opens a run. The zero value computes all tasks in float32.
type Options struct {
	Tasks     []string     // those that are computed; empty: all
	Precision nn.Precision // of the encoder's products

	// BatchTokens is the most tokens of a batch, 0 for DefaultBatchTokens; a longer text is a batch of its own. More
	// tokens take longer, and the next texts wait for them.
	BatchTokens int
	// Wait is how long texts that had to wait for a batch wait for others to come, before they are the next batch. 0 is
	// the least delay; one or two milliseconds make larger batches where many callers send one text at a time.
	Wait time.Duration
	// MaxWaiting is how many texts may wait; a call that would add more gets ErrBusy. 0: any number.
	MaxWaiting int
}

// DefaultBatchTokens is the number of tokens of a batch from which on more tokens gain little speed.
const DefaultBatchTokens = 1024

// ErrBusy is the error of a call that finds too many texts waiting.
var ErrBusy = errors.New("too many texts wait for an answer")

// ErrClosed is the error of a call after Close.
var ErrClosed = errors.New("the model is closed")

// Model is a trained run that answers texts. Many goroutines may call its methods at once: texts of calls that meet are
// encoded together, in one pass for all tasks, and an answer does not depend on the texts beside it. It changes no
// setting of the process: GOMAXPROCS bounds the processor cores that it uses.
type Model struct {
	run       *Opened
	predictor *Predictor
	queue     *batch.Queue[reading, Prediction]
}

// Open opens a trained run, a run folder or one of its checkpoints, to answer texts. The caller closes the model.
func Open(folder string, o Options) (*Model, error) {
	run, err := OpenRun(folder)
	if err != nil {
		return nil, err
	}
	m, err := newModel(run, o)
	if err != nil {
		return nil, errors.Join(err, run.Close())
	}
	return m, nil
}

func newModel(run *Opened, o Options) (*Model, error) {
	if err := run.SetPrecision(o.Precision); err != nil {
		return nil, fmt.Errorf("precision %v: %w", o.Precision, err)
	}
	if o.BatchTokens == 0 {
		o.BatchTokens = DefaultBatchTokens
	}
	m := &Model{run: run, predictor: run.Predictor(o.Tasks...)}
	if err := m.checkTasks(o.Tasks); err != nil {
		return nil, err
	}
	m.queue = batch.New(batch.Options{Size: o.BatchTokens, Wait: o.Wait, Most: o.MaxWaiting},
		func(r reading) int { return r.tokens }, m.predictor.predictAll)
	return m, nil
}

// checkTasks returns an error for names that are none of the run's tasks.
func (m *Model) checkTasks(names []string) error {
	for _, name := range names {
		if _, _, err := m.run.Model.Group(name); err != nil {
			return err
		}
	}
	return nil
}

// Predict returns the predictions of all tasks for texts, in their order. A text that no task reads has an error of its
// own.
func (m *Model) Predict(ctx context.Context, texts ...string) ([]Prediction, error) {
	examples := make([]*corpus.Example, len(texts))
	for i, text := range texts {
		examples[i] = &corpus.Example{Text: text}
	}
	return m.PredictExamples(ctx, Form{}, examples...)
}

// PredictExamples is Predict for examples, which may be pairs of texts or have words, in a form. Where ctx ends before
// the predictions are there, it returns the context's error.
func (m *Model) PredictExamples(ctx context.Context, form Form, examples ...*corpus.Example) ([]Prediction, error) {
	if err := m.checkTasks(form.Tasks); err != nil {
		return nil, err
	}
	all := make([]reading, len(examples))
	for i, e := range examples {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		all[i] = m.predictor.read(e, form)
	}
	predictions, err := m.queue.Do(ctx, all...)
	switch {
	case errors.Is(err, batch.ErrFull):
		err = ErrBusy
	case errors.Is(err, batch.ErrClosed):
		err = ErrClosed
	}
	return predictions, err
}

// Waiting returns the number of texts that wait for an answer and are in no batch yet.
func (m *Model) Waiting() int { return m.queue.Waiting() }

// Warnings are what a user of the run should know, as that it has no best model.
func (m *Model) Warnings() []string { return m.run.Warnings }

// Close answers the texts that wait, and releases what the run holds.
func (m *Model) Close() error {
	m.queue.Close()
	return m.run.Close()
}

// Answer returns the answer of a task's head, of the type that the head's kind of output has: outputs.LabelJSON,
// outputs.LabelsJSON, outputs.TagsJSON and so on. ok is false if there is none of that type.
func Answer[T any](p Prediction, task, head string) (answer T, ok bool) {
	answer, ok = p.Tasks[task][head].(T)
	return answer, ok
}
