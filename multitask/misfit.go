package multitask

import (
	"maps"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/nn"
)

// What of a snapshot a Misfit may be of.
const (
	OfParams    = "parameters"
	OfOrder     = "order of parameters"
	OfTasks     = "tasks" // what is known of the losses of their heads
	OfOptimizer = "optimizer"
	OfSampler   = "sampler"
	OfWeighting = "weighting"
	OfPosition  = "position" // in the steps and the data
)

// Misfit says why a part of a snapshot cannot be the state of a training.
type Misfit struct {
	Of string // OfParams, …
	// Params names parameters: of OfParams, those that one of the two lacks, or has in another size; of OfOrder, the
	// first two that are at one place.
	Params []string
	Err    error
}

// Misfits is the error of a snapshot that a training cannot continue whatever may differ: all that does not fit.
type Misfits []Misfit

// Error implements error.
func (m Misfits) Error() string {
	var all []string
	for _, one := range m {
		all = append(all, one.Err.Error())
	}
	return strings.Join(all, "; ")
}

// add adds a Misfit if err is not nil.
func (m *Misfits) add(of string, err error, params ...string) {
	if err != nil {
		*m = append(*m, Misfit{of, params, err})
	}
}

// err returns the misfits as an error, nil if there are none.
func (m Misfits) err() error {
	if len(m) == 0 {
		return nil
	}
	return m
}

// otherParams returns the names of parameters that only params or only a state has, or that have other sizes there.
func otherParams(params []*nn.Param, state []nn.ParamState) []string {
	sizes := map[string]int{}
	for _, p := range state {
		sizes[p.Name] = len(p.Values)
	}
	others := map[string]bool{}
	for _, w := range params {
		if size, both := sizes[w.Name]; !both || size != len(w.Data) {
			others[w.Name] = true
		}
		delete(sizes, w.Name)
	}
	for name := range sizes {
		others[name] = true
	}
	return slices.Sorted(maps.Keys(others))
}

// otherOrder returns the names of the first parameters of a training and of a state that differ at one place, none if
// both have the same order.
func otherOrder(params []*nn.Param, state []nn.ParamState) []string {
	for i, w := range params[:min(len(params), len(state))] {
		if name := state[i].Name; name != w.Name {
			return []string{name, w.Name}
		}
	}
	return nil
}

// params returns the parameters, if they are known here.
func (p snapshotPart) params() (params []*nn.Param, known bool) {
	switch store := p.store.(type) {
	case *nn.HostStore:
		return store.Params(), true
	case fitted:
		return store, true
	}
	return nil, false
}
