package teach

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/model"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
	"github.com/jenga-nlp/jenga/tasks"
)

// asked is a teacher that is open to answer.
type asked struct {
	*teacher
	teachers *Teachers
	run      *model.Assembled
	borrowed bool // the run is not its own
	pass     *nn.Pass
	group    multitask.Group // of the task alone
	reads    corpus.Windowing
	byWords  bool
	order    [][]int // by head, of the student's labels, its numbers among those of the teacher; nil: it has none
	predicts string  // a head whose predictions are learned; "": none
}

// ask opens a teacher.
func (t *Teachers) ask(ctx context.Context, of *teacher, run string) (*asked, error) {
	opened, err := checkpoint.OpenBeside(ctx, t.built.Model, run)
	if err != nil {
		return nil, err
	}
	opened.Model.Precision = opened.Model.Encoder.Describe().Precision
	a := &asked{teacher: of, teachers: t, run: opened, pass: nn.NewPass(0)}
	prepare := a.prepare
	if of.states {
		prepare = a.prepareStates
	}
	if err := prepare(); err != nil {
		return nil, errors.Join(err, a.Close())
	}
	return a, nil
}

// Cost is what teachers take before a training.
type Cost struct {
	Count  int           // of tasks that have one
	Texts  int           // without labels
	Alone  int           // that the training trains itself
	Time   time.Duration // of their answers
	Disk   int64         // of these, in bytes
	Memory int64         // of the largest teacher's weights, in bytes
}

// costExamples is how many examples Cost measures.
const costExamples = 64

// Cost estimates what the teachers take, by the answers for some of the texts. In place of those that are to be trained
// the model itself answers.
func (t *Teachers) Cost(ctx context.Context) (c Cost, err error) {
	c.Texts = len(t.texts.single) + len(t.texts.pairs)
	for _, of := range t.all {
		if t.count(of) == 0 {
			continue
		}
		if !of.states {
			c.Count++
		}
		run, alone := t.runOf(of, "")
		a := &asked{teacher: of, teachers: t, pass: nn.NewPass(0), borrowed: true,
			run: t.built}
		if alone {
			c.Alone++
			err = a.prepare()
		} else {
			a, err = t.ask(ctx, of, run.Name)
		}
		if err != nil {
			return c, err
		}
		var weights int64
		for _, w := range a.run.Model.AllParams() {
			weights += 4 * int64(w.Size())
		}
		c.Memory = max(c.Memory, weights)
		measured, bytes, start := 0, int64(0), time.Now()
		err = a.each(context.Background(), func(record []byte) error {
			bytes += int64(len(record)) + 2
			if measured++; measured == costExamples {
				return errEnough
			}
			return nil
		})
		if err := errors.Join(a.Close(), err); err != nil && !errors.Is(err, errEnough) {
			return c, err
		}
		if measured > 0 {
			times := float64(t.count(of)) / float64(measured)
			c.Time += time.Duration(times * float64(time.Since(start)))
			c.Disk += int64(times * float64(bytes))
		}
	}
	return c, nil
}

var errEnough = errors.New("enough")

// prepare makes the group of the teacher's task, with its heads in the order of the student's.
func (a *asked) prepare() error {
	for g, group := range a.run.Model.Groups {
		for _, task := range group.Tasks {
			a.byWords = a.byWords || task.Type.Output().PerWord
			if task.Name == a.task.Name {
				a.group = multitask.Group{Name: group.Name, Adapter: group.Adapter, Tasks: []multitask.Task{task}}
				a.reads = a.run.Data.Windowing(&a.run.Data.Groups[g])
			}
		}
		if a.group.Tasks != nil {
			break
		}
		a.byWords = false
	}
	if a.group.Tasks == nil {
		return fmt.Errorf("no task %q", a.task.Name)
	}
	own := make([]multitask.Head, len(a.heads))
	for h, student := range a.heads {
		i := slices.IndexFunc(a.group.Tasks[0].Heads, func(h multitask.Head) bool { return h.Name == student.Name })
		if i < 0 {
			return fmt.Errorf("no head %q", student.Name)
		}
		head := a.group.Tasks[0].Heads[i]
		own[h] = head
		var order []int
		if a.output().HasLabels {
			var err error
			if order, err = orderOf(student, head.Labels.Names()); err != nil {
				return err
			}
		}
		a.order = append(a.order, order)
		if head.Head.Describe().Soft == nil || student.Head.Describe().Soft == nil {
			a.predicts = student.Name
		}
	}
	a.group.Tasks[0].Heads = own
	return nil
}

