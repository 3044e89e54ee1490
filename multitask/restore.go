package multitask

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Restore sets the training to the state in the snapshot. A snapshot of another model, other data or another plan is an
// error, but of the sampler and the weighting only the types are compared: not their options, such as a temperature or
// the probability of a Rehearsal, nor the sampler that a Rehearsal has. The caller compares those where they may differ.
// After an error the training must not be used.
func (t *Training) Restore(s *Snapshot) error {
	if err := compare(s.header.Of, t.settings()); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return t.RestoreDespite(s)
}

// RestoreDespite is Restore without the comparison of settings, which Differences makes: the training continues with
// its own. A snapshot whose parameters or position do not fit is an error all the same.
func (t *Training) RestoreDespite(s *Snapshot) error {
	if err := t.restore(s); err != nil {
		return fmt.Errorf("snapshot: %w", err)
	}
	return nil
}

func (t *Training) restore(s *Snapshot) error {
	// compare with the training
	parts, err := t.snapshotParts()
	if err != nil {
		return err
	}
	if err := s.checkSections(parts); err != nil {
		return err
	}
	streams, iterators, err := t.checkProgress(s.header.Progress)
	if err != nil {
		return err
	}

	// parameters
	for i, part := range parts {
		if err := part.store.SetState(s.sections[i]); err != nil {
			return fmt.Errorf("%s: %w", part.name, err)
		}
	}

	// sampler and weighting
	for _, part := range []struct {
		of   any
		from []byte
	}{{t.plan.Sampler, s.header.Sampler}, {t.plan.Weighting, s.header.Weighting}, {t.guard, s.header.Losses}} {
		if stateful, ok := part.of.(Stateful); ok {
			if err := stateful.UnmarshalBinary(part.from); err != nil {
				return fmt.Errorf("state of %T: %w", part.of, err)
			}
		}
	}

	// progress
	p := s.header.Progress
	t.state.Step, t.state.Epoch, t.state.Left, t.state.Last = p.Step, p.Epoch, slices.Clone(p.Left), p.Last
	t.used, t.serial, t.evaluated = p.Used, p.Serial, p.Evaluated
	t.sampling, t.weighing, t.iterators = streams[0], streams[1], iterators
	t.balance.restore(p.Balance)
	t.pending = nil // they were reported before the first step
	return nil
}

// compare returns an error that names the first setting that differs.
func compare(have, want []setting) error {
	for i, w := range want {
		switch {
		case i >= len(have) || have[i].Name != w.Name:
			return fmt.Errorf("%s not found; want %s", w.Name, w.Value)
		case have[i].Value != w.Value:
			return fmt.Errorf("it was taken with %s %s; the training has %s", w.Name, have[i].Value, w.Value)
		}
	}
	if len(have) > len(want) {
		return fmt.Errorf("unexpected %s", have[len(want)].Name)
	}
	return nil
}

// checkSections compares the kinds of parameters with those of a training.
func (s *Snapshot) checkSections(parts []snapshotPart) error {
	if len(s.sections) != len(parts) {
		return fmt.Errorf("it has %d kinds of parameters; the training has %d", len(s.sections), len(parts))
	}
	for i, part := range parts {
		if name := s.header.Sections[i].Name; name != part.name {
			return fmt.Errorf("unexpected parameters of kind %q; want %q", name, part.name)
		}
	}
	return nil
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
