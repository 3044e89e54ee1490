package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/jenga-nlp/jenga/experiments/report"
)

// mergeEnded returns the error of a merge that has ended before its heads were trained again. After an interruption it
// writes what is left.
func (c *commands) mergeEnded(f mergeFlags, err error, left string) error {
	if !errors.Is(err, context.Canceled) {
		return err
	}
	fmt.Fprintln(c.log, left)
	return c.mergeInterrupted(f, report.Ended{Err: err})
}

// mergedAlone describes the merged run that is left where a merge was interrupted after it was written.
func mergedAlone(f mergeFlags) string {
	if f.refit {
		return fmt.Sprintf("the merged run without --refit is in %s; the same command with --force starts again", f.out)
	}
	return "the merged run is in " + f.out + "; jenga eval has its metrics"
}

// refitEnded returns the error of a merged run whose heads were not trained to the end, with what is left and how to go
// on.
func (c *commands) refitEnded(f mergeFlags, done report.Done, err error) error {
	switch ended := (report.Ended{Done: done, Err: err}); {
	case errors.Is(err, context.Canceled) && done.Resume == "" && ended.Failure() == nil:
		return c.mergeEnded(f, err, mergedAlone(f))
	case errors.Is(err, context.Canceled):
		return c.mergeInterrupted(f, ended)
	case done.Checkpoint() != "" || done.Resume != "":
		return fmt.Errorf("%w\ntraining ended %s", err, leftBy(done)+changing(err, done))
	}
	return fmt.Errorf("%w\nthe merged run without --refit is in %s", err, f.out)
}

// mergeInterrupted returns the error of a merge that a signal has ended. With --json it writes the event that train
// writes.
func (c *commands) mergeInterrupted(f mergeFlags, ended report.Ended) error {
	if f.json {
		writeLine(c.out, report.Line(ended)) // if stdout is what has failed, ended says so
	}
	if ended.Folder == "" {
		return ended.Err
	}
	return interruption{ended}
}
