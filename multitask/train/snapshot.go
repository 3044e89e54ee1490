package train

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/multitask/weightings"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/plugin"
)

type progress struct {
	Step      int        `json:"step"` // updates done
	Epoch     int        `json:"epoch"`
	Left      []int      `json:"left"`
	Last      int        `json:"last"`
	Used      int        `json:"used"`
	Serial    uint64     `json:"serial"`
	Evaluated int        `json:"evaluated"`
	Sampling  []byte     `json:"sampling"` // random streams, as rand.PCG writes them
	Weighing  []byte     `json:"weighing"`
	Batches   []shuffled `json:"batches"`
	Counts    []int      `json:"counts,omitempty"` // batches of each group in an epoch
	Length    length     `json:"length,omitzero"`
	Balance   *balance   `json:"balance,omitempty"` // nil: it is not measured
}

// shuffled is the state of a batch iterator: the stream before the last shuffle, which makes the same batches again,
// and how many are used.
type shuffled struct {
	Stream []byte `json:"stream"`
	Used   int    `json:"used"`
}

// CollectState prepares a Snapshot of the first of several ranks, each of which has the optimizer's state of a part of
// the parameters. All of them call it after the same update; a Snapshot of another rank lacks what others have.
func (t *Training) CollectState() error {
	if t.exchange == nil {
		return nil
	}
	return t.exchange.collect()
}

// Snapshot copies the state of the training, with the memory of copies, which may be nil.
func (t *Training) Snapshot(copies *nn.Copies) (*snapshots.Snapshot, error) {
	if !t.host.Collected() {
		return nil, errors.New("snapshot: other ranks have a part of the optimizer's state, which is not collected")
	}
	s := &snapshots.Snapshot{Settings: t.Settings(), Built: t.built}

	// parameters
	parts, err := t.snapshotParts()
	if err != nil {
		return nil, fmt.Errorf("snapshot: %w", err)
	}
	for _, part := range parts {
		state, err := part.state(copies)
		if err != nil {
			return nil, fmt.Errorf("snapshot: %s: %w", part.name, err)
		}
		s.Kinds = append(s.Kinds, snapshots.Kind{Name: part.name, Params: state})
	}

	// sampler and weighting
	for _, part := range t.statefulParts(s) {
		if part.state == nil {
			continue
		}
		if *part.bytes, err = part.state.MarshalBinary(); err != nil {
			return nil, fmt.Errorf("snapshot: state of %s: %w", part.setting, err)
		}
	}

	// progress
	p := progress{
		Step: t.state.Step, Epoch: t.state.Epoch, Left: t.state.Left, Last: t.state.Last,
		Used: t.used, Serial: t.serial, Evaluated: t.evaluated,
		Sampling: bytesOfStream(t.sampling), Weighing: bytesOfStream(t.weighing),
		Counts: t.state.Batches, Length: t.length, Balance: t.balance,
	}
	for _, it := range t.iterators {
		p.Batches = append(p.Batches, shuffled{bytesOfStream(&it.before), it.used})
	}
	if s.Progress, err = json.Marshal(p); err != nil {
		return nil, fmt.Errorf("snapshot: progress: %w", err)
	}
	return s, nil
}

func bytesOfStream(p *rand.PCG) []byte {
	b, err := p.MarshalBinary()
	if err != nil {
		panic("train: " + err.Error()) // it never fails
	}
	return b
}

// statefulPart is what has a state besides parameters, and its place in a snapshot.
type statefulPart struct {
	setting string             // its type
	state   multitask.Stateful // nil: it has none
	bytes   *[]byte
}

func (t *Training) statefulParts(s *snapshots.Snapshot) []statefulPart {
	return []statefulPart{
		{samplingSetting, t.plan.Sampler.State, &s.Sampler},
		{weightingSetting, t.plan.Weighting.State, &s.Weighting},
		{"losses", t.guard.stateful(), &s.Losses},
	}
}

