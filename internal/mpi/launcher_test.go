package mpi

import (
	"os"
	"testing"
)

// launchedBy makes the environment that of a launcher.
func launchedBy(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, name := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "PMIX_NAMESPACE",
		"SLURM_STEP_NUM_TASKS"} {
		t.Setenv(name, "") // restores it
		if value, ok := variables[name]; ok {
			t.Setenv(name, value)
		} else if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLaunched(t *testing.T) {
	for _, test := range []struct {
		how       string
		variables map[string]string
		want      Launcher
		ok        bool
	}{
		{"without a launcher", nil, Launcher{}, false},
		{"mpirun -n 4 of Open MPI", map[string]string{"OMPI_COMM_WORLD_SIZE": "4", "PMIX_RANK": "1"},
			Launcher{openMPI, 4}, true},
		{"mpiexec -n 2 of MPICH", map[string]string{"PMI_SIZE": "2"}, Launcher{pmi, 2}, true},
		{"srun -n 4, no plugin", map[string]string{"SLURM_STEP_NUM_TASKS": "4"}, Launcher{}, false},
		{"srun -n 4 --mpi=pmi2", map[string]string{"PMI_SIZE": "4", "SLURM_STEP_NUM_TASKS": "4"},
			Launcher{pmi, 4}, true},
		{"srun -n 4 --mpi=pmix", map[string]string{"PMIX_RANK": "0", "PMIX_NAMESPACE": "slurm.pmix.7.0",
			"SLURM_STEP_NUM_TASKS": "4"}, Launcher{pmix, 4}, true},
		{"srun -n 1 --mpi=pmix", map[string]string{"PMIX_RANK": "0", "PMIX_NAMESPACE": "slurm.pmix.7.0",
			"SLURM_STEP_NUM_TASKS": "1"}, Launcher{pmix, 1}, true},
		{"prterun in a step of one task", map[string]string{"PMIX_RANK": "0", "PMIX_NAMESPACE": "prterun-a-77@1",
			"SLURM_STEP_NUM_TASKS": "1"}, Launcher{pmix, 0}, true},
		{"prterun", map[string]string{"PMIX_RANK": "0", "PMIX_NAMESPACE": "prterun-a-77@1"},
			Launcher{pmix, 0}, true},
	} {
		launchedBy(t, test.variables)
		if got, ok := Launched(); got != test.want || ok != test.ok {
			t.Errorf("%s: %+v %v, want %+v %v", test.how, got, ok, test.want, test.ok)
		}
	}
}