func (a *asked) output() *outputs.Kind { return a.group.Tasks[0].Type.Output() }

// Close closes the teacher's run.
func (a *asked) Close() error {
	if a.borrowed {
		return nil
	}
	return encoders.Close(a.run.Model.Encoder)
}

// Numbers of examples and of tokens that a teacher reads at once.
const (
	answersAtOnce = 64
	tokensAtOnce  = 4096
)

// each calls visit with the record of each example that the teacher answers for, in their order.
func (a *asked) each(ctx context.Context, visit func(record []byte) error) error {
	data := a.teachers.Taught.Data[a.teacher.group]
	var batch []*corpus.Example
	tokens := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		records, err := a.records(batch)
		for _, record := range records {
			if err == nil {
				err = visit(record)
			}
		}
		batch, tokens = batch[:0], 0
		return err
	}
	for number := range a.length {
		if !a.teachers.labels(a.teacher, number) {
			continue
		}
		e, err := exampleOf(data, number)
		if err != nil {
			return err
		}
		own := a.encoded(e)
		if a.states {
			own.Windows = e.Windows
		}
		if n := own.Tokens(); len(batch) == answersAtOnce || tokens+n > tokensAtOnce {
			if err := flush(); err != nil {
				return err
			}
			tokens = n
		} else {
			tokens += n
		}
		batch = append(batch, own)
	}
	return flush()
}

func exampleOf(data multitask.Data, number int) (*corpus.Example, error) {
	if data.Stream != nil {
		return data.Stream.At(number)
	}
	return data.Train[number], nil
}

// encoded returns an example as the teacher reads it, without targets.
func (a *asked) encoded(e *corpus.Example) *corpus.Example {
	own := &corpus.Example{Place: e.Place, Text: e.Text, Pair: e.Pair, Paired: e.Paired, Written: e.Written}
	if a.byWords {
		own.Words, own.WordsGiven = e.Words, e.WordsGiven
	}
	own.Windows = a.reads.Encode(a.run.Data.Tokenizer, own)
	return own
}

// records returns the records of a batch.
func (a *asked) records(batch []*corpus.Example) ([][]byte, error) {
	if a.states {
		return a.stateRecords(batch)
	}
	temperature := a.teachers.Taught.Lesson.Temperature
	answers, predicted, err := a.run.Model.Answers(a.pass, &a.group, batch, temperature)
	if err != nil {
		return nil, err
	}
	records := make([][]byte, len(batch))
	for i, e := range batch {
		for h := range a.heads {
			var one []byte
			if answers[h] != nil && a.heads[h].Head.Describe().Soft != nil {
				one = a.answer(h, answers[h][i])
			} else if one, err = a.prediction(h, predicted[h][i], e); err != nil {
				return nil, fmt.Errorf("%s: %w", e.Place, err)
			}
			records[i] = append(binary.AppendUvarint(records[i], uint64(len(one))), one...)
		}
	}
	return records, nil
}

// answer returns an answer of a head as its student's labels are ordered.
func (a *asked) answer(h int, answer heads.Answer) []byte {
	columns := 1
	switch order := a.order[h]; {
	case order != nil:
		columns = len(order)
		values := make([]float32, len(answer.Values))
		for at := 0; at < len(values); at += columns {
			for to, from := range order {
				values[at+to] = answer.Values[at+from]
			}
		}
		answer.Values = values
	case answer.Places != nil:
		columns = 2
	}
	asBytes := a.teachers.built.Data.Experiment.Training.TeacherAnswers == "int8" && columns > 1
	return appendAnswer(nil, answer, columns, asBytes)
}

// prediction returns a prediction of a head as a target.
func (a *asked) prediction(h int, p corpus.Prediction, e *corpus.Example) ([]byte, error) {
	kind, student := a.output(), a.heads[h]
	task, err := a.task.Part.Build(tasks.Env{Name: a.task.Name, Heads: []string{student.Name},
		Split: func(text string) []corpus.Span { return e.Words }})
	if err != nil {
		return nil, err
	}
	in := outputs.Input{Example: e, Labels: a.group.Tasks[0].Heads[h].Labels, Tokenizer: a.run.Data.Tokenizer,
		Spans: tasks.DescriptionOf(a.group.Tasks[0].Type).Spans}
	target, err := targetOf(kind, p, in, kind.HeadField(student.Name), task.Example)
	if err != nil {
		return nil, err
	}
	return append([]byte{predictedForm}, kind.MarshalTarget(target)...), nil
}
