package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"maps"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/jenga-nlp/jenga/internal/files"
	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/nn"
)

// Attach adds bytes of the caller to the snapshot, which WriteTo writes and Attached returns. The snapshot keeps them.
func (s *Snapshot) Attach(b []byte) { s.header.Attached = b }

// Attached returns what was attached to the snapshot.
func (s *Snapshot) Attached() []byte { return s.header.Attached }

// Difference is a setting on which the bytes of a training depend, and which a snapshot has another value of.
type Difference struct {
	Name     string
	Was, Now string // in the snapshot, in the training; "": it has no such setting
	Of       DifferenceKind
}

// err returns the difference as an error.
func (d Difference) err() error {
	switch {
	case d.Was == "":
		return fmt.Errorf("%s not found; want %s", d.Name, d.Now)
	case d.Now == "":
		return fmt.Errorf("unexpected %s", d.Name)
	}
	return fmt.Errorf("it was taken with %s %s; the training has %s", d.Name, d.Was, d.Now)
}

// DifferenceKind is what a Difference is of.
type DifferenceKind int

// Kinds of differences.
const (
	OfSetting      DifferenceKind = iota // another setting
	OfSteps                              // the number of updates, which follows from the plan and the data
	OfTrainingData                       // the training examples of a group of tasks
	OfDevData                            // its dev examples
)

// kindOfDifference returns the kind of a setting by its name.
func kindOfDifference(name string) DifferenceKind {
	switch {
	case name == stepsSetting:
		return OfSteps
	case strings.HasPrefix(name, trainingData):
		return OfTrainingData
	case strings.HasPrefix(name, devData):
		return OfDevData
	}
	return OfSetting
}

// Differences returns the settings of which the snapshot and the training have other values, in the training's order.
func (t *Training) Differences(s *Snapshot) []Difference {
	return differencesOf(s.header.Of, t.settings())
}

// differencesOf returns the settings that were, and are now, of other values, in the order of those that are now.
func differencesOf(were, are []setting) []Difference {
	was := map[string]string{}
	for _, of := range were {
		was[of.Name] = of.Value
	}
	var all []Difference
	add := func(name, was, now string) {
		all = append(all, Difference{name, was, now, kindOfDifference(name)})
	}
	for _, now := range are {
		if before := was[now.Name]; before != now.Value {
			add(now.Name, before, now.Value)
		}
		delete(was, now.Name)
	}
	for _, of := range were { // those that are no more
		if before, left := was[of.Name]; left {
			add(of.Name, before, "")
		}
	}
	return all
}

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

// CompareRanks returns the first rank whose training differs from that of rank 0, in its settings, its examples or its
// parameters, and what differs: Was in rank 0, Now in that rank. All ranks call it, and have the same result; nil is no
// difference.
func (t *Training) CompareRanks() (rank int, differs *Difference, err error) {
	if t.plan.Ranks == nil {
		return 0, nil, nil
	}
	sum, err := sumParams(t.model.Params.All())
	if err != nil {
		return 0, nil, fmt.Errorf("parameters can no longer be read: %w", err)
	}
	own, err := json.Marshal(append(slices.Clone(t.settings()), setting{"a checksum of all parameters", sum}))
	if err != nil {
		return 0, nil, err
	}
	all, err := t.plan.Ranks.AllGather(own)
	if err != nil {
		return 0, nil, err
	}
	var first []setting
	for rank, text := range all {
		var of []setting
		if err := json.Unmarshal(text, &of); err != nil {
			return 0, nil, fmt.Errorf("the settings of rank %d: %w", rank, err)
		}
		if rank == 0 {
			first = of
		}
		if found := differencesOf(first, of); len(found) > 0 {
			// the number of steps follows from the data
			cause := slices.IndexFunc(found, func(d Difference) bool { return d.Of != OfSteps })
			return rank, &found[max(0, cause)], nil
		}
	}
	return 0, nil, nil
}

// FrozenParams is the proof that a training has left the encoder's frozen parameters as they were.
type FrozenParams struct {
	Values        int    // their number
	Before, After string // CRC-32C of their values before and after training, in hexadecimal
}

// CheckFrozen returns the checksums of the encoder's frozen parameters before training and now, or an error if they
// differ.
func (t *Training) CheckFrozen() (FrozenParams, error) {
	proof := FrozenParams{Before: t.frozenSum}
	for _, w := range frozenParams(t.model.Model) {
		proof.Values += len(w.Data)
	}
	var err error
	if proof.After, err = sumFrozen(t.model.Model); err != nil {
		return proof, err
	}
	if proof.After != proof.Before {
		return proof, fmt.Errorf("the encoder's frozen parameters have changed in training: their CRC-32C was %s, it "+
			"is %s", proof.Before, proof.After)
	}
	return proof, nil
}

// frozenParams returns the encoder's parameters that do not learn, which no snapshot holds.
func frozenParams(m *multitask.Model) []*nn.Param {
	var all []*nn.Param
	for _, w := range multitask.EncoderParams(m.Params).All() {
		if w.Frozen {
			all = append(all, w)
		}
	}
	return all
}

// sumFrozen returns a checksum of the encoder's frozen parameters.
func sumFrozen(m *multitask.Model) (sum string, err error) {
	if sum, err = sumParams(frozenParams(m)); err != nil {
		err = fmt.Errorf("the encoder's frozen parameters can no longer be read: %w", err)
	}
	return sum, err
}

// sumParams returns a checksum of the values of parameters, which may be those of a file: reading them is a fault if
// the file was truncated.
func sumParams(params []*nn.Param) (sum string, err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		r := recover()
		if _, fault := r.(interface{ Addr() uintptr }); fault {
			err = errors.New("their file was truncated")
		} else if r != nil {
			panic(r)
		}
	}()
	out := &summed{to: io.Discard, sum: crc32.New(files.CRC32C)}
	for _, w := range params {
		out.floats(w.Data)
	}
	return fmt.Sprintf("%08x", out.sum.Sum32()), nil
}