// snapshotPart is a set of parameters in a snapshot.
type snapshotPart struct {
	name  string
	store nn.SnapshotStore
}

// Names of parts: the parameters in the tree, those of an encoder with a memory of its own, and those of a weighting.
const (
	modelPart     = "model"
	encoderPart   = "encoder"
	weightingPart = "weighting"
)

// OfModel reports whether a kind of parameters in a snapshot is of those that a saved model has.
func OfModel(kind string) bool { return kind != weightingPart }

// state copies the parameters, with the memory of copies as far as the store can.
func (p snapshotPart) state(copies *nn.Copies) ([]nn.ParamState, error) {
	if host, ok := p.store.(*nn.HostStore); ok {
		return host.StateIn(copies), nil
	}
	return p.store.State()
}

func (t *Training) snapshotParts() ([]snapshotPart, error) {
	parts := []snapshotPart{{modelPart, t.host}, {"fitted", fittedOf(t.model.Model)}}
	for _, store := range t.stores[1:] {
		s, ok := store.(nn.SnapshotStore)
		if !ok {
			return nil, errors.New("the encoder's store is not an nn.SnapshotStore: its parameters cannot be saved")
		}
		parts = append(parts, snapshotPart{encoderPart, s})
	}
	if learned := t.learned; learned != nil {
		parts = append(parts, snapshotPart{weightingPart, learned.store})
	}
	return parts, nil
}

// Settings returns what the bytes of a training depend on besides its state.
func (t *Training) Settings() []snapshots.Setting {
	if t.fingerprint != nil {
		return t.fingerprint
	}
	var all []snapshots.Setting
	add := func(key string, value any, of snapshots.What) {
		all = append(all, snapshots.Setting{Key: key, Value: fmt.Sprint(value), Of: of})
	}
	p := t.plan
	add("seed", p.Seed, snapshots.OfPlan)
	add("steps", t.length.Steps, snapshots.OfSteps) // which follows from the plan and the data
	options := p.Options
	options.LayerDecay, options.HeadRate = cmp.Or(p.LayerDecay, 1), cmp.Or(p.HeadRate, p.Rate)
	options.Shards = t.shards.all
	for _, v := range plugin.SectionOf(options).Values() {
		if !slices.Contains(uncomparedOptions, v.Key) {
			add(v.Key, v.Text, snapshots.OfPlan)
		}
	}
	add("optimizer", p.optimizer().Part, snapshots.OfPlan)
	add("unfreeze", p.UnfreezeEvery, snapshots.OfPlan)
	add("lr_scheduler", p.Schedule.Name(), snapshots.OfPlan)
	add("eval_steps", p.EvaluateEvery, snapshots.OfPlan)
	add("evaluations", !p.NeverEvaluate, snapshots.OfPlan)
	add(samplingSetting, cmp.Or(p.Sampler.Type, "a sampler without a name"), snapshots.OfPlan)
	add("sampling.groups", t.length.Groups, snapshots.OfPlan)
	add(weightingSetting, cmp.Or(p.Weighting.Type, weightings.Registry().Default()), snapshots.OfPlan)
	if learned := t.learned; learned != nil {
		add("weighting.learning_rate", learned.Rate, snapshots.OfPlan)
	}
	add("a checksum of the encoder's frozen parameters", t.frozenSum, snapshots.OfPlan)
	for _, group := range t.model.Groups {
		for _, task := range group.Tasks {
			for _, head := range task.Heads {
				add(fmt.Sprintf("weight of task %q head %q", task.Name, head.Name), head.Weight, snapshots.OfPlan)
			}
		}
	}
	if taught := p.Taught; taught != nil {
		add("answers of teachers", taught.Sum, snapshots.OfData)
	}
	for g, data := range t.own {
		group := &t.whole.Groups[g]
		name := fmt.Sprintf("task %q, as number:checksum", group.Name)
		add("training examples of "+name, data.Checksum(group), snapshots.OfData)
		add("dev examples of "+name, group.Checksum(data.Dev), snapshots.OfData)
	}
	t.fingerprint = all
	return all
}

