package multitask

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/jenga-nlp/jenga/corpus"
	"github.com/jenga-nlp/jenga/nn"
	"github.com/jenga-nlp/jenga/outputs"
)

// Snapshot is all that a Training needs to continue with the same bytes: parameters and the optimizer's state, the
// state of sampler and weighting, random streams, and the progress. It does not hold the active rows of tables, nor a
// frozen encoder's states: both follow from the rest.
type Snapshot struct {
	header   header
	sections [][]nn.ParamState // of the header's Sections
}

// header is all of a snapshot except the numbers of its parameters and of the optimizer.
type header struct {
	Of        []setting `json:"of"`       // model, data and plan
	Progress  progress  `json:"progress"` // progress of the training
	Sampler   []byte    `json:"sampler,omitempty"`
	Weighting []byte    `json:"weighting,omitempty"`
	Losses    []byte    `json:"losses"` // state of the lossGuard
	// Built are checksums of the fitted parameters before training, by their names.
	Built    map[string]string `json:"built,omitempty"`
	Sections []section         `json:"sections"`
	Attached []byte            `json:"attached,omitempty"` // by the caller
}

// setting is a setting that must be the same in a snapshot and in the training that restores it.
type setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// progress is the progress of a training.
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
	Counts    []int      `json:"counts,omitempty"` // batches of each group in an epoch; none of an earlier version
	Length    length     `json:"length,omitzero"`
	Balance   *measured  `json:"balance,omitempty"` // nil: it is not measured
}

// shuffled is the state of a batch iterator: the stream before the last shuffle, which makes the same batches again,
// and how many are used.
type shuffled struct {
	Stream []byte `json:"stream"`
	Used   int    `json:"used"`
}

// section names the parameters of one kind.
type section struct {
	Name   string       `json:"name"`
	Params []paramShape `json:"params"`
}

type paramShape struct {
	Name   string      `json:"name"`
	Values int         `json:"values"`
	Steps  int         `json:"steps"` // updates
	Slots  []slotShape `json:"slots,omitempty"`
}

// slotShape is a slot of the optimizer's state.
type slotShape struct {
	Name   string `json:"name"`
	Values int    `json:"values"`
}

func shapeOf(p nn.ParamState) paramShape {
	shape := paramShape{Name: p.Name, Values: len(p.Values), Steps: p.Steps}
	for _, slot := range p.Slots {
		shape.Slots = append(shape.Slots, slotShape{slot.Name, len(slot.Values)})
	}
	return shape
}

// Snapshot copies the state of the training.
func (t *Training) Snapshot() (*Snapshot, error) { return t.SnapshotIn(nil) }

// CollectState prepares a Snapshot of the first of several ranks, each of which has the optimizer's state of a part of
// the parameters. All of them call it after the same update; a Snapshot of another rank lacks what others have.
func (t *Training) CollectState() error { return t.exchange.collect() }

// SnapshotIn is Snapshot with the memory of copies.
func (t *Training) SnapshotIn(copies *nn.Copies) (*Snapshot, error) {
	if !t.host.Collected() {
		return nil, errors.New("snapshot: other ranks have a part of the optimizer's state, which is not collected")
	}
	s := &Snapshot{header: header{Of: t.settings(), Built: t.built}}

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
		names := section{Name: part.name}
		for _, p := range state {
			names.Params = append(names.Params, shapeOf(p))
		}
		s.header.Sections, s.sections = append(s.header.Sections, names), append(s.sections, state)
	}

	// sampler and weighting
	for _, part := range []struct {
		of any
		to *[]byte
	}{{t.plan.Sampler, &s.header.Sampler}, {t.plan.Weighting, &s.header.Weighting}, {t.guard, &s.header.Losses}} {
		if stateful, ok := part.of.(Stateful); ok {
			state, err := stateful.MarshalBinary()
			if err != nil {
				return nil, fmt.Errorf("snapshot: state of %T: %w", part.of, err)
			}
			*part.to = state
		}
	}

	// progress
	s.header.Progress = progress{
		Step: t.state.Step, Epoch: t.state.Epoch, Left: slices.Clone(t.state.Left), Last: t.state.Last,
		Used: t.used, Serial: t.serial, Evaluated: t.evaluated,
		Sampling: bytesOfStream(t.sampling), Weighing: bytesOfStream(t.weighing),
		Counts: t.state.Batches, Length: t.length, Balance: t.balance.measured(),
	}
	for _, it := range t.iterators {
		s.header.Progress.Batches = append(s.header.Progress.Batches, shuffled{bytesOfStream(&it.before), it.used})
	}
	return s, nil
}

