package multitask

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/jenga-nlp/jenga/nn"
)

// Restore sets the training to the state in the snapshot. A snapshot of another model, other data or another plan is an
// error, but of the sampler and the weighting only the types are compared: not their options, such as a temperature or
// the probability of a Rehearsal, nor the sampler that a Rehearsal has. The caller compares those where they may differ.
// After an error the training must not be used.
func (t *Training) Restore(s *Snapshot) error {
	if all := t.Differences(s); len(all) > 0 {
		return fmt.Errorf("snapshot: %w", all[0].err())
	}
	return t.RestoreDespite(s)
}

// RestoreDespite is Restore without the comparison of settings, which Differences makes: the training continues with
// its own. A sampler or a weighting of another type than the snapshot's begins anew. A snapshot whose parameters or
// position do not fit is an error all the same, which wraps Misfits.
func (t *Training) RestoreDespite(s *Snapshot) error {
	if err := t.restore(s); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

func (t *Training) restore(s *Snapshot) error {
	// parameters
	parts, err := t.snapshotParts()
	if err != nil {
		return err
	}
	sameWeighting := t.sameType(s, weightingSetting)
	parts, states, err := s.match(parts, sameWeighting)
	if err != nil {
		return err
	}
	var misfits Misfits
	for i, part := range parts {
		state := states[i]
		if f, ok := part.store.(fitted); ok {
			state = f.keep(state, s.header.Built, t.built)
		}
		part.restore(state, &misfits)
	}

	// sampler and weighting
	for _, part := range []struct {
		name string
		of   any
		from []byte
		same bool
	}{
		{OfSampler, t.plan.Sampler, s.header.Sampler, t.sameType(s, samplingSetting)},
		{OfWeighting, t.plan.Weighting, s.header.Weighting, sameWeighting},
		{OfTasks, t.guard, s.header.Losses, true},
	} {
		if stateful, ok := part.of.(Stateful); ok && part.same {
			if err := stateful.UnmarshalBinary(part.from); err != nil {
				misfits.add(part.name, fmt.Errorf("state of %T: %w", part.of, err))
			}
		}
	}

	// progress
	p := s.header.Progress
	streams, iterators, err := t.checkProgress(p)
	misfits.add(OfPosition, err)
	if err := misfits.err(); err != nil {
		return err
	}
	t.state.Step, t.state.Epoch, t.state.Left, t.state.Last = p.Step, p.Epoch, slices.Clone(p.Left), p.Last
	t.used, t.serial, t.evaluated = p.Used, p.Serial, p.Evaluated
	t.sampling, t.weighing, t.iterators = streams[0], streams[1], iterators
	t.balance.restore(p.Balance)
	t.pending = nil // they were reported before the first step
	return nil
}

// restore sets the parameters to a state of the snapshot, or adds to misfits.
func (p snapshotPart) restore(state []nn.ParamState, misfits *Misfits) {
	of := OfParams
	if p.name == weightingPart {
		of = OfWeighting
	}
	if params, known := p.params(); known {
		if err := nn.CheckState(params, state); err != nil {
			others := otherParams(params, state)
			if of == OfParams && len(others) == 0 {
				of, others = OfOrder, otherOrder(params, state)
			}
			misfits.add(of, fmt.Errorf("%s: %w", p.name, err), others...)
			return
		}
		if of == OfParams {
			of = OfOptimizer // what else may not fit
		}
	}
	if err := p.store.SetState(state); err != nil {
		misfits.add(of, fmt.Errorf("%s: %w", p.name, err))
	}
}

// sameType reports whether the snapshot has the same value of a setting, which is a type.
func (t *Training) sameType(s *Snapshot, name string) bool {
	value := func(all []setting) string {
		i := slices.IndexFunc(all, func(of setting) bool { return of.Name == name })
		if i < 0 {
			return ""
		}
		return all[i].Value
	}
	return value(s.header.Of) == value(t.settings())
}

// match returns the parts of a training whose parameters a snapshot has, and their states. Without weighting, those of
// the weighting are left out of both.
func (s *Snapshot) match(parts []snapshotPart, weighting bool) ([]snapshotPart, [][]nn.ParamState, error) {
	isLeftOut := func(name string) bool { return name == weightingPart && !weighting }
	parts = slices.DeleteFunc(parts, func(p snapshotPart) bool { return isLeftOut(p.name) })
	var names []string
	var states [][]nn.ParamState
	for i, section := range s.header.Sections {
		if !isLeftOut(section.Name) {
			names, states = append(names, section.Name), append(states, s.sections[i])
		}
	}
	if len(states) != len(parts) {
		return nil, nil, fmt.Errorf("it has %d kinds of parameters; the training has %d", len(states), len(parts))
	}
	for i, part := range parts {
		if names[i] != part.name {
			return nil, nil, fmt.Errorf("unexpected parameters of kind %q; want %q", names[i], part.name)
		}
	}
	return parts, states, nil
}

// checkProgress returns the random streams of sampler and weighting, and the batch iterators, as a snapshot has them.
func (t *Training) checkProgress(p progress) (streams []*rand.PCG, iterators []*batchIterator, err error) {
	n, groups := t.length, len(t.iterators)
	switch {
	case p.Step < 0 || p.Step > n.steps:
		return nil, nil, fmt.Errorf("step %d of %d", p.Step, n.steps)
	case p.Evaluated < 0 || p.Evaluated > p.Step:
		return nil, nil, fmt.Errorf("an evaluation after step %d, at step %d", p.Evaluated, p.Step)
	case p.Last < -1 || p.Last >= len(t.model.Groups):
		return nil, nil, fmt.Errorf("a batch of group %d; there are %d", p.Last, len(t.model.Groups))
	case len(p.Batches) != groups:
		return nil, nil, fmt.Errorf("batches of %d groups; the training has %d", len(p.Batches), groups)
	case groups > 0 && (p.Epoch < 0 || p.Used < 0 || p.Used >= n.batches && p.Step < n.steps),
		len(p.Left) != groups && (p.Used > 0 || len(p.Left) > 0):
		return nil, nil, errors.New("inconsistent counts of batches")
	case groups > 0 && n.stepsFor(n.batches-p.Used) != n.steps-p.Step:
		return nil, nil, fmt.Errorf("%d batches were read in %d steps, but a step of the training reads %d", p.Used, p.Step,
			n.rounds*n.groups)
	}
	for g, left := range p.Left {
		if have := t.state.Batches[g]; left > have || left < -n.batches {
			return nil, nil, fmt.Errorf("%d batches left of %d", left, have)
		}
	}
	for _, b := range [][]byte{p.Sampling, p.Weighing} {
		stream := new(rand.PCG)
		if err := stream.UnmarshalBinary(b); err != nil {
			return nil, nil, fmt.Errorf("a random stream: %w", err)
		}
		streams = append(streams, stream)
	}
	for g, b := range p.Batches {
		it := *t.iterators[g]
		it.stream = new(rand.PCG)
		if err := it.stream.UnmarshalBinary(b.Stream); err != nil {
			return nil, nil, fmt.Errorf("a random stream: %w", err)
		}
		it.shuffle()
		if b.Used < 0 || b.Used > it.count() {
			return nil, nil, fmt.Errorf("%d of %d batches are used", b.Used, it.count())
		}
		it.used = b.Used
		iterators = append(iterators, &it)
	}
	return streams, iterators, nil
}
