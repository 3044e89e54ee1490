// Package predict answers texts with a trained run. Open reads the run, once; many goroutines may then ask the Model at
// the same time:
//
//	model, err := predict.Open(ctx, "runs/quickstart", predict.Options{})
//	if err != nil {
//		return err
//	}
//	defer model.Close()
//	answers, err := model.Predict(ctx, "Please refund the gastroscopy, 240 euros.")
//	if err != nil {
//		return err
//	}
//	claim, err := predict.Answer[outputs.LabelAnswer](answers[0], "claim_type", "claim_type")
//
// Predict takes texts, PredictExamples also pairs of texts and words, in a Form: some of the tasks, the likeliest
// labels, thresholds. Embed returns vectors, Explain what the model computed on the way to an answer. An error of a
// call is one of all its texts, such as ErrBusy; a text that cannot be read has an error of its own beside the answers
// of the others. A text has the same answer whatever other texts are asked at the same time.
//
// The program imports the package of the run's encoder, such as encoders/transformer, for its parts to be known. It
// does not link training.
//
// OpenRun is for programs that evaluate a run or make another of it; New makes a Model of such a run.
package predict

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/inputs"
	"github.com/jenga-nlp/jenga/internal/queue"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// Options are how Open opens a run. The zero value computes all tasks in float32, of a quantized run in int8.
type Options struct {
	Tasks []string // those that are computed; empty: all
	// Precision is that of the encoder's products; nil: float32, of a quantized run int8, which has no other.
	Precision *nn.Precision
	// Device is what the encoder computes on, a value of encoders.Env.Device; "": the processor. Open alone reads it.
	Device string

	// BatchTokens is the most tokens of a batch, 0 for DefaultBatchTokens and never more than 16,384; a longer text is a
	// batch of its own. More tokens take longer, and the next texts wait for them.
	BatchTokens int
	// Wait is how long after a batch of several calls the next one waits for as many to come, 0 for DefaultWait, none
	// below 0. A call after a batch of one call, or later, runs at once.
	Wait time.Duration
	// MaxTextTokens is the most tokens of a text in all its windows; a longer text has an error. 0: any number.
	MaxTextTokens int
	// MaxWaiting is how many texts may wait; a call that would add more gets ErrBusy. 0: any number.
	MaxWaiting int
	// Observe, if not nil, is called after each batch without an error, with what it had and the time that it took. A
	// batch with an error is divided by its calls. Batches of predictions and of embeddings may end at the same time:
	// it may be called by two goroutines at once.
	Observe func(texts, tokens int, took time.Duration)
}

// ErrBusy is the error of a call that finds too many texts waiting, ErrClosed that of one after Close.
var ErrBusy, ErrClosed = queue.ErrBusy, queue.ErrClosed

// DefaultBatchTokens is the number of tokens of a batch from which on more tokens gain little speed.
const DefaultBatchTokens = 1024

// DefaultWait is enough for callers on the same machine that ask again once they have an answer.
const DefaultWait = 2 * time.Millisecond

// Model is a trained run that answers texts. Many goroutines may call its methods at once: texts of calls that meet are
// encoded together, in one pass for all tasks, and an answer does not depend on the texts beside it. It changes no
// setting of the process: GOMAXPROCS bounds the processor cores that it uses.
type Model struct {
	run       *Opened
	tasks     []string // that are computed; empty: all
	maxTokens int      // of a text; 0: any number
	groups    []*windowGroup
	pass      *nn.Pass // of predictions; explanations have their own
	embedder  *Embedder
	reader    reader

	predicting *queue.Queue[*reading]
	embedding  *queue.Queue[*stateReading]
	explaining *queue.Queue[*explainer] // one after the other, beside predictions

	mu    sync.Mutex      // of what follows, and of truncated of each group
	texts int             // number of examples so far
	split map[string]bool // tasks of Opened.splitAgreement that have split plain texts
}

