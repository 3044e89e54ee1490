//go:build gpu && linux && (amd64 || arm64)

package cudatest

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/cuda"
)

// The program hostcuda/check.cpp compares barriers, shuffles, products and loads of matrices with their definitions.
func TestInstructionsAreAsTheISADefinesThem(t *testing.T) {
	program := check(t)
	for _, environment := range []string{
		"JENGA_HOSTCUDA_ORDER=", "JENGA_HOSTCUDA_ORDER=reverse", "JENGA_HOSTCUDA_THREADS=1",
	} {
		c := exec.Command(program)
		c.Env = append(os.Environ(), environment)
		if out, err := c.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), "ok") {
			t.Errorf("%s: %v\n%s", environment, err, out)
		}
	}
}

// check returns the program of hostcuda/check.cpp.
func check(t *testing.T) string {
	b, err := newBuild(filepath.Join(sources(), "hostcuda"), "check.cpp", "fibers.cpp")
	if err != nil {
		t.Fatal(err)
	}
	Library(t)
	b.kernels = nil
	program, err := b.make("check")
	if err != nil {
		t.Fatal(err)
	}
	return program
}

func TestMistakesOfKernelsEndTheProcess(t *testing.T) {
	program := check(t)
	for kernel, want := range map[string]string{
		"misses_block":     "a barrier is not reached by all: 63 threads wait at the block's barrier, 1 have returned",
		"misses_warp":      "lanes ffffff7f wait at barriers of their warp (lane 0 at __syncwarp of lanes ffffffff)",
		"misses_operation": "is at __shfl_xor_sync of lanes ffffffff while lane 7 is at __ballot_sync",
		"outside":          "kernel outside, block (0 0 0) of (1 1 1), 64 x 1 x 1 threads, thread (0 0 0): access to ",
		"overflows_stack":  "access to 0x",
		"past_shared":      "wrote past the 8 bytes of its dynamic shared memory",
	} {
		out, err := exec.Command(program, kernel).CombinedOutput()
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s; want %q", kernel, err, out, want)
		}
	}
}

func TestMemory(t *testing.T) {
	t.Setenv("JENGA_HOSTCUDA_MEMORY", "4096")
	d := Emulated(t)
	if free := d.Free(); free != 4096 {
		t.Errorf("%d bytes are free, want 4096", free)
	}
	p, err := d.Alloc(1024)
	if err != nil {
		t.Fatal(err)
	}
	read := make([]float32, 256)
	d.Download(cuda.Bytes(read), p)
	if read[0] == read[0] || read[255] == read[255] {
		t.Errorf("memory begins as %v … %v, want NaN", read[0], read[255])
	}
	if _, err := d.Alloc(3073); err == nil {
		t.Error("3073 bytes are allocated of 3072")
	}
	d.FreeMemory(p)
	if p, err = d.Alloc(4096); err != nil {
		t.Errorf("all memory: %v", err)
	}
	d.FreeMemory(p)
}
