package train

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
)

// TestATrainingGoesOnWithOtherBatches takes a snapshot after each step, and goes on with other numbers of batches in an
// epoch or in a step: epochs go forward, the rest of the data is read to its end, and each epoch that begins anew has
// each batch once.
func TestATrainingGoesOnWithOtherBatches(t *testing.T) {
	start := func(n int, change func(m *multitask.Model, p *Plan)) *Training {
		m, data := threeGroups(t, "none", n)
		plan := smallPlan()
		plan.Epochs, plan.NeverEvaluate = 6, true
		change(m, &plan)
		training, err := New(m, data, plan)
		if err != nil {
			t.Fatal(err)
		}
		return training
	}
	same := func(*multitask.Model, *Plan) {}
	all := func(_ *multitask.Model, p *Plan) { p.Sampler = inTurns("round_robin", 3) }
	for name, c := range map[string]struct {
		n, then  int // examples of a group
		was, is  func(m *multitask.Model, p *Plan)
		eachOnce bool // batches of a whole epoch
	}{
		"smaller batches":          {10, 10, same, func(_ *multitask.Model, p *Plan) { p.BatchSize = 2 }, true},
		"larger batches":           {10, 10, same, func(_ *multitask.Model, p *Plan) { p.BatchSize = 7 }, true},
		"batches by tokens":        {10, 10, same, func(_ *multitask.Model, p *Plan) { p.BatchTokens = 14 }, false},
		"more examples":            {10, 25, same, same, true},
		"fewer examples":           {25, 10, same, same, true},
		"all groups in a step":     {10, 10, same, all, false},
		"one group in a step":      {10, 10, all, same, false},
		"more batches accumulated": {10, 10, same, func(_ *multitask.Model, p *Plan) { p.Accumulate = 3 }, true},
		"fewer batches accumulated": {10, 10, func(_ *multitask.Model, p *Plan) { p.Accumulate = 3 },
			func(_ *multitask.Model, p *Plan) { p.Accumulate = 2 }, true},
		"more epochs": {10, 10, same, func(_ *multitask.Model, p *Plan) { p.Epochs = 8 }, true},
	} {
		t.Run(name, func(t *testing.T) {
			first := start(c.n, c.was)
			for range 8 {
				advance(t, first)
				rest := start(c.then, c.is)
				if err := rest.Restore(written(t, mustSnapshot(t, first))); err != nil {
					t.Fatal(err)
				}
				if was, is := first.epoch(), rest.epoch(); !(math.Abs(was-is) < 0.2) {
					t.Fatalf("after epoch %v it goes on after %v", was, is)
				}
				checkRest(t, rest, c.eachOnce)
			}
		})
	}
}

// checkRest trains to the end. With eachOnce it compares the batches of each epoch that it begins with those that the
// groups have.
func checkRest(t *testing.T, training *Training, eachOnce bool) {
	t.Helper()
	epoch, drawn := training.state.Epoch, map[int]int(nil) // drawn of a whole epoch, by group
	want := map[int]int{}
	for g, n := range training.state.Batches {
		want[g] = n
	}
	for !training.Done() {
		batches, err := training.next()
		if err != nil {
			t.Fatal(err)
		}
		if training.state.Epoch < epoch {
			t.Fatalf("epoch %d after %d", training.state.Epoch, epoch)
		}
		if training.state.Epoch > epoch {
			if eachOnce && drawn != nil && training.length.Rounds == 1 && !maps.Equal(drawn, want) {
				t.Fatalf("an epoch had the batches %v, want %v", drawn, want)
			}
			epoch, drawn = training.state.Epoch, map[int]int{}
		}
		for _, b := range batches {
			if drawn != nil {
				drawn[b.Group]++
			}
		}
		training.state.Step++ // without an update
	}
	if epochs := float64(training.used) / float64(training.length.PerEpoch); epochs < float64(training.plan.Epochs) {
		t.Errorf("the training ends after %v of %d epochs", epochs, training.plan.Epochs)
	}
	if steps := training.Steps(); steps != training.state.Step {
		t.Errorf("%d steps, want %d", training.state.Step, steps)
	}
}

// TestAPositionThatIsNoneIsRefused spoils counts of a progress.
func TestAPositionThatIsNoneIsRefused(t *testing.T) {
	m, data := threeGroups(t, "none", 10)
	training, err := New(m, data, smallPlan())
	if err != nil {
		t.Fatal(err)
	}
	advance(t, training)
	good := progressOf(t, mustSnapshot(t, training))
	if _, err := training.position(good); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(p *progress){
		"counts of other groups": func(p *progress) { p.Counts = p.Counts[:1] },
		"no batches":             func(p *progress) { p.Counts[0] = 0 },
		"a huge step":            func(p *progress) { p.Step = math.MaxInt },
		"a huge epoch":           func(p *progress) { p.Epoch = math.MaxInt },
		"more batches than all":  func(p *progress) { p.Used = 1 << 20 },
		"batches left":           func(p *progress) { p.Left[1] = math.MinInt },
		"batches left, scaled":   func(p *progress) { p.Counts[1]++; p.Left[1] = math.MinInt },
	} {
		p := good
		p.Counts, p.Left = slices.Clone(p.Counts), slices.Clone(p.Left)
		if spoil(&p); p.Left == nil {
			t.Fatal("the snapshot has no batches left")
		}
		if _, err := training.position(p); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// progressOf returns the progress in a snapshot.
func progressOf(t *testing.T, s *snapshots.Snapshot) (p progress) {
	t.Helper()
	if err := json.Unmarshal(s.Progress, &p); err != nil {
		t.Fatal(err)
	}
	return p
}
