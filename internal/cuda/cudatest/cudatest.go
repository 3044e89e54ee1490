//go:build gpu && linux && (amd64 || arm64)

// Package cudatest opens a GPU that the processor emulates, for tests: a driver's library (../hostcuda) with the
// kernels compiled for the processor.
package cudatest

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/jenga-nlp/jenga/internal/cuda"
)

// flags of the compiler. Products and sums are not contracted to fused ones: only fmaf is.
var flags = strings.Fields("-std=c++17 -O2 -fPIC -fvisibility=hidden -ffp-contract=off -w -DJENGA_HOST " +
	"-I. -I../kernels")

// errNoCompiler is the error of a machine without g++.
var errNoCompiler = errors.New("g++ is not installed, which compiles the kernels for the processor " +
	"(Debian's package g++)")

// Open returns an emulated GPU, or the machine's where tests are for that (Real), which the end of the test closes.
// Errors of its operations are the test's to look at.
func Open(t testing.TB) *cuda.Device {
	t.Helper()
	if !Real() {
		Library(t)
	}
	return open(t)
}

// Emulated is Open of an emulated GPU, also where tests are for the machine's.
func Emulated(t testing.TB) *cuda.Device {
	t.Helper()
	Library(t)
	return open(t)
}

// Real reports whether Open opens the machine's GPU in place of an emulated one: where the environment variable
// JENGA_TEST_GPU is set.
func Real() bool { return os.Getenv("JENGA_TEST_GPU") != "" }

func open(t testing.TB) *cuda.Device {
	t.Helper()
	d, err := cuda.Open(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

// Library returns the file of the emulated driver, which it compiles once a machine, and makes it the library of
// package cuda until the end of the test. Without g++ it skips the test, or fails it where CI=true.
func Library(t testing.TB) string {
	t.Helper()
	file, err := library()
	if errors.Is(err, errNoCompiler) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	before := cuda.Library
	cuda.Library = file
	t.Cleanup(func() { cuda.Library = before })
	return file
}

var library = sync.OnceValues(func() (string, error) {
	folder := filepath.Join(sources(), "hostcuda")
	b, err := newBuild(folder, "driver.cpp", "fibers.cpp")
	if err != nil {
		return "", err
	}
	return b.make("libcuda.so.1", "-shared", "-Wl,-z,defs")
})

// sources returns the folder of package cuda.
func sources() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(file))
}

// build is a file that g++ makes of C++ files and, if there are some, files of kernels.
type build struct {
	folder  string   // of the C++ files
	files   []string // C++
	kernels []string // names of files in ../kernels
	hash    string   // of all that it depends on
}

// newBuild returns the build of a library, from C++ files and all kernels.
func newBuild(folder string, files ...string) (*build, error) {
	b := &build{folder: folder, files: files}
	read, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		return nil, err
	}
	kernels, err := filepath.Glob(filepath.Join(folder, "../kernels/*"))
	if err != nil {
		return nil, err
	}
	sum := sha256.New()
	fmt.Fprintln(sum, flags, runtime.GOARCH, files)
	for _, file := range slices.Concat(read, kernels) {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		fmt.Fprintf(sum, "%s %d\n%s", filepath.Base(file), len(content), content)
		if filepath.Ext(file) == ".cu" {
			b.kernels = append(b.kernels, filepath.Base(file))
		}
	}
	b.hash = fmt.Sprintf("%x", sum.Sum(nil)[:12])
	return b, nil
}

// make returns the file of the build, in the folder of caches; it is compiled unless it is there. Of processes that do
// so at the same time one compiles, and the others wait.
func (b *build) make(name string, link ...string) (string, error) {
	compiler, err := exec.LookPath("g++")
	if err != nil {
		return "", errNoCompiler
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	folder := filepath.Join(cache, "jenga", "hostcuda", b.hash)
	file := filepath.Join(folder, name)
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", err
	}
	lock, err := os.Create(filepath.Join(folder, "lock"))
	if err != nil {
		return "", err
	}
	defer lock.Close()
	syscall.Flock(int(lock.Fd()), syscall.LOCK_EX) // on a file system without locks, each process compiles
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	work, err := os.MkdirTemp(folder, "work")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(work)

	objects, err := b.compile(compiler, work)
	if err != nil {
		return "", err
	}
	made := filepath.Join(work, name)
	args := slices.Concat(link, []string{"-o", made}, objects, []string{"-lpthread"})
	if err := b.run(compiler, args...); err != nil {
		return "", err
	}
	return file, os.Rename(made, file)
}

// compile makes objects of all files, in a folder, a few at a time.
func (b *build) compile(compiler, folder string) (objects []string, err error) {
	var tasks [][]string
	add := func(source, object string, more ...string) {
		object = filepath.Join(folder, object+".o")
		objects = append(objects, object)
		tasks = append(tasks, slices.Concat(flags, more, []string{"-c", source, "-o", object}))
	}
	for _, kernel := range b.kernels {
		add("kernel.cpp", kernel, fmt.Sprintf("-DJENGA_FILE=%q", kernel))
	}
	for _, file := range b.files {
		add(file, file)
	}

	errs := make([]error, len(tasks))
	slots := make(chan struct{}, runtime.GOMAXPROCS(0))
	var group sync.WaitGroup
	for i, task := range tasks {
		group.Go(func() {
			slots <- struct{}{}
			errs[i] = b.run(compiler, task...)
			<-slots
		})
	}
	group.Wait()
	return objects, errors.Join(errs...)
}

// run runs the compiler in the folder of the C++ files.
func (b *build) run(compiler string, args ...string) error {
	c := exec.Command(compiler, args...)
	c.Dir = b.folder
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("g++ %s: %w\n%s", strings.Join(args, " "), err, out)
	}
	return nil
}
