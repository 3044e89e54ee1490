package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/report"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/collective/collectivetest"
)

// world is a mpi.World of ranks in one process. Abort ends its goroutine.
type world struct {
	*collectivetest.Transport
	aborted int
	closed  bool
}

func (w *world) Version() string { return "a library of tests" }
func (w *world) Close()          { w.closed = true }

func (w *world) Abort(status int) {
	w.aborted = status
	runtime.Goexit()
}

// ranksOf returns ranks in one process.
func ranksOf(t *testing.T, n int) []*ranks {
	t.Helper()
	var all []*ranks
	var places []place
	for rank, transport := range collectivetest.Local(n) {
		group, err := collective.New(transport)
		if err != nil {
			t.Fatal(err)
		}
		places = append(places, place{Host: fmt.Sprint("host", rank)})
		all = append(all, &ranks{world: &world{Transport: transport}, group: group, rank: rank, log: io.Discard,
			failing: 200 * time.Millisecond})
	}
	for _, r := range all {
		r.places = places
	}
	return all
}

// ended is how one rank ends.
type ended struct {
	log     bytes.Buffer
	status  int // of the process
	aborted int // the status by which it has ended all others
	closed  bool
}

// end ends ranks by the errors that their functions return; one without a function does not end.
func end(t *testing.T, errs []func() error) []*ended {
	t.Helper()
	var all []*ended
	var wait sync.WaitGroup
	for rank, r := range ranksOf(t, len(errs)) {
		e, w := &ended{}, r.world.(*world)
		r.log = &e.log
		if all = append(all, e); errs[rank] == nil {
			continue
		}
		wait.Go(func() {
			defer func() { e.aborted, e.closed = w.aborted, w.closed }() // after Abort too
			e.status = writeError(&e.log, r.end(errs[rank]()))
		})
	}
	wait.Wait()
	return all
}

func TestRanksEndTogether(t *testing.T) {
	fails := func(text string) func() error { return func() error { return errors.New(text) } }
	late := func(err error) func() error { // after the time in which others fail
		return func() error {
			time.Sleep(400 * time.Millisecond)
			return err
		}
	}
	now := func(err error) func() error { return func() error { return err } }
	stopped := interruption{report.Ended{Err: context.Canceled}}
	for _, test := range []struct {
		what   string
		errs   []func() error
		log    string // of the first process; the others write nothing
		status int    // of all
	}{
		{"no error", []func() error{late(nil), now(nil), now(nil), now(nil)}, "", 0},
		{"the same error", []func() error{fails("the loss is NaN"), fails("the loss is NaN")}, "the loss is NaN\n",
			exitMistake},
		{"a mistake of all in flags", []func() error{now(usageErrorf("--set a")), now(usageErrorf("--set a"))},
			"--set a\n", exitUsage},
		{"errors of the others", []func() error{now(nil), fails("disk full"), fails("disk full"), fails("no memory")},
			"rank 1 on host1: disk full\nrank 3 on host3: no memory\n", exitMistake},
		{"an error that another has", []func() error{late(run.ErrElsewhere), now(run.ErrElsewhere),
			now(run.Agreed{Err: errors.New("disk full")}), now(run.ErrElsewhere)},
			run.ErrElsewhere.Error() + "\nrank 2 on host2: disk full\n", exitMistake},
		{"a signal, while the first process saves", []func() error{late(stopped), now(stopped)},
			stopped.Error() + "\n", exitInterrupted},
		{"errors that are written", []func() error{now(run.Agreed{Err: errors.New("no such file")}),
			now(silent{exitMistake})}, "no such file\n", exitMistake},
	} {
		for rank, got := range end(t, test.errs) {
			want := ""
			if rank == 0 {
				want = test.log
			}
			if got.log.String() != want || got.status != test.status || !got.closed || got.aborted != 0 {
				t.Errorf("%s: rank %d: status %d, wrote %q, closed: %v, aborted by %d; want status %d and %q",
					test.what, rank, got.status, &got.log, got.closed, got.aborted, test.status, want)
			}
		}
	}
}

// An error that one process has alone ends the others, which never end by themselves.
func TestARankThatFailsAloneEndsTheOthers(t *testing.T) {
	errs := make([]func() error, 4)
	errs[2] = func() error { return errors.New("disk full") }
	got := end(t, errs)[2]
	if want := "rank 2 on host2: disk full\n"; got.log.String() != want || got.aborted != exitMistake || got.closed {
		t.Errorf("wrote %q, aborted by %d, closed: %v; want %q", &got.log, got.aborted, got.closed, want)
	}
}

// The machines are not known where the processes could not exchange their names.
func TestTheHostOfARankThatIsNotKnown(t *testing.T) {
	if got := (&ranks{}).errorsOf([]string{"", "a"}).Error(); !strings.HasPrefix(got, "rank 1 on unknown host: a") {
		t.Error(got)
	}
}
