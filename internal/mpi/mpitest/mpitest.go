// Package mpitest starts programs by the launchers of MPI libraries in tests.
package mpitest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// Launchers returns the launchers that JENGA_MPIRUN lists, a mpiexec or mpirun of each MPI library. It skips the test
// where there are none.
func Launchers(t *testing.T) []string {
	t.Helper()
	launchers := filepath.SplitList(os.Getenv("JENGA_MPIRUN"))
	if len(launchers) == 0 {
		t.Skip("JENGA_MPIRUN lists no launchers of MPI libraries")
	}
	return launchers
}

// Command returns the command by which a launcher starts a program in so many processes, even if there are fewer cores.
// Its temporary folder is its own: Open MPI's launcher fails where one of the same process number that was killed has
// left its files.
func Command(t *testing.T, launcher string, processes int, program string, args ...string) *exec.Cmd {
	t.Helper()
	folder, err := os.MkdirTemp("", "mpi")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(folder) })
	cmd := exec.Command(launcher, append([]string{"-n", strconv.Itoa(processes), program}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+folder,
		"PATH="+filepath.Dir(launcher)+string(os.PathListSeparator)+os.Getenv("PATH"),
		"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", // of Open MPI, in containers
		"OMPI_MCA_rmaps_base_oversubscribe=1", "PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe")
	prefix := filepath.Dir(filepath.Dir(launcher))
	if _, err := os.Stat(filepath.Join(prefix, "lib", "libmpi.so.40")); err == nil { // Open MPI, anywhere
		cmd.Env = append(cmd.Env, "OPAL_PREFIX="+prefix, "PMIX_PREFIX="+prefix, "PRTE_PREFIX="+prefix)
	}
	return cmd
}

// Library returns the name of a launcher's MPI library, MPICH or Open MPI, and its version.
func Library(t *testing.T, launcher string) (name, version string) {
	t.Helper()
	cmd := Command(t, launcher, 1, "")
	cmd.Args = []string{launcher, "--version"}
	out, err := cmd.CombinedOutput()
	version = regexp.MustCompile(`\d+\.\d+\.\d+`).FindString(string(out))
	switch text := string(out); {
	case err != nil || version == "":
		t.Fatalf("%s --version: %v\n%s", launcher, err, out)
	case strings.Contains(text, "HYDRA"):
		return "MPICH", version
	case strings.Contains(text, "Open MPI"), strings.Contains(text, "OpenRTE"):
		return "Open MPI", version
	}
	t.Fatalf("%s is no launcher of a known library:\n%s", launcher, out)
	return "", ""
}
