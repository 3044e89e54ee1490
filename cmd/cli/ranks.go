package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/jenga-nlp/jenga/experiments/resume"
	"github.com/jenga-nlp/jenga/experiments/run"
	"github.com/jenga-nlp/jenga/internal/collective"
	"github.com/jenga-nlp/jenga/internal/kernel"
	"github.com/jenga-nlp/jenga/internal/mpi"
)

// Times of the messages by which the processes of a training know that the others are alive.
const (
	heartbeat = 2 * time.Second
	silence   = 25 * time.Second
)

// failing is the time in which the others fail too, where all have the error that one has.
const failing = 15 * time.Second

// ranks are the processes that a launcher has started to train together. The methods of nil are those of a single
// process.
type ranks struct {
	world  mpi.World
	group  *collective.Group
	rank   int
	local  int     // processes on this machine
	places []place // of each rank; nil: they are not known yet
	log    io.Writer

	failing time.Duration
	unwatch func() // nil: the others are not watched
}

// launch returns the processes of the training that a launcher has started this one of, nil if there is no other, or an
// error where a launcher has started several that cannot reach each other. threads is the flag --threads, 0 without it;
// log is that of the process.
func launch(threads int, log io.Writer) (*ranks, error) {
	launcher, ok := mpi.Launched()
	tasks := mpi.SlurmTasks()
	const alone = ", each of which would train by itself; want srun --mpi=pmix, or --mpi=pmi2 for MPICH"
	switch {
	case !ok && tasks > 1:
		return nil, fmt.Errorf("srun has started %d tasks without MPI"+alone, tasks)
	case !ok || launcher.Ranks == 1:
		return nil, nil
	case !mpi.Built:
		return nil, fmt.Errorf("%s has started this process as one of several, each of which would train by itself: %w",
			launcher.Name, mpi.ErrNotBuilt)
	}
	w, err := mpi.Start()
	if err != nil {
		return nil, err
	}
	if w.Ranks() == 1 {
		version := w.Version()
		w.Close()
		switch {
		case tasks > 1:
			return nil, fmt.Errorf("MPI has one process by %s, and srun has started %d tasks"+alone+"; %s names the "+
				"file of another MPI library", version, tasks, mpi.LibraryVariable)
		case launcher.Ranks > 1:
			return nil, fmt.Errorf("%s has started %d processes, which do not find each other by %s: name the "+
				"launcher's own MPI library by %s",
				launcher.Name, launcher.Ranks, version, mpi.LibraryVariable)
		}
		return nil, nil
	}
	return join(w, threads, log)
}

// join makes the processes of a world known to each other, and divides cores among those that share them, unless
// --threads is not 0.
func join(w mpi.World, threads int, log io.Writer) (*ranks, error) {
	r := &ranks{world: w, rank: w.Rank(), log: log, failing: failing}
	var err error
	if r.group, err = collective.New(w); err != nil { // in all of them
		if r.rank > 0 { // the first one reports what all have
			return r, silent{exitMistake}
		}
		return r, run.Agreed{Err: err}
	}
	own := here()
	if r.places, err = collective.Gather(r.group, own); err != nil {
		return r, err
	}
	sharing := 0 // this process is one of them
	for _, other := range r.places {
		if other.Host == own.Host {
			r.local++
		}
		if other.sharesCores(own) {
			sharing++
		}
	}
	divideCores(threads, sharing)
	r.unwatch = r.group.Watch(heartbeat, silence, r.lost)
	return r, nil
}

// lost ends all processes because one is silent.
func (r *ranks) lost(rank int) {
	fmt.Fprintf(r.log, "rank %d on %s has not answered for %v: training ends; jenga train --resume goes on from the "+
		"last checkpoint\n", rank, r.host(rank), silence)
	r.world.Abort(exitMistake)
}

func (r *ranks) host(rank int) string {
	if rank >= len(r.places) {
		return "unknown host"
	}
	return r.places[rank].Host
}

// first reports whether this process is the one that writes files and messages.
func (r *ranks) first() bool { return r == nil || r.rank == 0 }

func (r *ranks) use(ready *run.Run) error {
	if r == nil {
		return nil
	}
	return ready.UseRanks(r.group, r.local)
}

// agree returns an error in all processes if err is not nil in one of them. The first one returns those of all.
func (r *ranks) agree(err error) error {
	if r == nil {
		return err
	}
	text := ""
	if err = withFlags(err); err != nil {
		text = err.Error()
	}
	texts, gathered := collective.Gather(r.group, text)
	others := r.errorsOf(texts)
	switch {
	case gathered != nil:
		return errors.Join(err, gathered)
	case others == nil:
		return nil
	case r.rank > 0:
		return silent{exitMistake}
	}
	return run.Agreed{Err: cmp.Or(err, others)} // those of the others are most likely the same
}

// inTurn calls do in the first process, and after it in the others.
func (r *ranks) inTurn(do func() error) error {
	if r == nil {
		return do()
	}
	var err error
	if r.rank == 0 {
		err = do()
	}
	if err := r.agree(err); err != nil {
		return err
	}
	if r.rank > 0 {
		err = do()
	}
	return r.agree(err)
}

// ofFirst returns what do returns in the first process, in all of them.
func (r *ranks) ofFirst(do func() (string, error)) (text string, err error) {
	if r.first() {
		text, err = do()
	}
	if err := r.agree(err); err != nil || r == nil {
		return text, err
	}
	all, err := r.group.AllGather([]byte(text)) // which the others have none of
	if err != nil {
		return "", err
	}
	return string(all[0]), nil
}

// same returns an error in all processes if one of them has found another state of a run than the first.
func (r *ranks) same(found resume.Unfinished) error {
	own := fmt.Sprintf("%q %q %d %q", found.File, found.Checkpoint, found.State.Step, found.State.Ended)
	first, err := r.ofFirst(func() (string, error) { return own, nil })
	if err == nil && first != own {
		err = fmt.Errorf("%s: not the state of the run that rank 0 has found; want a folder that all machines share",
			found.Folder)
	}
	return r.agree(err)
}

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
	if known(err) && !errors.As(err, new(run.Agreed)) {
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

// place is where a process runs.
type place struct {
	Host  string `json:"host"`
	Cores []int  `json:"cores"` // that it may run on; nil: that is not known
}

func here() place {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return place{host, affinity()}
}

// sharesCores reports whether processes at two places may run on the same core.
func (p place) sharesCores(other place) bool {
	return p.Host == other.Host && (p.Cores == nil || other.Cores == nil ||
		slices.ContainsFunc(p.Cores, func(core int) bool { return slices.Contains(other.Cores, core) }))
}

// forMessages is the number of goroutines that run beside the kernels at once: the library's, and those that wait for
// messages.
const forMessages = 3

// divideCores makes this process use its cores divided by the number of processes that share them, or as many threads
// as --threads says, 0 without it.
func divideCores(threads, sharing int) {
	if threads == 0 { // GOMAXPROCS follows the affinity mask and the limits of a container
		kernel.SetThreads(max(1, runtime.GOMAXPROCS(0)/sharing))
	}
	// messages do not wait until kernels leave a processor
	runtime.GOMAXPROCS(max(runtime.GOMAXPROCS(0), kernel.Threads()+forMessages))
}