func bytesOfStream(p *rand.PCG) []byte {
	b, err := p.MarshalBinary()
	if err != nil {
		panic("multitask: " + err.Error()) // it never fails
	}
	return b
}

// snapshotPart is a set of parameters in a snapshot.
type snapshotPart struct {
	name  string
	store nn.SnapshotStore
}

// weightingPart is the name of the parameters of a weighting.
const weightingPart = "weighting"

// state copies the parameters, with the memory of copies as far as the store can.
func (p snapshotPart) state(copies *nn.Copies) ([]nn.ParamState, error) {
	if host, ok := p.store.(*nn.HostStore); ok {
		return host.StateIn(copies), nil
	}
	return p.store.State()
}

// snapshotParts returns the sets of parameters in a snapshot, in their order.
func (t *Training) snapshotParts() ([]snapshotPart, error) {
	parts := []snapshotPart{{"model", t.host}, {"fitted", t.model.fitted()}}
	for _, store := range t.stores[1:] {
		s, ok := store.(nn.SnapshotStore)
		if !ok {
			return nil, errors.New("the encoder's store is not an nn.SnapshotStore: its parameters cannot be saved")
		}
		parts = append(parts, snapshotPart{"encoder", s})
	}
	if learned := t.weighting.learned; learned != nil {
		parts = append(parts, snapshotPart{weightingPart, learned.store})
	}
	return parts, nil
}

// settings returns what the bytes of a training depend on besides its state.
func (t *Training) settings() []setting {
	if t.fingerprint != nil {
		return t.fingerprint
	}
	var all []setting
	add := func(name string, value any) { all = append(all, setting{name, fmt.Sprint(value)}) }
	p := t.plan
	add("seed", p.Seed)
	add(stepsSetting, t.length.Steps)
	add("batch_size", p.BatchSize)
	add("batch_tokens", p.BatchTokens)
	add("gradient_accumulation_steps", p.Accumulate)
	all = append(all, t.shards.settings(p)...)
	add("bfloat16", p.BFloat16)
	add("learning_rate", p.Rate)
	add("weight_decay", p.WeightDecay)
	add("warmup_ratio", p.WarmupRatio)
	add("warmup_steps", p.WarmupSteps)
	add("max_grad_norm", p.ClipNorm)
	add("loss_limit", p.LossLimit)
	add("updates after bad losses are skipped", p.SkipBadSteps)
	add("optimizer", fmt.Sprintf("%T%+v", p.optimizer(), p.optimizer()))
	add("ema", p.Average)
	add("epochs between unfrozen layers", p.UnfreezeEvery)
	add("layer_decay", cmp.Or(p.LayerDecay, 1))
	add("head_learning_rate", cmp.Or(p.HeadRate, p.Rate))
	add("lr_scheduler", fmt.Sprintf("%T%+v", t.schedule.Curve, t.schedule.Curve))
	add("steps between evaluations", p.EvaluateEvery)
	add("evaluations", !p.NeverEvaluate)
	add(samplingSetting, fmt.Sprintf("%T", p.Sampler))
	add("groups at each turn", t.length.Groups)
	add(weightingSetting, fmt.Sprintf("%T", p.Weighting))
	if learned := t.weighting.learned; learned != nil {
		add("learning_rate of the weighting", learned.Rate())
	}
	add("a checksum of the encoder's frozen parameters", t.frozenSum)
	for _, group := range t.model.Groups {
		for _, task := range group.Tasks {
			for _, head := range task.Heads {
				add(fmt.Sprintf("weight of task %q head %q", task.Name, head.Name), head.Weight)
			}
		}
	}
	for g, data := range t.data {
		group := &t.model.Groups[g]
		name := fmt.Sprintf("task %q, as number:checksum", group.Name)
		add(trainingData+name, data.checksum(group))
		add(devData+name, group.checksum(data.Dev))
	}
	t.fingerprint = all
	return all
}

// Names of settings.
const (
	stepsSetting     = "steps"    // number of updates, which follows from the plan and the data
	samplingSetting  = "sampling" // a type
	weightingSetting = "weighting"
)

// What the names of the settings of a group's examples begin with.
const (
	trainingData = "training examples of "
	devData      = "dev examples of "
)

// checksum returns the number of examples and a checksum of their tokens and targets, in their order.
func (g *Group) checksum(examples []*corpus.Example) string {
	var kinds []*outputs.Kind
	for _, t := range g.types() {
		kinds = append(kinds, t.Output())
	}
	sum := NewExampleSum()
	for _, e := range examples {
		sum.Add(e, kinds)
	}
	return fmt.Sprintf("%d:%s", len(examples), sum)
}
