package run

import (
	"time"

	"github.com/jenga-nlp/jenga/multitask"
)

// saves reports whether a snapshot is saved after an event that has not been recorded, or with nil at the end. It
// decides so.
func (c *checkpointer) saves(event any) bool {
	switch e := event.(type) {
	case nil:
		return c.savesState() && !c.bests.hasBest()
	case multitask.Step:
		due := !c.training.Due() && c.dueAfter(c.last, e)
		c.decided = &due
		return due
	}
	return c.savesState()
}

// dueAfter reports whether save_strategy saves after a step, the one that follows before.
func (c *checkpointer) dueAfter(before, step multitask.Step) bool {
	switch t := c.run.experiment().Training; t.SaveStrategy {
	case "epoch":
		return int(step.Epoch) > int(before.Epoch)
	case "steps":
		return step.Number%t.SaveSteps == 0
	case "minutes":
		return time.Since(c.begun.time).Minutes() >= t.SaveMinutes
	}
	return false
}
