//go:build mpi && (linux || darwin) && (amd64 || arm64)

package mpi

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/mpi/mpitest"
)

func TestMain(m *testing.M) { Exit(m.Run()) }

// expected is the environment variable that tells TestRanks the name of the library's binary interface, a part of its
// version, and its folder, joined by commas.
const expected = "JENGA_MPI_EXPECTED"

// Each launcher runs TestRanks in 1, 2, 4 and 8 processes, with its own library, and with the standard interface where
// it has that beside it.
func TestLaunchers(t *testing.T) {
	if _, ok := Launched(); ok {
		t.Skip("this is a rank")
	}
	for _, launcher := range mpitest.Launchers(t) {
		kind, version := mpitest.Library(t, launcher)
		folder := filepath.Join(filepath.Dir(launcher), "..", "lib")
		if own, err := filepath.Glob(filepath.Join(folder, "libmpi.so*")); err != nil || len(own) == 0 {
			folder = "" // where the linker looks
		}
		for _, ranks := range []int{1, 2, 4, 8} {
			runRanks(t, launcher, ranks, expected+"="+kind+","+version+","+folder)
		}
		if standard := filepath.Join(folder, "libmpi_abi.so.1"); exists(standard) {
			runRanks(t, launcher, 2, LibraryVariable+"="+standard,
				expected+"="+standardHandles.name+","+version+","+folder)
		}
	}
}

func runRanks(t *testing.T, launcher string, ranks int, environment ...string) {
	t.Helper()
	cmd := mpitest.Command(t, launcher, ranks, os.Args[0], "-test.run=^TestRanks$", "-test.v")
	cmd.Env = append(cmd.Env, environment...)
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%s -n %d: %v\n%s", launcher, ranks, err, output)
	}
}

// Each rank sends values to all others, small and large, and sums values over all.
func TestRanks(t *testing.T) {
	if _, ok := Launched(); !ok {
		t.Skip("no launcher has started this process")
	}
	started, err := Start()
	if err != nil {
		t.Fatal(err)
	}
	w := started.(*world)
	t.Logf("rank %d of %d, %s, %s", w.Rank(), w.Ranks(), w.library.handles.name, w.Version())
	if want := strings.Split(os.Getenv(expected), ","); len(want) == 3 {
		if got := w.library.handles.name; got != want[0] {
			t.Errorf("the interface is %s, want %s", got, want[0])
		}
		if !strings.Contains(w.Version(), want[1]) {
			t.Errorf("the library is %s, want version %s", w.Version(), want[1])
		}
		if !strings.HasPrefix(w.library.file, want[2]) {
			t.Errorf("the library is %s, want that in %s", w.library.file, want[2])
		}
	}
	for _, n := range []int{1, 1000, 3_000_000} {
		if err := w.exchange(n); err != nil {
			t.Errorf("%d values: %v", n, err)
		}
	}
	w.Close()
}

// exchange sends n values to each other rank, and sums those of all.
func (w *world) exchange(n int) error {
	own := filled(n, w.rank)
	var received [][]byte
	results, requests := make(chan error), 0
	done := func(err error) { go func() { results <- err }() }
	for rank := range w.ranks {
		into, err := allocate(4 * n)
		if err != nil {
			return err
		}
		received = append(received, into)
		if rank != w.rank {
			w.Receive(rank, 7, into, done)
			w.Send(rank, 7, own, done)
			requests += 2
		}
	}
	for range requests {
		if err := <-results; err != nil {
			return err
		}
	}
	w.Sum(own, done)
	if err := <-results; err != nil {
		return err
	}
	for i := 0; i < n; i += 1 + n/10 {
		sum := float32(0)
		for rank := range w.ranks {
			want := value(rank, i)
			sum += want
			if got := read(received[rank], i); rank != w.rank && got != want {
				return fmt.Errorf("value %d of rank %d is %v, want %v", i, rank, got, want)
			}
		}
		if got := read(own, i); got != sum {
			return fmt.Errorf("sum %d is %v, want %v", i, got, sum)
		}
	}
	return nil
}

func value(rank, i int) float32 { return float32(rank*1000 + i%512) }

func filled(n, rank int) []byte {
	b, err := allocate(4 * n)
	if err != nil {
		panic(err)
	}
	for i := range n {
		binary.NativeEndian.PutUint32(b[4*i:], math.Float32bits(value(rank, i)))
	}
	return b
}

func read(b []byte, i int) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(b[4*i:])) }
