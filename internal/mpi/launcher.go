package mpi

import (
	"os"
	"strconv"
	"strings"
)

// Launcher is what a launcher's environment says about the processes that it has started.
type Launcher struct {
	Name  string // of the program or the interface
	Ranks int    // number of processes, 0: the environment does not say it
}

// Names of launchers.
const (
	openMPI = "Open MPI's mpirun"
	pmi     = "mpiexec (PMI)"
	pmix    = "a launcher with PMIx"
)

// Launched returns the launcher that has started this process as one of several. srun without a PMI plugin is not one:
// see SlurmTasks.
func Launched() (l Launcher, ok bool) {
	for _, known := range []struct{ name, ranks string }{
		{openMPI, "OMPI_COMM_WORLD_SIZE"},
		{pmi, "PMI_SIZE"},
	} {
		if value, ok := os.LookupEnv(known.ranks); ok {
			n, _ := strconv.Atoi(value)
			return Launcher{known.name, n}, true
		}
	}
	if _, ok := os.LookupEnv("PMIX_RANK"); !ok {
		return Launcher{}, false
	}
	// PMIx has no variable for the number. In a step of Slurm's plugin it is that of the tasks, but not among the
	// processes that prterun starts within a step.
	if strings.HasPrefix(os.Getenv("PMIX_NAMESPACE"), "prte") {
		return Launcher{pmix, 0}, true
	}
	return Launcher{pmix, SlurmTasks()}, true
}

// SlurmTasks returns the number of tasks of the Slurm step that the process belongs to, 0 outside of one.
func SlurmTasks() int {
	n, _ := strconv.Atoi(os.Getenv("SLURM_STEP_NUM_TASKS"))
	return n
}
