package multitask

import (
	"fmt"
	"strings"
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
