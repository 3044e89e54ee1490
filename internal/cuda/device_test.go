//go:build gpu && linux && (amd64 || arm64)

package cuda_test

import (
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/internal/cuda/cudatest"
)

func TestOpenWithoutADriver(t *testing.T) {
	before := cuda.Library
	defer func() { cuda.Library = before }()
	cuda.Library = t.TempDir() + "/libcuda.so.1"
	_, err := cuda.Open(0)
	wantError(t, err, "no NVIDIA driver found", cuda.Library, cuda.LibraryVariable, "device: cpu")
	cuda.Library = "libc.so.6"
	_, err = cuda.Open(0)
	wantError(t, err, "libc.so.6 is not an NVIDIA driver", "update the driver", "device: cpu")
}

// wantError checks that an error has some words.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	for _, word := range words {
		if err == nil || !strings.Contains(err.Error(), word) {
			t.Errorf("error %v, want one with %q", err, word)
		}
	}
}

func TestOpenErrors(t *testing.T) {
	cudatest.Library(t)
	for _, test := range []struct {
		variable, value string
		number          int
		want            []string
	}{
		{"JENGA_HOSTCUDA_DEVICES", "0", 0, []string{"finds no GPU"}},
		{"JENGA_HOSTCUDA_DEVICES", "2", 5, []string{"no GPU 5", "0 (Emulated GPU 0), 1 (Emulated GPU 1)"}},
		{"JENGA_HOSTCUDA_DEVICES", "1", -1, []string{"no GPU -1"}},
		{"JENGA_HOSTCUDA_VERSION", "11080", 0, []string{"too old", "CUDA 11.8", "CUDA 12.2", "update the driver"}},
		{"JENGA_HOSTCUDA_CAPABILITY", "7.5", 0, []string{"compute capability is 7.5", "8.0 or later"}},
		{"JENGA_HOSTCUDA_MODE", "2", 0, []string{"Prohibited", "nvidia-smi -i 0 -c 0"}},
		{"JENGA_HOSTCUDA_FAIL", "cuInit:34", 0, []string{"LD_LIBRARY_PATH"}},
		{"JENGA_HOSTCUDA_FAIL", "cuInit:803", 0, []string{"restart the machine"}},
		{"JENGA_HOSTCUDA_FAIL", "cuInit:999", 0, []string{"CUDA_ERROR_UNKNOWN", "nvidia-smi"}},
		{"JENGA_HOSTCUDA_FAIL", "cuDevicePrimaryCtxRetain:46", 0, []string{"GPU 0 (Emulated GPU 0) is busy"}},
		{"JENGA_HOSTCUDA_FAIL", "cuDevicePrimaryCtxRetain:2", 0, []string{"has no memory left"}},
		{"JENGA_HOSTCUDA_FAIL", "cuModuleLoadDataEx:218", 0, []string{"INVALID_PTX", "update the driver"}},
		{"JENGA_HOSTCUDA_FAIL", "cuModuleLoadDataEx:221", 0, []string{"libnvidia-ptxjitcompiler.so.1"}},
		{"JENGA_HOSTCUDA_FAIL", "cuStreamCreate:999", 0, []string{"CUDA_ERROR_UNKNOWN"}},
	} {
		t.Run(test.variable+" "+test.value, func(t *testing.T) {
			t.Setenv(test.variable, test.value)
			d, err := cuda.Open(test.number)
			wantError(t, err, test.want...)
			if d != nil {
				t.Error("there is a device")
			}
			if !strings.HasSuffix(test.value, ":999") {
				wantError(t, err, ", or choose device: cpu")
			}
		})
	}
}

