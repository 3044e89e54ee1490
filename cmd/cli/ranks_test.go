package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jenga-nlp/jenga/experiments/events"
	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/collective/collectivetest"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/internal/mpi"
)

// A single task of a Slurm step trains as any process does, also in a jenga without MPI.
func TestLaunchInASlurmStep(t *testing.T) {
	if mpi.Built {
		t.Skip("with MPI, several tasks connect to each other")
	}
	for _, name := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_NAMESPACE"} {
		t.Setenv(name, "") // restores it
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PMIX_RANK", "0") // of srun where MpiDefault is pmix
	for tasks, want := range map[string]error{"1": nil, "2": mpi.ErrNotBuilt} {
		t.Setenv("SLURM_STEP_NUM_TASKS", tasks)
		if r, err := launch(0, io.Discard); r != nil || !errors.Is(err, want) {
			t.Errorf("%s tasks: %v, %v; want no ranks and %v", tasks, r, err, want)
		}
	}
}

// Processes that join know of each other, and keep the number of threads of --threads.
func TestRanksJoin(t *testing.T) {
	t.Cleanup(func() { kernel.SetThreads(0) })
	kernel.SetThreads(3)
	var wait sync.WaitGroup
	for rank, transport := range collectivetest.Local(4) {
		wait.Go(func() {
			r, err := join(&world{Transport: transport}, 3, io.Discard)
			if err != nil || r.rank != rank || r.local != 4 || len(r.places) != 4 || kernel.Threads() != 3 {
				t.Errorf("rank %d: %+v, %d threads, %v; want 4 local ranks, 3 threads", rank, r, kernel.Threads(), err)
				return
			}
			r.unwatch()
		})
	}
	wait.Wait()
	wrong, err := join(&world{Transport: collectivetest.Local(3)[1]}, 3, io.Discard)
	if err = wrong.end(err); !errors.As(err, new(silent)) {
		t.Errorf("3 ranks: %v; the first one reports", err)
	}
}

// What the first process decides counts for all, whatever the others would find.
func TestTheFirstRankDecides(t *testing.T) {
	all := ranksOf(t, 4)
	var wait sync.WaitGroup
	for rank, r := range all {
		wait.Go(func() {
			text, err := r.ofFirst(func() (string, error) { return strconv.Itoa(rank), nil })
			if err != nil || text != "0" {
				t.Errorf("rank %d: %q, %v, want 0", rank, text, err)
			}
			_, err = r.ofFirst(func() (string, error) { return "", usageErrorf("a mistake") })
			if status := writeError(io.Discard, err); status != exitUsage && rank == 0 || err == nil {
				t.Errorf("rank %d: %v", rank, err)
			}

			// states of a run that differ are an error of all
			found := resume.Unfinished{Folder: "runs/a", Checkpoint: "runs/a/last"}
			if err := r.same(found); err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
			if rank == 2 {
				found.Checkpoint = ""
			}
			err = r.same(found)
			if rank == 0 && (err == nil || !strings.HasPrefix(err.Error(), "rank 2 on host2: runs/a: not the state")) ||
				rank > 0 && !errors.As(err, new(silent)) {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	wait.Wait()
	alone := func() (string, error) { return "alone", nil }
	if text, err := (*ranks)(nil).ofFirst(alone); text != "alone" || err != nil {
		t.Errorf("a single process: %q, %v", text, err)
	}
}

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
	stopped := interruption{events.Ended{Err: context.Canceled}}
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

func TestProcessesThatShareCoresDivideThem(t *testing.T) {
	t.Cleanup(func() { kernel.SetThreads(0) })
	for _, test := range []struct{ threads, sharing, want int }{
		{0, 1, 8}, {0, 2, 4}, {0, 3, 2}, {0, 16, 1},
		{3, 1, 3}, {3, 2, 3}, // --threads is that of each process
	} {
		kernel.SetThreads(test.threads)
		if test.threads == 0 {
			runtime.GOMAXPROCS(8)
		}
		divideCores(test.threads, test.sharing)
		if got := kernel.Threads(); got != test.want {
			t.Errorf("--threads %d, 8 cores of %d processes: %d threads, want %d", test.threads, test.sharing, got,
				test.want)
		}
		if got := runtime.GOMAXPROCS(0); got < test.want+forMessages {
			t.Errorf("--threads %d, 8 cores of %d processes: GOMAXPROCS %d leaves none for messages", test.threads,
				test.sharing, got)
		}
	}
}

func TestPinnedProcessesShareNoCores(t *testing.T) {
	all := []place{
		{"a", []int{0, 1, 2, 3}}, {"a", []int{4, 5, 6, 7}}, {"a", []int{3}}, {"a", nil},
		{"b", []int{0, 1, 2, 3}}, {"b", nil},
	}
	want := [][]int{{0, 2, 3}, {1, 3}, {0, 2, 3}, {0, 1, 2, 3}, {4, 5}, {4, 5}}
	var decoded []place // as processes send them
	text, err := json.Marshal(all)
	if err := errors.Join(err, json.Unmarshal(text, &decoded)); err != nil {
		t.Fatal(err)
	}
	for i, p := range all {
		var sharing []int
		for j, other := range decoded {
			if p.sharesCores(other) {
				sharing = append(sharing, j)
			}
		}
		if !slices.Equal(sharing, want[i]) {
			t.Errorf("%v shares cores with places %v, want %v", p, sharing, want[i])
		}
	}
	if own := here(); runtime.GOOS == "linux" && (len(own.Cores) == 0 || len(own.Cores) != runtime.NumCPU()) {
		t.Errorf("the cores of this process are %v; want %d", own.Cores, runtime.NumCPU())
	}
}
