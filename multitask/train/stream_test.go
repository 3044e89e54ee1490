package train

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/outputs"
)

// streamed has examples as a stream that makes a copy of them each time.
type streamed []*corpus.Example

func (s streamed) Lengths() []int32 { return multitask.Lengths(s) }

func (s streamed) At(number int) (*corpus.Example, error) {
	if s[number] == nil {
		return nil, errors.New("the example is gone")
	}
	e := *s[number]
	e.Transient = true
	return &e, nil
}

func (s streamed) Sum() string {
	sum := multitask.NewExampleSum()
	for _, e := range s {
		sum.Add(e, []*outputs.Kind{outputs.Label})
	}
	return sum.String()
}

// streamedData returns the data with the training examples of some groups as streams.
func streamedData(data []multitask.Data, groups ...int) []multitask.Data {
	for _, g := range groups {
		data[g] = multitask.Data{Stream: streamed(data[g].Train), Dev: data[g].Dev}
	}
	return data
}

func TestStreamsTrainToTheSameBytes(t *testing.T) {
	for _, c := range []struct {
		freeze string
		shards int
	}{{"none", 1}, {"all", 1}, {"none", 4}, {"all", 4}} {
		freeze := c.freeze
		plan := smallPlan()
		plan.CacheMemory, plan.Shards = 1<<20, c.shards
		m, data := threeGroups(t, freeze, 10)
		steps, _ := train(t, m, data, plan)
		other, data := threeGroups(t, freeze, 10)
		streamedSteps, _ := train(t, other, streamedData(data, 0, 2), plan)
		for i := range steps {
			if steps[i].Loss != streamedSteps[i].Loss {
				t.Fatalf("%+v: loss of step %d is %v, of memory %v", c, i+1, streamedSteps[i].Loss,
					steps[i].Loss)
			}
		}
		if !reflect.DeepEqual(values(other), values(m)) {
			t.Errorf("%+v: a stream trains to other parameters", c)
		}
	}
}

// TestNothingIsKeptForTransientExamples: a cache of states is not filled with examples that no one uses again.
func TestNothingIsKeptForTransientExamples(t *testing.T) {
	m, data := threeGroups(t, "all", 10)
	plan := smallPlan()
	plan.CacheFile = noCacheFile(t)
	plan.NeverEvaluate = true
	training, err := New(m, streamedData(data, 0, 1, 2), plan)
	if err != nil {
		t.Fatal(err)
	}
	defer training.Close()
	for !training.Done() {
		if _, err := training.Step(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
}

// noCacheFile is a Plan's CacheFile, which is opened for the first states that are kept where there is no CacheMemory.
func noCacheFile(t *testing.T) func() (multitask.CacheFile, error) {
	return func() (multitask.CacheFile, error) {
		t.Error("states are kept")
		return nil, errors.ErrUnsupported
	}
}

func TestAStreamThatFailsEndsTraining(t *testing.T) {
	m, data := threeGroups(t, "none", 10)
	training, err := New(m, streamedData(data, 0), smallPlan())
	if err != nil {
		t.Fatal(err)
	}
	defer training.Close()
	clear(data[0].Stream.(streamed))
	for range 20 {
		if _, err = training.Step(context.Background()); err != nil {
			break
		}
	}
	if err == nil || !strings.Contains(err.Error(), "the example is gone") {
		t.Errorf("error %v", err)
	}
}

func TestHeadsThatAreFittedTakeNoStream(t *testing.T) {
	m, data := patternModel(t, "none")
	_, err := New(m, streamedData(data, 0, 1), smallPlan())
	if err == nil || !strings.Contains(err.Error(), "fitted to training examples in memory") {
		t.Errorf("error %v", err)
	}
}

func TestASnapshotOfMemoryIsRestoredWithAStream(t *testing.T) {
	m, data := threeGroups(t, "none", 10)
	training, err := New(m, data, smallPlan())
	if err != nil {
		t.Fatal(err)
	}
	defer training.Close()
	snapshot, err := training.Snapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	other, data := threeGroups(t, "none", 10)
	streaming, err := New(other, streamedData(data, 0, 2), smallPlan())
	if err != nil {
		t.Fatal(err)
	}
	defer streaming.Close()
	if err := restoreSame(streaming, snapshot); err != nil {
		t.Error(err)
	}
}