// uncomparedOptions are keys of options that change no bytes of a training that goes on, or from which others follow:
// its steps, and the sampler that rehearses.
var uncomparedOptions = []string{"num_epochs", "max_steps", "recompute", "rehearse"}

// Names of settings that are types.
const (
	samplingSetting  = "sampling"
	weightingSetting = "weighting"
)

// Restore sets the training to the state in the snapshot, and continues with its own settings, whose Differences the
// caller compares. A sampler or a weighting of another type than the snapshot's begins anew; of others their options are
// not compared. A snapshot whose parameters or position do not fit is an error. After an error the training must not be
// used.
func (t *Training) Restore(s *snapshots.Snapshot) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("snapshot: %w", err)
		}
	}()
	var misfits []string
	add := func(err error) {
		if err != nil {
			misfits = append(misfits, err.Error())
		}
	}

	// parameters
	parts, states, err := t.match(s)
	if err != nil {
		return err
	}
	for i, part := range parts {
		state := states[i].Params
		if f, ok := part.store.(fitted); ok {
			state = f.keep(state, s.Built, t.built)
		}
		if err := part.store.SetState(state); err != nil {
			add(fmt.Errorf("%s: %w", part.name, err))
		}
	}

	// sampler and weighting
	for _, part := range t.statefulParts(s) {
		if part.state == nil || !t.sameType(s, part.setting) {
			continue
		}
		if err := part.state.UnmarshalBinary(*part.bytes); err != nil {
			add(fmt.Errorf("state of %s: %w", part.setting, err))
		}
	}

	// progress
	var p progress
	var at position
	if err := json.Unmarshal(s.Progress, &p); err != nil {
		add(fmt.Errorf("progress: %w", err))
	} else {
		at, err = t.position(p)
		add(err)
	}
	if misfits != nil {
		return errors.New(strings.Join(misfits, "; "))
	}
	t.goTo(at)
	t.pending = nil // they were reported before the first step
	return nil
}

// sameType reports whether the snapshot has the same value of a setting, which is a type.
func (t *Training) sameType(s *snapshots.Snapshot, key string) bool {
	return snapshots.Value(s.Settings, key) == snapshots.Value(t.Settings(), key)
}

// match returns the parts of the training whose parameters a snapshot has, and their states. Those of a weighting of
// another type are left out of both.
func (t *Training) match(s *snapshots.Snapshot) ([]snapshotPart, []snapshots.Kind, error) {
	parts, err := t.snapshotParts()
	if err != nil {
		return nil, nil, err
	}
	states, err := moved(parts, slices.Clone(s.Kinds))
	if err != nil {
		return nil, nil, err
	}
	if !t.sameType(s, weightingSetting) {
		parts = slices.DeleteFunc(parts, func(p snapshotPart) bool { return p.name == weightingPart })
		states = slices.DeleteFunc(states, func(k snapshots.Kind) bool { return k.Name == weightingPart })
	}
	if len(states) != len(parts) {
		return nil, nil, fmt.Errorf("it has %d kinds of parameters; the training has %d", len(states), len(parts))
	}
	for i, part := range parts {
		if states[i].Name != part.name {
			return nil, nil, fmt.Errorf("unexpected parameters of kind %q; want %q", states[i].Name, part.name)
		}
	}
	return parts, states, nil
}

type position struct {
	progress
	streams   []*rand.PCG // of sampler and weighting
	iterators []*batchIterator
}