func TestDevice(t *testing.T) {
	d := cudatest.Emulated(t)
	names, err := cuda.Devices()
	if err != nil || !slices.Equal(names, []string{"Emulated GPU 0"}) || d.Name() != names[0] {
		t.Errorf("devices %q, %v, name %q", names, err, d.Name())
	}
	if major, minor := d.Capability(); major != 9 || minor != 0 {
		t.Errorf("capability %d.%d, want 9.0", major, minor)
	}
	if got := d.Products(); got != "kernels" {
		t.Errorf("products by %q, want kernels", got)
	}
	if p, err := d.Alloc(0); p != 0 || err != nil {
		t.Errorf("Alloc(0) = %#x, %v", p, err)
	}
	free := d.Free()
	p, err := d.Alloc(1000)
	if err != nil || p == 0 || p%256 != 0 {
		t.Fatalf("Alloc(1000) = %#x, %v", p, err)
	}
	if got := free - d.Free(); got < 1000 {
		t.Errorf("%d bytes less are free", got)
	}
	d.FreeMemory(p)
	d.FreeMemory(0)
	if got := d.Free(); got != free {
		t.Errorf("%d bytes are free, before %d", got, free)
	}
	func() {
		defer func() { wantError(t, fmt.Errorf("%v", recover()), "not allocated") }()
		d.FreeMemory(p)
	}()
}

func TestCopies(t *testing.T) {
	d := cudatest.Open(t)
	x, err := d.HostFloats(300)
	if err != nil || len(x) != 300 {
		t.Fatalf("%d floats, %v", len(x), err)
	}
	for i := range x {
		x[i] = float32(i)
	}
	p, err := d.Alloc(4 * len(x))
	if err != nil {
		t.Fatal(err)
	}
	before := d.Launches()
	d.Upload(p, cuda.Bytes(x))
	d.Copy(p, p+4*200, 4*100)
	d.Clear(p+4*299, 4)
	got := make([]float32, len(x))
	d.Download(cuda.Bytes(got), p)
	d.Upload(p, nil)
	d.Download(nil, p)
	d.Copy(p, p, 0)
	d.Clear(p, 0)
	if err := d.Synchronize(); err != nil {
		t.Fatal(err)
	}
	copy(x, x[200:])
	x[299] = 0
	if !slices.Equal(got, x) {
		t.Errorf("%v, want %v", got, x)
	}
	if n := d.Launches() - before; n != 4 {
		t.Errorf("%d operations, want 4", n)
	}
	d.FreeHost(x)
	d.FreeHost(nil)
	if n := len(cuda.Bytes([]int64{1, 2})); n != 16 || len(cuda.Bytes([]float32(nil))) != 0 {
		t.Errorf("2 words of 8 bytes have %d", n)
	}
}

func TestOutOfMemory(t *testing.T) {
	d := cudatest.Emulated(t)
	t.Setenv("JENGA_HOSTCUDA_MEMORY", "1000000000")
	_, err := d.Alloc(3 << 30)
	if full := new(cuda.OutOfMemory); !errors.As(err, &full) || full.Asked != 3<<30 || full.Free > 1000000000 {
		t.Errorf("error %#v", err)
	}
	wantError(t, err, "3.0 GiB more are needed", "MiB are free", "batch_size", "precision: bf16", "device: cpu")
	if err := d.Synchronize(); err != nil {
		t.Errorf("the error stays: %v", err)
	}
	if _, err := d.Alloc(1 << 20); err != nil {
		t.Error(err)
	}
}

// vectors allocates two vectors of n elements with the values 1, and i.
func vectors(t *testing.T, d *cuda.Device, n int) (x, y cuda.Pointer) {
	t.Helper()
	ones, numbers := make([]float32, n), make([]float32, n)
	for i := range n {
		ones[i], numbers[i] = 1, float32(i)
	}
	for to, from := range map[*cuda.Pointer][]float32{&x: ones, &y: numbers} {
		var err error
		if *to, err = d.Alloc(4 * n); err != nil {
			t.Fatal(err)
		}
		d.Upload(*to, cuda.Bytes(from))
	}
	return x, y
}

