package teach

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/encoders"
	"github.com/jenga-nlp/jenga/experiments/checkpoint"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/heads"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/plugin"
)

// matchStates makes the head that learns the states of the encoder of model.teacher, if the experiment has that.
func (t *Teachers) matchStates(ctx context.Context) error {
	e := t.built.Data.Experiment
	if e.Training.Match != config.MatchStates {
		return nil
	}
	wrong := func(err error) error {
		return &plugin.Mistake{Place: e.Place("training.match"), Err: fmt.Errorf("training: match: states: %s: %w",
			e.Model.Teacher.Name, err)}
	}
	run, err := checkpoint.OpenRun(ctx, e.Model.Teacher.Name, encoders.CPU)
	if err != nil {
		return wrong(err)
	}
	t.width = run.Model.Encoder.Describe().Width
	same := sameTokens(t.built.Data.Tokenizer, run.Data.Tokenizer)
	if err := encoders.Close(run.Model.Encoder); err != nil {
		return err
	}
	if !same {
		return wrong(errors.New("it has another tokenizer, so that its states are not of the student's tokens; leave " +
			"match out"))
	}
	m := t.built.Model
	t.Taught.States = heads.NewStates(multitask.StatesParams(m.Params), m.Encoder.Describe().Width, t.width)
	return nil
}

// sameTokens reports whether two tokenizers have the same tokens.
func sameTokens(a, b corpus.Tokenizer) bool {
	if a.Size() != b.Size() {
		return false
	}
	for id := range int32(a.Size()) {
		if a.Token(id) != b.Token(id) {
			return false
		}
	}
	return true
}

// prepareStates makes the group of a teacher whose states are learned, which has no heads.
func (a *asked) prepareStates() error {
	a.group = multitask.Group{Name: a.run.Model.Groups[0].Name, Adapter: a.run.Model.Groups[0].Adapter}
	return nil
}

// stateRecords returns the records of a batch of a teacher whose states are learned.
func (a *asked) stateRecords(batch []*corpus.Example) ([][]byte, error) {
	states, err := a.run.Model.States(a.pass, &a.group, batch)
	if err != nil {
		return nil, err
	}
	records := make([][]byte, len(batch))
	for i, values := range states {
		var one []byte
		if a.teachers.built.Data.Experiment.Training.TeacherAnswers == "int8" {
			one = appendSigned(nil, values, a.teachers.width)
		} else {
			one = appendAnswer(nil, heads.Answer{Values: values}, 1, false)
		}
		records[i] = append(binary.AppendUvarint(nil, uint64(len(one))), one...)
	}
	return records, nil
}

// appendSigned appends an answer of numbers of both signs as bytes, in rows of so many columns.
func appendSigned(b []byte, values []float32, columns int) []byte {
	b = binary.AppendUvarint(append(b, signedForm), 0)
	b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(len(values))), uint64(columns))
	for row := range slices.Chunk(values, columns) {
		largest := max(slices.Max(row), -slices.Min(row))
		factor := largest / 127
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(factor))
		for _, v := range row {
			rounded := 0.0
			if factor > 0 {
				rounded = math.Round(float64(v / factor))
			}
			b = append(b, byte(128+rounded))
		}
	}
	return b
}
