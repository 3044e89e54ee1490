package train

import (
	"context"
	"fmt"
	"path/filepath"
	"reflect"
	"strconv"
	"testing"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/samplers"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/multitask/updates"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

// threeGroups is a small model of three tasks, none of which reads another's texts, and n examples of each.
func threeGroups(t *testing.T, freeze string, n int) (*multitask.Model, []multitask.Data) {
	t.Helper()
	m := smallModel(t, freeze, 0.1)
	data := smallData(m, n)
	var tagged multitask.Data
	for _, e := range data[0].Train[:n-3] { // fewer than the others
		c := *e
		c.Targets = e.Targets[1:]
		tagged.Train = append(tagged.Train, &c)
	}
	tagged.Dev = tagged.Train
	for _, e := range data[0].Train {
		e.Targets = e.Targets[:1]
	}
	topic, tags := m.Groups[0].Tasks[0], m.Groups[0].Tasks[1]
	m.Groups = []multitask.Group{{Name: "topic", Tasks: []multitask.Task{topic}}, {Name: "tags",
		Tasks: []multitask.Task{tags}}, m.Groups[1]}
	return m, []multitask.Data{data[0], tagged, data[1]}
}

// counted is the state of a sampler or a weighting: how often they were called.
type counted struct{ n *byte }

// sampler and weighting make those of which it is the state.
func (c counted) sampler() samplers.Sampler {
	return samplers.Sampler{Next: c.next, State: c, Type: "counted"}
}

func (c counted) weighting() weightings.Weighting {
	return weightings.Weighting{Weigh: c.weigh, State: c, Type: "counted"}
}

func (c counted) next(s multitask.State) []int {
	*c.n++
	return []int{int(*c.n) * 7 % 5 % len(s.Batches)}
}

func (c counted) weigh(_ multitask.State, losses []multitask.Loss) []float64 {
	*c.n++
	factors := make([]float64, len(losses))
	for i := range factors {
		factors[i] = float64(1 + *c.n%3)
	}
	return factors
}

func (c counted) MarshalBinary() ([]byte, error)     { return []byte{*c.n}, nil }
func (c counted) UnmarshalBinary(state []byte) error { *c.n = state[0]; return nil }

// resumed is what a snapshot test trains: each call makes the same anew.
type resumed struct {
	name  string
	model func(t *testing.T) (*multitask.Model, []multitask.Data)
	plan  func(m *multitask.Model, data []multitask.Data) Plan
}

func resumedTrainings() []resumed {
	three := func(freeze string) func(t *testing.T) (*multitask.Model, []multitask.Data) {
		return func(t *testing.T) (*multitask.Model, []multitask.Data) { return threeGroups(t, freeze, 10) }
	}
	plan := func(change func(m *multitask.Model, p *Plan)) func(*multitask.Model, []multitask.Data) Plan {
		return func(m *multitask.Model, _ []multitask.Data) Plan {
			p := smallPlan()
			p.Accumulate = 2
			change(m, &p)
			return p
		}
	}
	all := []resumed{
		{"proportional", three("none"), plan(func(_ *multitask.Model, p *Plan) {})},
		{"round robin, batches by tokens", three("1"),
			plan(func(_ *multitask.Model, p *Plan) { p.Sampler, p.BatchTokens = inTurns("round_robin", 1), 14 })},
		{"uniform", three("none"), plan(func(_ *multitask.Model, p *Plan) {
			p.Sampler,
				p.EvaluateEvery = inTurns("uniform", 1), 3
		})},
		{"two groups at each turn", three("none"),
			plan(func(_ *multitask.Model,
				p *Plan) {
				p.Sampler = inTurns("proportional", 2)
			})},
		{"so many steps", three("none"), plan(func(_ *multitask.Model, p *Plan) { p.MaxSteps = 11 })},
		{"a frozen encoder", three("all"), plan(func(_ *multitask.Model, p *Plan) { p.CacheMemory = mixed })},
		{"a stream", func(t *testing.T) (*multitask.Model, []multitask.Data) {
			m, data := threeGroups(t, "none", 10)
			return m, streamedData(data, 0, 2)
		}, plan(func(_ *multitask.Model, p *Plan) {})},
		{"fitted heads", func(t *testing.T) (*multitask.Model, []multitask.Data) { return patternModel(t, "none") },
			plan(func(_ *multitask.Model, p *Plan) {})},
		{"heads fitted at the end", func(t *testing.T) (*multitask.Model, []multitask.Data) {
			return patternModel(t,
				"none")
		},
			plan(func(_ *multitask.Model, p *Plan) { p.NeverEvaluate = true })},
		{"hidden tokens", func(t *testing.T) (*multitask.Model, []multitask.Data) {
			m, data := hidingModel(t, "none")
			return m, []multitask.Data{data}
		}, plan(func(_ *multitask.Model, p *Plan) { p.BatchSize = 8 })},
		{"answers of teachers", three("none"), annealedPlan},
		{"answers of teachers for a stream, a frozen encoder", func(t *testing.T) (*multitask.Model, []multitask.Data) {
			m, data := threeGroups(t, "all", 10)
			return m, streamedData(data, 2)
		}, annealedPlan},
		{"state of sampler and weighting", three("none"),
			plan(func(_ *multitask.Model, p *Plan) {
				p.Sampler, p.Weighting = counted{new(byte)}.sampler(), counted{new(byte)}.weighting()
			})},
		{"sgd", three("none"), plan(func(_ *multitask.Model,
			p *Plan) {
			p.Optimizer = updates.Of("sgd", updates.SGD{Momentum: 0.9})
		})},
		{"adafactor", three("1"),
			plan(func(_ *multitask.Model, p *Plan) {
				p.Optimizer, p.Schedule.Curve = adafactor(),
					nn.ConstantCurve{}
			})},
		{"layers unfrozen one by one", three("none"),
			plan(func(_ *multitask.Model, p *Plan) { p.UnfreezeEvery, p.Average = 0.4, 0.5 })},
		{"running means", three("1"), plan(func(_ *multitask.Model, p *Plan) { p.Average, p.EvaluateEvery = 0.8, 3 })},
		{"running means of heads that are fitted at the end",
			func(t *testing.T) (*multitask.Model, []multitask.Data) { return patternModel(t, "none") },
			plan(func(_ *multitask.Model, p *Plan) { p.Average, p.NeverEvaluate = 0.5, true })},
		{"learned weighting", three("none"), plan(func(m *multitask.Model, p *Plan) { p.Weighting = uncertainty(m) })},
		{"gradients combined", three("none"),
			plan(func(_ *multitask.Model, p *Plan) {
				p.Sampler, p.Weighting = inTurns("round_robin", 3), pcgrad()
			})},
	}
	for _, name := range samplers.Registry().Names() {
		for _, options := range []string{"", "groups: 2"} {
			all = append(all, resumed{"sampler " + name + " " + options, three("none"),
				plan(func(m *multitask.Model, p *Plan) {
					p.Sampler, p.EvaluateEvery = registered(samplers.Registry(), name, options, samplers.EnvOf(m,
						false)), 2
				})})
		}
	}
	for _, name := range weightings.Registry().Names() {
		for _, groups := range []string{"2", "all"} {
			all = append(all, resumed{"weighting " + name + ", groups: " + groups, three("none"),
				plan(func(m *multitask.Model, p *Plan) {
					p.Weighting = registered(weightings.Registry(), name, "", weightings.EnvOf(m, 1))
					p.Sampler = registered(samplers.Registry(), "uniform", "groups: "+groups, samplers.EnvOf(m,
						p.Weighting.ComparesTasks()))
					p.Epochs, p.Accumulate = 3, 1
				})})
		}
	}
	return all
}

// registered is a sampler or a weighting by its name.
func registered[E, P any](of *plugin.Registry[E, P], name, options string, env E) P {
	choice, err := of.FromString(name, options)
	if err != nil {
		panic(err)
	}
	part, err := choice.Build(env)
	if err != nil {
		panic(err)
	}
	return part
}

// inTurns is a sampler of a type that draws so many groups at each turn.
func inTurns(name string, groups int) samplers.Sampler {
	return registered(samplers.Registry(), name, "groups: "+strconv.Itoa(groups), samplers.Env{})
}

func pcgrad() weightings.Weighting {
	return registered(weightings.Registry(), "pcgrad", "", weightings.Env{})
}

func adafactor() updates.Optimizer {
	return updates.Of("adafactor", updates.Adafactor{
		Epsilon1: 1e-30, Epsilon2: 1e-3, ClipThreshold: 1, DecayRate: -0.8, Beta1: 0.9, ScaleParameter: true,
		RelativeStep: true,
	})
}

func uncertainty(m *multitask.Model) weightings.Weighting {
	return registered(weightings.Registry(), "uncertainty", "", weightings.EnvOf(m, 1))
}

func cosine() updates.Schedule {
	return registered(updates.Schedules(), "cosine", "", updates.ScheduleEnv{Rate: 1})
}

func (r resumed) start(t *testing.T) *Training {
	t.Helper()
	m, data := r.model(t)
	training, err := New(m, data, r.plan(m, data))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(training.Close)
	return training
}

// advance takes what comes next of a training, a step or an evaluation, without its time.
func advance(t *testing.T, training *Training) any {
	t.Helper()
	if training.Due() {
		e, err := training.Evaluate(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	s, err := training.Step(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	s.Time = 0
	return s
}

// toEnd takes all that is left of a training, and returns the events and the parameters at the end.
func toEnd(t *testing.T, training *Training) (events []any, end map[string][]float32) {
	t.Helper()
	for !training.Done() {
		events = append(events, advance(t, training))
	}
	if err := training.Finish(context.Background()); err != nil {
		t.Fatal(err)
	}
	return events, values(training.model.Model)
}

func mustSnapshot(t *testing.T, training *Training) *snapshots.Snapshot {
	t.Helper()
	s, err := training.Snapshot(nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// restoreSame is Restore of a snapshot with the training's own settings; the first that differs is an error.
func restoreSame(training *Training, s *snapshots.Snapshot) error {
	if all := snapshots.Differences(s.Settings, training.Settings()); len(all) > 0 {
		return differenceError(all[0])
	}
	return training.Restore(s)
}

func differenceError(d snapshots.Difference) error {
	switch {
	case d.Was == "":
		return fmt.Errorf("snapshot: %s not found; want %s", d.Key, d.Now)
	case d.Now == "":
		return fmt.Errorf("snapshot: unexpected %s", d.Key)
	}
	return fmt.Errorf("snapshot: it was taken with %s %s; the training has %s", d.Key, d.Was, d.Now)
}

func mustRestore(t *testing.T, training *Training, s *snapshots.Snapshot) {
	t.Helper()
	if err := restoreSame(training, s); err != nil {
		t.Fatal(err)
	}
}

// written returns a snapshot written and read again.
func written(t *testing.T, s *snapshots.Snapshot) *snapshots.Snapshot {
	t.Helper()
	path := filepath.Join(t.TempDir(), "snapshot")
	if err := s.Write(path); err != nil {
		t.Fatal(err)
	}
	again, err := snapshots.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func TestATrainingGoesOnFromAnySnapshotWithTheSameBytes(t *testing.T) {
	for _, r := range resumedTrainings() {
		t.Run(r.name, func(t *testing.T) {
			// the run without
			wantEvents, want := toEnd(t, r.start(t))
			if len(wantEvents) < 5 {
				t.Fatalf("%d events are too few", len(wantEvents))
			}

			// snapshots change nothing
			training := r.start(t)
			var snapshots []*snapshots.Snapshot
			var events []any
			for snapshots = append(snapshots, mustSnapshot(t, training)); !training.Done(); {
				events = append(events, advance(t, training))
				snapshots = append(snapshots, mustSnapshot(t, training))
			}
			if !reflect.DeepEqual(events, wantEvents) {
				t.Fatal("a run of which snapshots are taken differs")
			}

			for at, s := range snapshots {
				if testing.Short() && at%4 != 1 {
					continue
				}

				// in the same training, and in one of a new model whose parameters are others
				fresh := r.start(t)
				for _, w := range fresh.model.Params.All() {
					if !w.Frozen {
						w.Data[0]++
						w.Changed()
					}
				}
				for what, into := range map[string]*Training{"the same training": training,
					"a new one, by a file": fresh} {
					if into == fresh {
						s = written(t, s)
					}
					mustRestore(t, into, s)
					gotEvents, got := toEnd(t, into)
					if at < len(wantEvents) && !reflect.DeepEqual(gotEvents, wantEvents[at:]) {
						t.Fatalf("after event %d in %s: other steps or evaluations", at, what)
					}
					if !reflect.DeepEqual(got, want) {
						t.Fatalf("after event %d in %s: other parameters", at, what)
					}
				}
			}
		})
	}
}

func TestATrainingOnChosenBatchesGoesOnFromASnapshot(t *testing.T) {
	start := func() *Training {
		m := smallModel(t, "none", 0.1)
		plan := smallPlan()
		plan.Weighting = uncertainty(m)
		return stepping(t, m, plan, 6)
	}
	update := func(training *Training, from, to int) {
		for n := from; n < to; n++ {
			batch := Batch{n % 2, smallData(training.model.Model, 24)[n%2].Train[4*n : 4*n+4]}
			if _, err := training.Update([]Batch{batch}); err != nil {
				t.Fatal(err)
			}
		}
	}
	whole, half, rest := start(), start(), start()
	update(whole, 0, 6)
	update(half, 0, 3)
	mustRestore(t, rest, written(t, mustSnapshot(t, half)))
	update(rest, 3, 6)
	if !reflect.DeepEqual(values(rest.model.Model), values(whole.model.Model)) {
		t.Error("other parameters")
	}
}
