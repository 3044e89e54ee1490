package train

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/jenga-nlp/jenga/multitask"
	"github.com/jenga-nlp/jenga/multitask/snapshots"
	"github.com/jenga-nlp/jenga/nn"
)

// CompareRanks returns the first rank whose training differs from that of rank 0, in its settings, its examples or its
// parameters, and what differs: Was in rank 0, Now in that rank. All ranks call it, and have the same result; nil is no
// difference.
func (t *Training) CompareRanks() (rank int, differs *snapshots.Difference, err error) {
	if _, ranks := t.plan.Ranks.Rank(); ranks == 1 {
		return 0, nil, nil
	}
	sum, err := snapshots.Sum(t.model.Params.All())
	if err != nil {
		return 0, nil, fmt.Errorf("parameters can no longer be read: %w", err)
	}
	own, err := json.Marshal(append(slices.Clone(t.Settings()),
		snapshots.Setting{Key: "a checksum of all parameters", Value: sum}))
	if err != nil {
		return 0, nil, err
	}
	all, err := t.plan.Ranks.AllGather(own)
	if err != nil {
		return 0, nil, err
	}
	var first []snapshots.Setting
	for rank, text := range all {
		var of []snapshots.Setting
		if err := json.Unmarshal(text, &of); err != nil {
			return 0, nil, fmt.Errorf("the settings of rank %d: %w", rank, err)
		}
		if rank == 0 {
			first = of
		}
		if found := snapshots.Differences(first, of); len(found) > 0 {
			// the number of steps follows from the data
			cause := slices.IndexFunc(found, func(d snapshots.Difference) bool { return d.Of != snapshots.OfSteps })
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
	if sum, err = snapshots.Sum(frozenParams(m)); err != nil {
		err = fmt.Errorf("the encoder's frozen parameters can no longer be read: %w", err)
	}
	return sum, err
}
