package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jenga-nlp/jenga/experiments/run"
)

// end ends the connection to the others after the training in this process, which returned err, and returns the error
// of the command. The first process writes the errors of all when all have ended: before that none exits, since
// launchers end all processes when one exits with an error. Where the others do not end, they are ended.
func (r *ranks) end(err error) error {
	switch {
	case r == nil:
		return err
	case r.group == nil: // all have the same error
		status := writeError(r.log, err)
		r.world.Close()
		return silent{status}
	}

	// an error that the others may not have is one of all if they end by it too
	limit := time.Duration(0)
	if !known(err) {
		limit = r.failing
	}
	status, failed := r.group.Meet(ownText(err), limit, func(texts []string) int {
		return writeError(r.log, r.together(err, texts))
	})
	if failed != nil {
		fmt.Fprintf(r.log, "rank %d on %s: %v\n", r.rank, r.host(r.rank), cmp.Or(err, failed))
		r.world.Abort(exitMistake)
	}

	if status != 0 { // messages may be under way that no process receives
		late := time.AfterFunc(r.failing, func() { r.world.Abort(status) })
		defer late.Stop()
	}
	if r.unwatch != nil {
		r.unwatch()
	}
	r.world.Close()
	if status == 0 {
		return nil
	}
	return silent{status}
}

// known reports whether all processes end where one does with an error, if any.
func known(err error) bool {
	return err == nil || interrupted(err) || errors.Is(err, run.ErrElsewhere) || errors.As(err, new(silent)) ||
		errors.As(err, new(run.Agreed))
}

func interrupted(err error) bool {
	return errors.Is(err, context.Canceled) || errors.As(err, new(interruption))
}

// ownText returns the text of an error that the process has by itself, "" for one by which the others ended it.
func ownText(err error) string {
	if err == nil || interrupted(err) || errors.Is(err, run.ErrElsewhere) || errors.As(err, new(silent)) {
		return ""
	}
	return err.Error()
}

// together returns the error of all processes: the first one's own, or those of the others.
func (r *ranks) together(err error, texts []string) error {
	others := r.errorsOf(texts)
	switch {
	case others == nil:
		return err
	case err == nil:
		return others
	case errors.Is(err, run.ErrElsewhere):
		return fmt.Errorf("%w\n%w", err, others)
	case interrupted(err):
		fmt.Fprintln(r.log, others)
	}
	return err // those of the others are most likely the same
}

// errorsOf returns an error of texts by rank, "" for none, nil if there is none. It has equal ones once.
func (r *ranks) errorsOf(texts []string) error {
	var all []error
	for rank, text := range texts {
		if text != "" && !slices.Contains(texts[:rank], text) {
			all = append(all, fmt.Errorf("rank %d on %s: %s", rank, r.host(rank), text))
		}
	}
	return errors.Join(all...)
}

// silent is the error of a process whose error is written already.
type silent struct{ status int }

func (s silent) Error() string { return fmt.Sprintf("exit status %d", s.status) }
