package dataset

import "github.com/jenga-nlp/jenga/experiments/config"

// Counts are the numbers of a split's examples for one head.
type Counts struct {
	Examples int `json:"examples"`
	Labelled int `json:"labelled"` // examples with a target for the head
	Labels   int `json:"labels"`   // different labels of these; 0 where the output has none
}

// Count counts the examples of a split for head number h of a group.
func (d *Dataset) Count(group *Group, h int, split string) Counts {
	if group.Stream != nil && split == config.Train {
		of := group.train.heads[h]
		return Counts{group.train.examples, of.labelled, len(of.labels)}
	}
	kind, labels := d.Tasks[d.Heads(group)[h].Number].Output(), map[string]bool{}
	c := Counts{Examples: len(group.Examples[split])}
	for _, e := range group.Examples[split] {
		if e.Targets[h] != nil {
			c.Labelled++
		}
		if kind.HasLabels {
			kind.Names(e.Targets[h], func(name *string) { labels[*name] = true })
		}
	}
	c.Labels = len(labels)
	return c
}
