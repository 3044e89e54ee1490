//go:build mpi && (linux || darwin) && (amd64 || arm64)

package mpi

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/ebitengine/purego"
)

// Built reports whether the program can use an MPI library.
const Built = true

type library struct {
	file    string
	symbols map[string]uintptr
	handles handles
}

// handles are the constants of a binary interface.
type handles struct {
	name         string
	world        uintptr // MPI_COMM_WORLD
	float        uintptr // MPI_FLOAT
	sum          uintptr // MPI_SUM
	errorsReturn uintptr // MPI_ERRORS_RETURN
	inPlace      uintptr // MPI_IN_PLACE
	funneled     uintptr // MPI_THREAD_FUNNELED
}

// openMPIInterface is the name of Open MPI's interface.
const openMPIInterface = "Open MPI"

// The constants of mpi_abi.h (MPI 5.0, section 20) and of MPICH's mpi.h. Those of Open MPI are addresses of variables.
var (
	standardHandles = handles{"the standard interface", 0x101, 0x210, 0x21, 0x143, 1, 1024}
	mpichHandles    = handles{"MPICH", 0x44000000, 0x4c00040a, 0x58000003, 0x54000001, ^uintptr(0), 1}
)

// functions are those of the library that are called.
var functions = []string{
	"MPI_Init_thread", "MPI_Finalize", "MPI_Abort", "MPI_Comm_rank", "MPI_Comm_size", "MPI_Comm_set_errhandler",
	"MPI_Isend", "MPI_Irecv", "MPI_Iallreduce", "MPI_Test", "MPI_Error_string", "MPI_Get_library_version",
}

// openLibrary opens the MPI library of the launcher that started the process.
func openLibrary() (*library, error) {
	var wrong []error
	for _, file := range candidates() {
		handle, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL)
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		l := &library{file: file, symbols: map[string]uintptr{}}
		for _, name := range functions {
			if l.symbols[name], err = purego.Dlsym(handle, name); err != nil {
				return nil, fmt.Errorf("%s: %w", file, err)
			}
		}
		l.handles, err = detect(handle)
		return l, err
	}
	return nil, fmt.Errorf("no MPI library found: install Open MPI or MPICH, or name its file by %s: %w",
		LibraryVariable, errors.Join(wrong...))
}

// candidates lists files of MPI libraries, first those of the kind that the launcher starts, and of a kind first those
// beside the launcher, which may not be the ones that the linker finds.
func candidates() []string {
	if file := os.Getenv(LibraryVariable); file != "" {
		return []string{file}
	}
	var all []string
	folders := append(launcherFolders(), "") // where the linker looks
	for _, names := range libraryNames() {
		for _, folder := range folders {
			for _, name := range names {
				if file := filepath.Join(folder, name); folder == "" || exists(file) {
					all = append(all, file)
				}
			}
		}
	}
	return all
}

// libraryNames lists the names of libraries' files by kind, that which the launcher most likely starts first.
func libraryNames() [][]string {
	if runtime.GOOS == "darwin" {
		return [][]string{{"libmpi.dylib", "libmpi_abi.dylib"}}
	}
	mpich, open := []string{"libmpi.so.12", "libmpi_abi.so.1", "libmpich.so.12"}, []string{"libmpi.so.40"}
	unknown := []string{"libmpi.so"}
	// MPICH's own launcher has PMI; with Slurm's PMIx it is mostly Open MPI, and MPICH with --mpi=pmi2
	if launcher, _ := Launched(); launcher.Name == openMPI || launcher.Name == pmix {
		return [][]string{open, mpich, unknown}
	}
	return [][]string{mpich, open, unknown}
}

func launcherFolders() []string {
	var all []string
	for _, program := range []string{"mpiexec", "mpirun"} {
		path, err := exec.LookPath(program)
		if err != nil {
			continue
		}
		if path, err = filepath.EvalSymlinks(path); err != nil {
			continue
		}
		for _, name := range []string{"lib", "lib64"} {
			if folder := filepath.Join(filepath.Dir(path), "..", name); !slices.Contains(all, folder) {
				all = append(all, folder)
			}
		}
	}
	return all
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// detect returns the constants of an open library's binary interface: the standard one where MPI_Abi_get_version
// returns a version, that of Open MPI where it has its variables, else that of MPICH, as mpi4py does.
func detect(handle uintptr) (handles, error) {
	if version, err := purego.Dlsym(handle, "MPI_Abi_get_version"); err == nil {
		var major, minor int32
		if code := callPointers(version, &major, &minor); code == 0 && major > 0 {
			return standardHandles, nil
		}
	}
	if _, err := purego.Dlsym(handle, "ompi_mpi_comm_self"); err != nil {
		return mpichHandles, nil
	}
	h := handles{name: openMPIInterface, inPlace: 1, funneled: 1}
	for name, to := range map[string]*uintptr{
		"ompi_mpi_comm_world": &h.world, "ompi_mpi_float": &h.float, "ompi_mpi_op_sum": &h.sum,
		"ompi_mpi_errors_return": &h.errorsReturn,
	} {
		var err error
		if *to, err = purego.Dlsym(handle, name); err != nil {
			return h, err
		}
	}
	return h, nil
}