func TestErrorsOfOperations(t *testing.T) {
	for _, test := range []struct {
		fail string
		work func(d *cuda.Device, x, y cuda.Pointer)
		want string
		dead bool // the device
	}{
		{"cuLaunchKernel:701", func(d *cuda.Device, x, y cuda.Pointer) { d.Clear(x, 4); bias(d, x, y, 256) },
			"kernel add_bias_f32, blocks [1 1 1] of [256 1 1] threads, 0 bytes shared: too many resources", false},
		{"", func(d *cuda.Device, x, y cuda.Pointer) { bias(d, x, y, 2048) }, "of [2048 1 1] threads", false},
		{"", func(d *cuda.Device, x, y cuda.Pointer) { d.Launch("none", [3]int{1, 1, 1}, [3]int{32, 1, 1}, 0) },
			"kernel none: named symbol not found", false},
		{"", func(d *cuda.Device, x, y cuda.Pointer) {
			d.Launch("add_bias_f32", [3]int{1, 1, 1}, [3]int{32, 1, 1}, 1<<20, x, y, 8, 8)
		}, "1048576 bytes shared", false},
		{"cuMemcpyHtoDAsync_v2:1", func(d *cuda.Device, x, y cuda.Pointer) { d.Upload(x, make([]byte, 8)) },
			"a copy to the GPU: invalid argument", false},
		{"", func(d *cuda.Device, x, y cuda.Pointer) { d.Download(make([]byte, 4096), x) },
			"a copy from the GPU", false},
		{"", func(d *cuda.Device, x, y cuda.Pointer) { d.Copy(x, y, 4096) }, "a copy on the GPU", false},
		{"", func(d *cuda.Device, x, y cuda.Pointer) { d.Clear(x, 4096) }, "clearing memory", false},
		{"cuStreamSynchronize:700", func(*cuda.Device, cuda.Pointer, cuda.Pointer) {},
			"an illegal memory access", true},
		{"cuLaunchKernel:719", func(d *cuda.Device, x, y cuda.Pointer) { bias(d, x, y, 256) },
			"the GPU cannot be used any more by this process", true},
	} {
		t.Run(test.want, func(t *testing.T) {
			d := cudatest.Emulated(t)
			x, y := vectors(t, d, 8)
			t.Setenv("JENGA_HOSTCUDA_FAIL", test.fail)
			test.work(d, x, y)
			launches := d.Launches()
			if test.fail != "cuStreamSynchronize:700" {
				wantError(t, d.Err(), test.want)
				d.Clear(x, 4)
				bias(d, x, y, 256)
				if _, err := d.Alloc(8); err != d.Err() {
					t.Errorf("Alloc after the error: %v", err)
				}
				if d.Record() != 0 {
					t.Error("an event is recorded after the error")
				}
			}
			if d.Launches() != launches {
				t.Error("an operation is queued after the error")
			}
			wantError(t, d.Synchronize(), test.want)
			t.Setenv("JENGA_HOSTCUDA_FAIL", "")
			err := d.Synchronize()
			if test.dead {
				wantError(t, err, test.want)
			} else if err != nil || d.Err() != nil {
				t.Errorf("the error stays: %v", err)
			}
		})
	}
}

// bias adds y to the 8 elements of x.
func bias(d *cuda.Device, x, y cuda.Pointer, threads int) {
	d.Launch("add_bias_f32", [3]int{1, 1, 1}, [3]int{threads, 1, 1}, 0, x, y, 8, 8)
}

