package mpi

import (
	"os"
	"strconv"
)

// Launcher is what a launcher's environment says about the processes that it has started.
type Launcher struct {
	Name  string // of the program or the interface
	Ranks int    // number of processes, 0: the environment does not say it
	Local int    // number of those on this machine, 0: the environment does not say it
}

// launchers are the environment variables of launchers: the number of processes, and that on this machine.
var launchers = []struct{ name, ranks, local string }{
	{"Open MPI's mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"},
	{"mpiexec (PMI)", "PMI_SIZE", "MPI_LOCALNRANKS"},
	{"a launcher with PMIx", "PMIX_RANK", ""},
}

// Launched returns the launcher that has started this process as one of several. srun without a PMI plugin is not one:
// see Slurm.
func Launched() (l Launcher, ok bool) {
	for _, known := range launchers {
		value, set := os.LookupEnv(known.ranks)
		if !set {
			continue
		}
		l.Name = known.name
		if known.ranks != "PMIX_RANK" {
			l.Ranks, _ = strconv.Atoi(value)
		}
		l.Local, _ = strconv.Atoi(os.Getenv(known.local))
		return l, true
	}
	return l, false
}

// SlurmTasks returns the number of tasks of the Slurm step that the process belongs to, 0 outside of one.
func SlurmTasks() int {
	n, _ := strconv.Atoi(os.Getenv("SLURM_STEP_NUM_TASKS"))
	return n
}
