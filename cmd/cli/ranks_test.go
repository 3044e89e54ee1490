package cli

import (
	"errors"
	"io"
	"os"
	"testing"

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