// position returns where the training goes on with the progress of a snapshot. What may differ from when it was taken
// is the number of batches of an epoch: then the same fractions of them have been read; and that of a step: then the
// batches that are left make another number of steps.
func (t *Training) position(p progress) (at position, err error) {
	n := t.length
	if err := p.check(len(t.iterators), len(t.model.Groups)); err != nil {
		return at, err
	}
	p, moved := p.scaled(t.state.Batches, n.PerEpoch)
	for g, left := range p.Left {
		if have := t.state.Batches[g]; left > have || left < -n.Batches {
			return at, fmt.Errorf("%d batches left of %d", left, have)
		}
	}

	// the length of the training
	switch {
	case t.plan.MaxSteps > 0 && p.Step > n.Steps:
		return at, fmt.Errorf("step %d of %d", p.Step, n.Steps)
	case t.plan.MaxSteps > 0:
		n.Batches = p.Used + (n.Steps-p.Step)*n.Rounds*n.Groups
	case p.Used >= n.Batches+n.Groups: // the last step of a training may have more batches than are left
		return at, fmt.Errorf("%d batches are read, the training has %d", p.Used, n.Batches)
	default:
		n.Steps = p.Step + n.stepsFor(n.Batches-p.Used)
	}
	p.Length = n
	at = position{progress: p}

	// random streams and batches
	for _, b := range [][]byte{p.Sampling, p.Weighing} {
		stream := new(rand.PCG)
		if err := stream.UnmarshalBinary(b); err != nil {
			return at, fmt.Errorf("a random stream: %w", err)
		}
		at.streams = append(at.streams, stream)
	}
	for g, b := range p.Batches {
		it := *t.iterators[g]
		it.stream = new(rand.PCG)
		if err := it.stream.UnmarshalBinary(b.Stream); err != nil {
			return at, fmt.Errorf("a random stream: %w", err)
		}
		it.shuffle()
		if moved {
			b.Used = min(b.Used, it.count())
		}
		if b.Used < 0 || b.Used > it.count() {
			return at, fmt.Errorf("%d of %d batches are used", b.Used, it.count())
		}
		it.used = b.Used
		at.iterators = append(at.iterators, &it)
	}
	return at, nil
}

// maxProgress bounds the counts of a progress, so that sums of them do not overflow.
const maxProgress = 1 << 31

// check returns an error if the counts contradict each other, or the numbers of groups whose batches the training
// chooses and of groups of the model.
func (p progress) check(choosing, groups int) error {
	switch {
	case p.Step < 0 || p.Step > maxProgress || p.Length.Steps > 0 && p.Step > p.Length.Steps:
		return fmt.Errorf("step %d of %d", p.Step, p.Length.Steps)
	case p.Evaluated < 0 || p.Evaluated > p.Step:
		return fmt.Errorf("an evaluation after step %d, at step %d", p.Evaluated, p.Step)
	case p.Last < -1 || p.Last >= groups:
		return fmt.Errorf("a batch of group %d; there are %d", p.Last, groups)
	case len(p.Batches) != choosing:
		return fmt.Errorf("batches of %d groups; the training has %d", len(p.Batches), choosing)
	case choosing > 0 && (p.Epoch < 0 || p.Epoch > maxProgress || p.Used < 0 || p.Used > maxProgress),
		len(p.Left) != choosing && (p.Used > 0 || len(p.Left) > 0),
		len(p.Counts) > 0 && (len(p.Counts) != choosing || slices.Min(p.Counts) < 1 || !p.fits()):
		return errors.New("inconsistent counts of batches")
	}
	return nil
}

// fits reports whether the batches that are left of the length make the steps that are left.
func (p progress) fits() bool {
	n := p.Length
	return n.Groups > 0 && n.Rounds > 0 && n.stepsFor(n.Batches-p.Used) == n.Steps-p.Step
}