// Open opens a trained run, a run folder or one of its checkpoints, to answer texts. The sums of its files are computed
// until ctx ends. The caller closes the model, which may outlive ctx.
func Open(ctx context.Context, folder string, o Options) (*Model, error) {
	run, err := OpenRunOn(ctx, folder, DeviceIn(o.Device, o.Precision))
	if err != nil {
		return nil, err
	}
	m, err := New(run, o)
	if err != nil {
		return nil, errors.Join(err, run.Close())
	}
	return m, nil
}

// New returns a model that answers texts with a run, for programs that need the run too. Closing the model closes the
// run.
func New(run *Opened, o Options) (*Model, error) {
	if o.Precision != nil {
		if err := run.SetPrecision(*o.Precision); err != nil {
			return nil, fmt.Errorf("%s: precision %v: %w", run.Folder, *o.Precision, err)
		}
	}
	o.BatchTokens = min(cmp.Or(o.BatchTokens, DefaultBatchTokens), maxBatchTokens)
	o.Wait = cmp.Or(o.Wait, DefaultWait)
	m := &Model{run: run, tasks: o.Tasks, maxTokens: o.MaxTextTokens, groups: run.windowGroups(o.Tasks),
		pass: nn.NewPass(0), embedder: newEmbedder(run.Model.Encoder, run.Data.Tokenizer, 0), reader: newReader(),
		split: map[string]bool{}}
	if err := m.checkTasks(o.Tasks); err != nil {
		return nil, err
	}
	m.embedder.mode.Precision = run.Model.Precision
	in := queue.Options{BatchTokens: o.BatchTokens, Wait: o.Wait, MaxWaiting: o.MaxWaiting, Observe: o.Observe}
	m.predicting = queue.New(in, func(r *reading) int { return r.tokens }, m.predictAll)
	m.embedding = queue.New(in, func(r *stateReading) int { return r.Tokens() }, m.embedAll)
	one := queue.Options{BatchTokens: 1, MaxWaiting: o.MaxWaiting}
	m.explaining = queue.New(one, func(*explainer) int { return 1 }, func(all []*explainer) error {
		return all[0].explain()
	})
	return m, nil
}

func (m *Model) checkTasks(names []string) error {
	for _, name := range names {
		if _, _, err := m.run.Model.Group(name); err != nil {
			return err
		}
		if len(m.tasks) > 0 && !slices.Contains(m.tasks, name) {
			return fmt.Errorf("task %q is not computed; the model was opened with %s", name,
				strings.Join(m.tasks, ", "))
		}
	}
	return nil
}

// Predict returns the predictions of all tasks for texts, in their order. A text that is empty or not UTF-8, that no
// task reads or that does not fit into memory has an error of its own, Prediction.Err, an *ExampleError, one with more
// tokens than Options.MaxTextTokens a *LengthError; the others are answered.
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
	if err := m.checkForm(form); err != nil {
		return nil, err
	}
	all, own := make([]*reading, len(examples)), form.clone()
	for i, e := range examples {
		var err error
		if err = ctx.Err(); err == nil {
			all[i], err = m.read(ctx, e, own, m.maxTokens)
		}
		if err != nil {
			return nil, err
		}
	}
	if err := m.predicting.Do(ctx, all...); err != nil {
		return nil, err
	}
	predictions := make([]Prediction, len(all))
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, r := range all {
		predictions[i] = r.prediction
		if r.by != nil {
			m.texts++
		}
		for at, by := range r.by {
			if by.truncated > 0 {
				m.groups[at].truncated++
			}
		}
	}
	return predictions, nil
}

// CallError is the error of a call with names or numbers that do not fit the model.
type CallError struct{ Err error }

func (e *CallError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *CallError) Unwrap() error { return e.Err }

// LengthError is the error of a text with more tokens than Options.MaxTextTokens. They are counted to some 16,384.
type LengthError struct {
	Place        corpus.Place // of its example
	Tokens, Most int
}

