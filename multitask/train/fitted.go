package train

import (
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/nn"
)

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

// frozenParams returns the encoder's parameters that do not learn, which no snapshot holds.
func frozenParams(m *multitask.Model) []*nn.Param {
	learns := func(w *nn.Param) bool { return !w.Frozen }
	return slices.DeleteFunc(slices.Clone(multitask.EncoderParams(m.Params).All()), learns)
}

func sumFrozen(m *multitask.Model) (sum string, err error) {
	if sum, err = snapshots.Sum(frozenParams(m)); err != nil {
		err = fmt.Errorf("the encoder's frozen parameters can no longer be read: %w", err)
	}
	return sum, err
}
