package cli

import (
	"errors"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/experiments/run"
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
			found := run.Unfinished{Folder: "runs/a", Checkpoint: "runs/a/last"}
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