func (e *LengthError) Error() string {
	atLeast := ""
	if e.Tokens >= mostCounted(e.Most) {
		atLeast = "at least "
	}
	long := fmt.Sprintf("the text is read as %s%d tokens; want at most %d", atLeast, e.Tokens, e.Most)
	if place := e.Place.String(); place != "" {
		return place + ": " + long
	}
	return long
}

// Columns returns the names that the run's data have for the texts of an example.
func (m *Model) Columns() inputs.Columns { return inputs.ColumnsOf(m.run.Data) }

// TaskInfo describes a task that a model computes.
type TaskInfo struct {
	Name   string     `json:"name"`
	Pairs  bool       `json:"pairs"`  // it reads pairs of texts alone
	Single bool       `json:"single"` // it was trained on single texts alone
	Heads  []HeadInfo `json:"heads"`
}

// HeadInfo describes a head of a task.
type HeadInfo struct {
	Name   string          `json:"name"`
	Output string          `json:"output"`           // name of its outputs.Kind
	Labels []string        `json:"labels,omitempty"` // those that it may predict
	Schema json.RawMessage `json:"schema,omitempty"` // JSON Schema of its answers, draft 2020-12
}

// Tasks describes the tasks that the model computes.
func (m *Model) Tasks() []TaskInfo {
	var all []TaskInfo
	for _, group := range m.run.Model.Groups {
		for _, task := range group.Tasks {
			if len(m.tasks) > 0 && !slices.Contains(m.tasks, task.Name) {
				continue
			}
			kind, info := task.Type.Output(), TaskInfo{Name: task.Name, Pairs: task.Pairs, Single: task.Single}
			for _, head := range task.Heads {
				of := HeadInfo{Name: head.Name, Output: kind.Name, Schema: json.RawMessage(kind.Schema)}
				if kind.HasLabels {
					of.Labels = head.Labels.Names()
				}
				info.Heads = append(info.Heads, of)
			}
			all = append(all, info)
		}
	}
	return all
}

// Precision returns that of the encoder's products.
func (m *Model) Precision() nn.Precision { return m.run.Model.Precision }

// Device returns what the encoder computes on, as encoders.Description does; "" for the processor.
func (m *Model) Device() string { return m.run.Model.Encoder.Describe().Device }

// Waiting returns the number of texts that wait for an answer and are in no batch yet.
func (m *Model) Waiting() int {
	return m.predicting.Waiting() + m.embedding.Waiting() + m.explaining.Waiting()
}

// Warnings are what a user of the run should know, as that it has no best model.
func (m *Model) Warnings() []string { return plugin.Lines(m.run.Warnings) }

// Close answers the texts that wait, and releases what the run holds.
func (m *Model) Close() error {
	m.predicting.Close()
	m.embedding.Close()
	m.explaining.Close()
	return m.run.Close()
}

// Answer returns the answer of a task's head, of the type that the head's kind of output has: outputs.LabelAnswer,
// outputs.LabelsAnswer, outputs.TagsAnswer and so on. It returns an error for a text without predictions, for a head
// that has none for it, and for another type.
func Answer[T any](p Prediction, task, head string) (answer T, err error) {
	if p.Err != nil {
		return answer, p.Err
	}
	heads, ok := p.Tasks[task]
	if !ok {
		return answer, fmt.Errorf("no answer of task %q and head %q; there are those of %s", task, head,
			strings.Join(slices.Sorted(maps.Keys(p.Tasks)), ", "))
	}
	value, ok := heads[head]
	if !ok {
		return answer, fmt.Errorf("task %q: %s", task,
			plugin.Unknown("head", head, slices.Collect(maps.Keys(heads))))
	}
	if answer, ok = value.(T); !ok {
		return answer, fmt.Errorf("the answer of task %q and head %q is of type %T, not %T", task, head, value, answer)
	}
	return answer, nil
}
