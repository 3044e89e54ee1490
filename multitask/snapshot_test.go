package multitask

import (
	"bytes"
	"context"
	"encoding/binary"
	"hash/crc32"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// threeGroups is a small model of three tasks, none of which reads another's texts, and n examples of each.
func threeGroups(t *testing.T, freeze string, n int) (*Model, []Data) {
	t.Helper()
	m := smallModel(t, freeze, 0.1)
	data := smallData(m, n)
	var tagged Data
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
	m.Groups = []Group{{"topic", []Task{topic}}, {"tags", []Task{tags}}, m.Groups[1]}
	return m, []Data{data[0], tagged, data[1]}
}

// counted is a sampler and a weighting that carry state: how often they were called.
type counted struct{ n *byte }

func (c counted) Next(s State) []int {
	*c.n++
	return []int{int(*c.n) * 7 % 5 % len(s.Batches)}
}

func (c counted) Weigh(_ State, losses []Loss) []float64 {
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
	model func(t *testing.T) (*Model, []Data)
	plan  func(m *Model) Plan
}

func resumedTrainings() []resumed {
	three := func(freeze string) func(t *testing.T) (*Model, []Data) {
		return func(t *testing.T) (*Model, []Data) { return threeGroups(t, freeze, 10) }
	}
	plan := func(change func(m *Model, p *Plan)) func(m *Model) Plan {
		return func(m *Model) Plan {
			p := smallPlan()
			p.Accumulate = 2
			change(m, &p)
			return p
		}
	}
	return []resumed{
		{"proportional", three("none"), plan(func(_ *Model, p *Plan) {})},
		{"round robin, batches by tokens", three("1"),
			plan(func(_ *Model, p *Plan) { p.Sampler, p.BatchTokens = RoundRobin{}, 14 })},
		{"uniform", three("none"), plan(func(_ *Model, p *Plan) { p.Sampler, p.EvaluateEvery = Uniform{}, 3 })},
		{"two groups at each turn", three("none"),
			plan(func(_ *Model, p *Plan) { p.Sampler = Proportional{several{2}} })},
		{"so many steps", three("none"), plan(func(_ *Model, p *Plan) { p.MaxSteps = 11 })},
		{"a frozen encoder", three("all"), plan(func(_ *Model, p *Plan) { p.CacheMemory = mixed })},
		{"fitted heads", func(t *testing.T) (*Model, []Data) { return patternModel(t, "none") },
			plan(func(_ *Model, p *Plan) {})},
		{"heads fitted at the end", func(t *testing.T) (*Model, []Data) { return patternModel(t, "none") },
			plan(func(_ *Model, p *Plan) { p.NeverEvaluate = true })},
		{"hidden tokens", func(t *testing.T) (*Model, []Data) {
			m, data := hidingModel(t, "none")
			return m, []Data{data}
		}, plan(func(_ *Model, p *Plan) { p.BatchSize = 8 })},
		{"state of sampler and weighting", three("none"),
			plan(func(_ *Model, p *Plan) { p.Sampler, p.Weighting = counted{new(byte)}, counted{new(byte)} })},
		{"learned weighting", three("none"), plan(func(m *Model, p *Plan) { p.Weighting = uncertainty(m) })},
		{"gradients combined", three("none"),
			plan(func(_ *Model, p *Plan) { p.Sampler, p.Weighting = RoundRobin{several{3}}, PCGrad{} })},
	}
}

func uncertainty(m *Model) Weighting {
	w, err := NewUncertainty(UncertaintyOptions{LearningRate: 1e-2}, m.WeightingEnv(1))
	if err != nil {
		panic(err)
	}
	return w
}

func (r resumed) start(t *testing.T) *Training {
	t.Helper()
	m, data := r.model(t)
	training, err := New(m, data, r.plan(m))
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

func mustSnapshot(t *testing.T, training *Training) *Snapshot {
	t.Helper()
	s, err := training.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func mustRestore(t *testing.T, training *Training, s *Snapshot) {
	t.Helper()
	if err := training.Restore(s); err != nil {
		t.Fatal(err)
	}
}

// written returns a snapshot written and read again.
func written(t *testing.T, s *Snapshot) *Snapshot {
	t.Helper()
	var file bytes.Buffer
	n, err := s.WriteTo(&file)
	if err != nil || n != int64(file.Len()) {
		t.Fatalf("WriteTo = %d, %v, of %d bytes", n, err, file.Len())
	}
	again, err := ReadSnapshot(&file)
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
			var snapshots []*Snapshot
			var events []any
			for snapshots = append(snapshots, mustSnapshot(t, training)); !training.Done(); {
				events = append(events, advance(t, training))
				snapshots = append(snapshots, mustSnapshot(t, training))
			}
			if !reflect.DeepEqual(events, wantEvents) {
				t.Fatal("a run of which snapshots are taken differs")
			}

			for at, s := range snapshots {
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

func TestASnapshotOfAnotherTrainingIsRefused(t *testing.T) {
	start := func(change func(m *Model, data []Data, p *Plan)) *Training {
		m, data := threeGroups(t, "none", 10)
		plan := smallPlan()
		change(m, data, &plan)
		training, err := New(m, data, plan)
		if err != nil {
			t.Fatal(err)
		}
		return training
	}
	same := start(func(*Model, []Data, *Plan) {})
	advance(t, same)
	s := mustSnapshot(t, same)
	for _, c := range []struct {
		want   string
		change func(m *Model, data []Data, p *Plan)
	}{
		{"snapshot: it was taken with seed 5; the training has 6", func(_ *Model, _ []Data, p *Plan) { p.Seed = 6 }},
		{"snapshot: it was taken with steps 16; the training has 24",
			func(_ *Model, _ []Data, p *Plan) { p.Epochs = 3 }},
		{"snapshot: it was taken with learning_rate 0.003; the training has 0.1",
			func(_ *Model, _ []Data, p *Plan) { p.Rate = 0.1 }},
		{"sampling multitask.Proportional; the training has multitask.RoundRobin",
			func(_ *Model, _ []Data, p *Plan) { p.Sampler = RoundRobin{} }},
		{"weighting multitask.Fixed; the training has *multitask.Uncertainty",
			func(m *Model, _ []Data, p *Plan) { p.Weighting = uncertainty(m) }},
		{`weight of task "mood" head "mood" 1; the training has 2`, func(m *Model, _ []Data, _ *Plan) {
			m.Groups[2].Tasks[0].Heads[0].Weight = 2
		}},
		{`dev examples of task "mood" 10; the training has 9`,
			func(_ *Model, data []Data, _ *Plan) { data[2].Dev = data[2].Dev[1:] }},
		{`a checksum of the training texts of task "topic"`, func(_ *Model, data []Data, _ *Plan) {
			data[0].Train[0], data[0].Train[1] = data[0].Train[1], data[0].Train[0]
		}},
		{`snapshot: model: unexpected parameter "encoder.embeddings.word_embeddings.weight"; want`,
			func(m *Model, _ []Data, _ *Plan) {
				m.Params.All()[0].Frozen = true
			}},
		{`snapshot: model: parameter "other" not found`,
			func(m *Model, _ []Data, _ *Plan) { m.Params.Zeros("other", 2) }},
	} {
		if err := start(c.change).Restore(s); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("Restore = %v, want %s", err, c.want)
		}
	}
}

func TestATrainingOnChosenBatchesGoesOnFromASnapshot(t *testing.T) {
	start := func() *Training {
		m := smallModel(t, "none", 0.1)
		plan := smallPlan()
		plan.Weighting = uncertainty(m)
		return stepping(t, m, plan, 6)
	}
	update := func(training *Training, from int) {
		for n := from; n < 6; n++ {
			batch := Batch{n % 2, smallData(training.model.Model, 24)[n%2].Train[4*n : 4*n+4]}
			if _, err := training.Update([]Batch{batch}); err != nil {
				t.Fatal(err)
			}
		}
	}
	whole, parts := start(), start()
	update(whole, 0)
	mustRestore(t, parts, written(t, mustSnapshot(t, parts)))
	update(parts, 0)
	if !reflect.DeepEqual(values(parts.model.Model), values(whole.model.Model)) {
		t.Error("other parameters")
	}
}

// snapshotFile is what a training writes.
func snapshotFile(t testing.TB, training *Training) []byte {
	s, err := training.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var file bytes.Buffer
	if _, err := s.WriteTo(&file); err != nil {
		t.Fatal(err)
	}
	return file.Bytes()
}

func TestADamagedSnapshotIsAnError(t *testing.T) {
	m, data := threeGroups(t, "none", 10)
	training, err := New(m, data, smallPlan())
	if err != nil {
		t.Fatal(err)
	}
	good := snapshotFile(t, training)
	header := func(text string, size int) []byte {
		file := binary.LittleEndian.AppendUint64([]byte(snapshotMagic), uint64(size))
		return append(file, text...)
	}
	flipped := slices.Clone(good)
	flipped[len(flipped)-9] ^= 1
	for _, c := range []struct {
		name string
		file []byte
		want string
	}{
		{"nothing", nil, "snapshot: unexpected end"},
		{"another file", bytes.Repeat([]byte("jenga "), 10), `snapshot: it begins with "jenga jenga jenga"; want`},
		{"another version", append([]byte("jenga snapshot 2\n"), good[len(snapshotMagic):]...),
			`want "jenga snapshot 1\n"`},
		{"a header without end", header("", 1<<62), "a header of 4611686018427387904 bytes; want at most 67108864"},
		{"a truncated header", header("{", 1<<20), "it ends after 1 bytes of a header of 1048576"},
		{"no JSON", header("{", 1), "snapshot: header: unexpected end of JSON input"},
		{"values without end", header(`{"sections":[{"params":[{"name":"w","values":2147483648}]}]}`, 60),
			`parameter "w": unexpected end`},
		{"fewer than no values", header(`{"sections":[{"params":[{"name":"w","values":-1}]}]}        `, 60),
			`parameter "w": -1 values; want from 0 to`},
		{"a truncated end", good[:len(good)-2], "unexpected end"},
		{"a flipped bit", flipped, "damaged: the checksum is"},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := ReadSnapshot(bytes.NewReader(c.file))
		if runtime.ReadMemStats(&after); after.TotalAlloc-before.TotalAlloc > 8<<20 {
			t.Errorf("%s: it took %d bytes", c.name, after.TotalAlloc-before.TotalAlloc)
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.name, err, c.want)
		}
	}
}

// FuzzSnapshot reads and restores any file. The checksum is corrected, so that the contents are checked.
func FuzzSnapshot(f *testing.F) {
	m := smallModel(f, "none", 0)
	data := smallData(m, 6)
	plan := smallPlan()
	plan.MaxSteps = 6
	training, err := New(m, data, plan)
	if err != nil {
		f.Fatal(err)
	}
	header, numbers := parts(snapshotFile(f, training))
	f.Add(header, numbers)
	f.Add([]byte(`{"progress":{"step":3,"used":2,"left":[1]}}`), []byte{})
	f.Fuzz(func(t *testing.T, header, numbers []byte) {
		file := binary.LittleEndian.AppendUint64([]byte(snapshotMagic), uint64(len(header)))
		file = append(append(file, header...), numbers...)
		file = binary.LittleEndian.AppendUint32(file, crc32.Checksum(file, castagnoli))
		s, err := ReadSnapshot(bytes.NewReader(file))
		if err != nil {
			return
		}
		if err := training.Restore(s); err != nil {
			return
		}
		if !training.Done() && !training.Due() {
			training.next() // no panic
		}
	})
}

// parts returns the header and the numbers of a snapshot's file.
func parts(file []byte) (header, numbers []byte) {
	at := len(snapshotMagic)
	size := int(binary.LittleEndian.Uint64(file[at:]))
	at += 8
	return file[at : at+size], file[at+size : len(file)-4]
}
