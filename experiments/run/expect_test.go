package run

import (
	"context"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/experiments/config"
	"github.com/jenga-nlp/jenga/internal/sample"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/train"
)

// The steps and evaluations are those that a training of the same file has.
func TestExpectationsAreThoseOfTheTraining(t *testing.T) {
	path := sample.Small(t, "")
	for _, sets := range [][]string{
		{"training.num_epochs=3"},
		{"training.num_epochs=3", "training.gradient_accumulation_steps=2"},
		{"training.max_steps=7", "training.eval_strategy=steps", "training.eval_steps=2"},
		{"training.num_epochs=1", "training.eval_strategy=no"},
		{"training.num_epochs=1", "model.freeze=all", "training.load_best_model_at_end=false"},
	} {
		run, err := ready(mustRead(t, path, sets...), config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		expected, tooLarge, err := run.Expect(context.Background())
		if err != nil || tooLarge != nil {
			t.Fatal(err, tooLarge)
		}

		steps, evaluations := 0, 0
		trained, err := ready(mustRead(t, path, sets...), config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := trained.Train(context.Background(), t.TempDir(), func(event train.Event) error {
			switch event.(type) {
			case train.Step:
				steps++
			case train.Evaluation:
				evaluations++
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if expected.Steps != steps || expected.Evaluations != evaluations {
			t.Errorf("%q: expected %d steps and %d evaluations, training has %d and %d", sets, expected.Steps,
				expected.Evaluations, steps, evaluations)
		}
		if expected.Measured != min(steps, mostMeasured) || expected.Time <= 0 || expected.Memory.Total() <= 0 {
			t.Errorf("%q: expectation %+v, want some time and memory, by %d steps", sets, expected,
				min(steps, mostMeasured))
		}
	}
}

func TestALackOfMemoryLeavesTheTimeOpen(t *testing.T) {
	run := prepared(t, sample.Small(t, ""), 100)
	expected, tooLarge, err := run.Expect(context.Background())
	if err != nil || tooLarge == nil || expected.Measured != 0 || expected.Steps == 0 || expected.Memory.Total() == 0 {
		t.Errorf("Expect: %+v, %v, %v; want steps and memory, and why nothing is measured", expected, tooLarge, err)
	}
}

// The tasks of a base run are measured before training and, unless they are rehearsed, at each evaluation.
func TestTheTimeOfTasksThatAreKept(t *testing.T) {
	baseRun(t)
	ctx := context.Background()
	second := func(_ context.Context, _ *multitask.Group, dev []*corpus.Example) (time.Duration, error) {
		return time.Duration(min(len(dev), 1)) * time.Second, nil
	}
	const evaluations = 1000
	for _, c := range []struct {
		model, more string
		one, many   time.Duration // with 1 evaluation, with all; there is 1 group of kept tasks
	}{
		{"{base_model: base, keep_tasks: all}", "training: {rehearse: 0}\n", 2 * time.Second, 1001 * time.Second},
		{"{base_model: base, keep_tasks: all}", "training: {rehearse: 0.5}\n", time.Second, time.Second},
		{"{base_model: base, keep_tasks: all, freeze: all}", "", 0, 0}, // they do not change, and have no dev
		{"{base_model: base}", "", 0, 0},
	} {
		r := mustPrepare(t, growing(t, c.model, c.more))
		one, err := r.oldTime(ctx, 1, second)
		if err != nil || one != c.one {
			t.Errorf("%s %s: an evaluation takes %v, %v; want %v", c.model, c.more, one, err, c.one)
		}
		many, err := r.oldTime(ctx, evaluations, second)
		if err != nil || many != c.many {
			t.Errorf("%s %s: %d evaluations take %v, %v; want %v", c.model, c.more, evaluations, many, err, c.many)
		}
	}
}

// Numbers as large as an integer holds make a long training, and no panic.
func TestExpectationsOfHugeNumbers(t *testing.T) {
	path := sample.Small(t, "")
	const most = "=9223372036854775807"
	for _, set := range []string{"training.max_steps" + most, "training.batch_size" + most,
		"training.num_epochs=1000000000000001", "training.gradient_accumulation_steps" + most} {
		run, err := ready(mustRead(t, path, set), config.Train, config.Dev)
		if err != nil {
			t.Fatal(err)
		}
		expected, _, err := run.Expect(context.Background())
		if err != nil || expected.Time <= 0 || expected.Steps <= 0 || expected.Evaluations <= 0 {
			t.Errorf("%s: %+v, %v", set, expected, err)
		}
		if expected.Steps > 1e15 && expected.Time.Hours() < 1e6 {
			t.Errorf("%s: %d steps take %v", set, expected.Steps, expected.Time)
		}
	}
}

// One step that waits for other programs, or the first one, does not make the expected time an hour.
func TestTheTimeOfAStepIsTheUsualOne(t *testing.T) {
	for _, test := range []struct {
		times []time.Duration
		want  time.Duration
	}{
		{nil, 0}, {[]time.Duration{7}, 7}, {[]time.Duration{90, 7}, 7}, {[]time.Duration{90, 8, 900, 7}, 8},
		{[]time.Duration{1, 5, 5, 5, 5000, 6, 4}, 5},
	} {
		if got := usualTime(test.times); got != test.want {
			t.Errorf("steps of %v: %v, want %v", test.times, got, test.want)
		}
	}
}