func TestLaunchChecksArguments(t *testing.T) {
	d := cudatest.Emulated(t)
	x, y := vectors(t, d, 8)
	for _, test := range []struct {
		args []any
		want string
	}{
		{[]any{x, y, 8}, "3 arguments of kernel add_bias_f32, which has 4"},
		{[]any{x, y, 8, 8, 8}, "argument 4"},
		{[]any{x, y, float64(8), 8}, "argument 2"},
		{[]any{x, y, int64(8), 8}, "argument 2"},
		{[]any{x, float32(8), 8, 8}, "argument 1"},
		{[]any{x, y, 8, 1 << 31}, "argument 3"},
	} {
		func() {
			defer func() { wantError(t, fmt.Errorf("%v", recover()), test.want) }()
			d.Launch("add_bias_f32", [3]int{1, 1, 1}, [3]int{32, 1, 1}, 0, test.args...)
		}()
	}
	d.Launch("add_bias_f32", [3]int{0, 1, 1}, [3]int{32, 1, 1}, 0, x, y, 8, 8)
	d.Launch("add_bias_f32", [3]int{1, 1, 1}, [3]int{32, 1, 1}, 0, x, y, int32(8), uint32(8))
	got := make([]float32, 8)
	d.Download(cuda.Bytes(got), x)
	if err := d.Synchronize(); err != nil || !slices.Equal(got, []float32{1, 2, 3, 4, 5, 6, 7, 8}) {
		t.Errorf("%v, %v", got, err)
	}
}

// Operations of several goroutines are whole.
func TestGoroutines(t *testing.T) {
	d := cudatest.Open(t)
	var all sync.WaitGroup
	for i := range 8 {
		x, y := vectors(t, d, 8)
		all.Go(func() {
			got := make([]float32, 8)
			for range 100 {
				bias(d, x, y, 32)
				d.Download(cuda.Bytes(got), x)
			}
			if err := d.Synchronize(); err != nil || got[7] != 701 {
				t.Errorf("goroutine %d: %v, %v", i, got, err)
			}
		})
	}
	all.Wait()
}

func TestEvents(t *testing.T) {
	d := cudatest.Emulated(t)
	first := d.Record()
	for range 5000 {
		d.Wait(d.Record())
	}
	last := d.Record()
	d.Wait(0)
	t.Setenv("JENGA_HOSTCUDA_FAIL", "cuEventSynchronize:700")
	d.Wait(first)
	if err := d.Err(); err != nil {
		t.Errorf("waiting for a forgotten event: %v", err)
	}
	d.Wait(last)
	wantError(t, d.Err(), "waiting for GPU 0 (Emulated GPU 0)", "an illegal memory access")
}

func TestProfile(t *testing.T) {
	d := cudatest.Open(t)
	x, y := vectors(t, d, 8)
	counts := map[string]int{}
	for _, op := range d.Profile(func() {
		bias(d, x, y, 32)
		d.Clear(x, 4)
		bias(d, x, y, 32)
	}) {
		counts[op.Name] = op.Count
	}
	if len(counts) != 2 || counts["add_bias_f32"] != 2 || counts["clearing memory"] != 1 {
		t.Errorf("operations %v", counts)
	}
	if err := d.Synchronize(); err != nil {
		t.Error(err)
	}
}

func TestClose(t *testing.T) {
	d := cudatest.Emulated(t)
	free := d.Free()
	if _, err := d.Alloc(1 << 20); err != nil {
		t.Fatal(err)
	}
	other := cudatest.Emulated(t)
	x, y := vectors(t, d, 8)
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if got := other.Free(); got != free {
		t.Errorf("%d bytes are free after Close, before %d", got, free)
	}
	bias(d, x, y, 32)
	d.FreeMemory(x)
	if _, err := d.Alloc(8); err == nil {
		t.Error("memory of a closed device")
	}
	wantError(t, d.Synchronize(), "closed")
	if err := d.Close(); err != nil {
		t.Errorf("closed again: %v", err)
	}
	if err := other.Synchronize(); err != nil {
		t.Error(err)
	}
}

// The driver that Open requires compiles all files of kernels: CUDA 12.2 knows PTX 8.2.
func TestVersionsOfPTX(t *testing.T) {
	files, err := filepath.Glob("ptx/*/*.ptx.gz")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	version := regexp.MustCompile(`(?m)^\.version 8\.[0-2]$`)
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		z, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(z)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		if !version.Match(b) || !strings.Contains(string(b), "\n.target "+filepath.Base(filepath.Dir(file))) {
			t.Errorf("%s: not of PTX 8.2 or earlier, or of another architecture", file)
		}
	}
}
