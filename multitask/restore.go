package multitask

import (
	"fmt"
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
	at, err := t.position(s.header.Progress)
	misfits.add(OfPosition, err)
	if err := misfits.err(); err != nil {
		return err
	}
	t.goTo(at)
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
