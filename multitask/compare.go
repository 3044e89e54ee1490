package multitask

import (
	"encoding/json"
	"fmt"
	"slices"
)

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