// scaled returns the progress in a training whose groups have other numbers of batches, perEpoch in an epoch, and
// whether it is another: the same fractions have been read of the epoch.
func (p progress) scaled(counts []int, perEpoch int) (scaled progress, moved bool) {
	same := p.Length.PerEpoch == perEpoch && slices.Equal(p.Counts, counts)
	if same || len(p.Counts) == 0 || len(p.Left) == 0 { // the caller chooses the batches, or none is read
		return p, false
	}
	p.Left, p.Batches = slices.Clone(p.Left), slices.Clone(p.Batches)
	read := 0
	for g, count := range counts {
		factor := float64(count) / float64(p.Counts[g])
		p.Left[g] = int(math.Round(factor * float64(p.Left[g])))
		p.Batches[g].Used = int(math.Round(factor * float64(p.Batches[g].Used)))
		read += count - p.Left[g]
	}
	p.Used = p.Epoch*perEpoch + min(read, perEpoch)
	return p, true
}

func (t *Training) goTo(at position) {
	t.state.Step, t.state.Epoch, t.state.Left, t.state.Last = at.Step, at.Epoch, slices.Clone(at.Left), at.Last
	t.used, t.serial, t.evaluated = at.Used, at.Serial, at.Evaluated
	t.sampling, t.weighing, t.iterators = at.streams[0], at.streams[1], at.iterators
	if t.balance != nil && at.Balance != nil {
		*t.balance = *at.Balance
	}
	if t.data != nil {
		t.setLength(at.Length)
	}
}

// CompareRanks returns the first rank whose training differs from that of rank 0, in its settings, its examples or its
// parameters, as the function CompareRanks does.
func (t *Training) CompareRanks() (rank int, differs *snapshots.Difference, err error) {
	if t.plan.Ranks == nil {
		return 0, nil, nil
	}
	sum, err := snapshots.Sum(t.model.Params.All())
	if err != nil {
		return 0, nil, fmt.Errorf("parameters can no longer be read: %w", err)
	}
	return CompareRanks(t.plan.Ranks, append(slices.Clone(t.Settings()),
		snapshots.Setting{Key: "a checksum of all parameters", Value: sum}))
}

// fitted are parameters that have no gradients: those that are set before evaluations, and those that follow from
// options, such as the weights of labels.
type fitted []*nn.Param

// fittedOf returns the frozen parameters outside the encoder: some are fitted to training texts or tuned on dev.
func fittedOf(m *multitask.Model) fitted {
	encoder := multitask.EncoderParams(m.Params)
	return slices.DeleteFunc(m.Params.All(), func(w *nn.Param) bool { return !w.Frozen || multitask.IsIn(encoder, w) })
}

func (f fitted) sums() (map[string]string, error) {
	all := map[string]string{}
	for _, w := range f {
		sum, err := snapshots.Sum([]*nn.Param{w})
		if err != nil {
			return nil, fmt.Errorf("%s can no longer be read: %w", w.Name, err)
		}
		all[w.Name] = sum
	}
	return all, nil
}

// keep returns a state in which the parameters whose checksums before training were others have their values of now:
// they follow from what has changed since.
func (f fitted) keep(state []nn.ParamState, were, are map[string]string) []nn.ParamState {
	state = slices.Clone(state)
	for i := range state {
		name := state[i].Name
		at := slices.IndexFunc(f, func(w *nn.Param) bool { return w.Name == name })
		if was, known := were[name]; known && at >= 0 && was != are[name] && len(f[at].Data) == len(state[i].Values) {
			state[i].Values = f[at].Data
		}
	}
	return state
}

func (f fitted) State() ([]nn.ParamState, error) {
	var all []nn.ParamState
	for _, w := range f {
		all = append(all, nn.ParamState{Name: w.Name, Values: slices.Clone(w.Data)})
	}
	return all, nil
}

func (f fitted) SetState(state []nn.ParamState) error {
	if err := nn.CheckState(f, state); err != nil {
		return err
	}
	for i, w := range f {
		if !slices.Equal(w.Data, state[i].Values) { // unchanged values may be in read-only memory
			copy(w.Data, state[i].Values)
			w.Changed()
		}
	}
	return nil
}
