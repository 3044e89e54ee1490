package multitask

import "strings"

// Attach adds bytes of the caller to the snapshot, which WriteTo writes and Attached returns. The snapshot keeps them.
func (s *Snapshot) Attach(b []byte) { s.header.Attached = b }

// Attached returns what was attached to the snapshot.
func (s *Snapshot) Attached() []byte { return s.header.Attached }

// Difference is a setting on which the bytes of a training depend, and which a snapshot has another value of.
type Difference struct {
	Name     string
	Was, Now string // in the snapshot, in the training; "": it has no such setting
	Data     bool   // it is the examples of a task
}

// Differences returns the settings of which the snapshot and the training have other values, in the training's order.
func (t *Training) Differences(s *Snapshot) []Difference {
	was := map[string]string{}
	for _, of := range s.header.Of {
		was[of.Name] = of.Value
	}
	var all []Difference
	add := func(name, was, now string) {
		data := strings.HasPrefix(name, TrainingData) || strings.HasPrefix(name, devData)
		all = append(all, Difference{name, was, now, data})
	}
	for _, now := range t.settings() {
		if before := was[now.Name]; before != now.Value {
			add(now.Name, before, now.Value)
		}
		delete(was, now.Name)
	}
	for _, of := range s.header.Of { // those that the training lacks
		if before, left := was[of.Name]; left {
			add(of.Name, before, "")
		}
	}
	return all
}
