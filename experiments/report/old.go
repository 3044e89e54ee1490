package report

import "github.com/jenga-nlp/jenga/multitask"

// OldHead is what a head of a task of the base run has lost or gained on dev by a training.
type OldHead struct {
	Task   string  `json:"task"`
	Head   string  `json:"head"`
	Metric string  `json:"metric"` // the main one
	Before float64 `json:"before"` // training
	After  float64 `json:"after"`  // in the best checkpoint
	// Measured says that After is known: a training that ended early has none.
	Measured bool `json:"measured"`
}

// OldHeads returns the heads of an evaluation before training, where the main metric is defined.
func OldHeads(before []multitask.GroupMetrics) []OldHead {
	var all []OldHead
	for _, g := range before {
		for _, task := range g.Tasks {
			for _, head := range task.Heads {
				if len(head.Metrics) > 0 && !head.Metrics[0].Undefined {
					m := head.Metrics[0]
					all = append(all, OldHead{Task: task.Task, Head: head.Head, Metric: m.Name, Before: m.Value})
				}
			}
		}
	}
	return all
}

// After returns all with the main metrics of a later evaluation.
func After(all []OldHead, after []multitask.GroupMetrics) []OldHead {
	now := OldHeads(after)
	var measured []OldHead
	for _, h := range all {
		h.Measured = false
		for _, n := range now {
			if n.Task == h.Task && n.Head == h.Head && n.Metric == h.Metric {
				h.After, h.Measured = n.Before, true
			}
		}
		measured = append(measured, h)
	}
	return measured
}

// oldLine is the JSON of an OldHead.
type oldLine struct {
	Metric string  `json:"metric"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
	Change float64 `json:"change"`
}

// oldLines returns the JSON of old heads by task and head, nil for none.
func oldLines(old []OldHead) map[string]map[string]oldLine {
	var lines map[string]map[string]oldLine
	for _, h := range old {
		switch {
		case !h.Measured:
			continue
		case lines == nil:
			lines = map[string]map[string]oldLine{}
		}
		if lines[h.Task] == nil {
			lines[h.Task] = map[string]oldLine{}
		}
		lines[h.Task][h.Head] = oldLine{h.Metric, h.Before, h.After, h.After - h.Before}
	}
	return lines
}
