package train

import (
	"slices"

	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/nn"
)

// moved returns the states of a snapshot for the parts of a training whose encoder may be in another memory than it
// was: with the encoder's parameters among the model's, or apart from them, as the parts have them.
func moved(parts []snapshotPart, states []snapshots.Kind) ([]snapshots.Kind, error) {
	isEncoder := func(k snapshots.Kind) bool { return k.Name == encoderPart }
	was := slices.IndexFunc(states, isEncoder)
	now := slices.IndexFunc(parts, func(p snapshotPart) bool { return p.name == encoderPart })
	if (was < 0) == (now < 0) || len(states) == 0 || states[0].Name != modelPart {
		return states, nil
	}
	all := slices.Clone(states[0].Params)
	if was >= 0 {
		all = append(all, states[was].Params...)
		states = slices.DeleteFunc(states, isEncoder)
	} else {
		own, rest, err := partOf(parts[now], all)
		if err != nil {
			return nil, err
		}
		all = rest
		states = slices.Insert(states, min(now, len(states)), snapshots.Kind{Name: encoderPart, Params: own})
	}
	own, rest, err := partOf(parts[0], all)
	states[0].Params = append(own, rest...) // what the training does not have is its misfit
	return states, err
}

// partOf divides the states of parameters into those of a part, in the part's order, and the others.
func partOf(part snapshotPart, all []nn.ParamState) (own, others []nn.ParamState, err error) {
	params, err := part.store.State()
	if err != nil {
		return nil, nil, err
	}
	of := map[string]nn.ParamState{}
	for _, p := range all {
		of[p.Name] = p
	}
	for _, p := range params {
		if state, ok := of[p.Name]; ok {
			own = append(own, state)
			delete(of, p.Name)
		}
	}
	for _, p := range all {
		if _, ok := of[p.Name]; ok {
			others = append(others, p)
		}
	}
	return own, others, nil
}
