//go:build mpi && linux && (amd64 || arm64)

package mpi

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// The libraries beside a launcher come before those that the linker finds, and the launcher's kind before others.
func TestCandidates(t *testing.T) {
	prefix := t.TempDir()
	for _, file := range []string{"bin/mpiexec", "lib/libmpi.so.12", "lib/libmpi.so.40"} {
		file = filepath.Join(prefix, file)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", filepath.Join(prefix, "bin"))
	t.Setenv(LibraryVariable, "")
	mpich := []string{filepath.Join(prefix, "lib/libmpi.so.12"), "libmpi.so.12", "libmpi_abi.so.1", "libmpich.so.12"}
	open := []string{filepath.Join(prefix, "lib/libmpi.so.40"), "libmpi.so.40"}
	for variable, want := range map[string][]string{
		"PMI_SIZE":             slices.Concat(mpich, open, []string{"libmpi.so"}),
		"OMPI_COMM_WORLD_SIZE": slices.Concat(open, mpich, []string{"libmpi.so"}),
		"PMIX_RANK":            slices.Concat(open, mpich, []string{"libmpi.so"}),
	} {
		launchedBy(t, map[string]string{variable: "2"})
		if got := candidates(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", variable, got, want)
		}
	}
	t.Setenv(LibraryVariable, "/opt/lib/libmpi_abi.so.1")
	if got := candidates(); !slices.Equal(got, []string{"/opt/lib/libmpi_abi.so.1"}) {
		t.Errorf("with %s: %q", LibraryVariable, got)
	}
}
