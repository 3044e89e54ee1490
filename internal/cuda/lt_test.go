//go:build gpu && linux && (amd64 || arm64)

package cuda_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/internal/cuda/cudatest"
)

// openWithLT opens a device whose products testdata/cublaslt.cpp makes. log returns what it has written since the last
// call.
func openWithLT(t *testing.T) (d *cuda.Device, log func() []string) {
	t.Helper()
	if _, err := exec.LookPath("g++"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("there is no g++: ", err)
	}
	folder := t.TempDir()
	library, file := filepath.Join(folder, "libcublasLt.so"), filepath.Join(folder, "log")
	out, err := exec.Command("g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-o", library, "testdata/cublaslt.cpp").
		CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Setenv(cuda.ProductsVariable, library)
	t.Setenv("JENGA_FAKE_LT_LOG", file)
	d = cudatest.Emulated(t)
	if got := d.Products(); got != library {
		t.Fatalf("products by %s", got)
	}
	return d, func() []string {
		b, err := os.ReadFile(file)
		if err != nil {
			return nil
		}
		os.Remove(file)
		return strings.Split(strings.TrimSpace(string(b)), "\n")
	}
}

// stored returns small integers, of which all sums are exact, as elements of a type.
func stored(n int, seed int, of cuda.Type) []byte {
	var out []byte
	for i := range n {
		bits := math.Float32bits(float32((i*7+seed)%5 - 2))
		if of == cuda.BFloat16 {
			out = binary.LittleEndian.AppendUint16(out, uint16(bits>>16))
		} else {
			out = binary.LittleEndian.AppendUint32(out, bits)
		}
	}
	return out
}

// element returns an element of what stored returns.
func element(b []byte, i int, of cuda.Type) float32 {
	if of == cuda.BFloat16 {
		return math.Float32frombits(uint32(binary.LittleEndian.Uint16(b[2*i:])) << 16)
	}
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

// multiplyAndCompare computes a product of which the sizes, transpositions, types, Add and bias are given, and compares
// it with the sums of its definition.
func multiplyAndCompare(t *testing.T, d *cuda.Device, p cuda.Product, bias bool) {
	t.Helper()
	rowsA, colsA, rowsB, colsB := p.M, p.K, p.K, p.N
	if p.TransA {
		rowsA, colsA = colsA, rowsA
	}
	if p.TransB {
		rowsB, colsB = colsB, rowsB
	}
	p.LDA, p.LDB, p.LDC = colsA+8, colsB+16, p.N+8
	a, b := stored(rowsA*p.LDA, 1, p.In), stored(rowsB*p.LDB, 2, p.In)
	c, biases := stored(p.M*p.LDC, 3, p.Out), stored(p.N, 4, cuda.Float32)
	upload := func(to *cuda.Pointer, from []byte) {
		var err error
		if *to, err = d.Alloc(len(from)); err != nil {
			t.Fatal(err)
		}
		d.Upload(*to, from)
	}
	upload(&p.A, a)
	upload(&p.B, b)
	upload(&p.C, c)
	if bias {
		upload(&p.Bias, biases)
	}
	d.Multiply(p)
	got := make([]byte, len(c))
	d.Download(got, p.C)
	if err := d.Synchronize(); err != nil {
		t.Fatal(err)
	}
	for i := range p.M {
		for j := range p.N {
			want := elementOf(p, a, b, i, j)
			if p.Add {
				want += element(c, i*p.LDC+j, p.Out)
			}
			if bias {
				want += element(biases, j, cuda.Float32)
			}
			if x := element(got, i*p.LDC+j, p.Out); x != want {
				t.Fatalf("%+v: [%d %d] = %v, want %v", p, i, j, x, want)
			}
		}
		for j := p.N; j < p.LDC; j++ {
			if element(got, i*p.LDC+j, p.Out) != element(c, i*p.LDC+j, p.Out) {
				t.Fatalf("%+v: [%d %d], outside C, is written", p, i, j)
			}
		}
	}
	for _, x := range []cuda.Pointer{p.A, p.B, p.C, p.Bias} {
		d.FreeMemory(x)
	}
}

// elementOf returns an element of op(A)·op(B), of the matrices that stored has returned.
func elementOf(p cuda.Product, a, b []byte, i, j int) (sum float32) {
	for k := range p.K {
		atA, atB := i*p.LDA+k, k*p.LDB+j
		if p.TransA {
			atA = k*p.LDA + i
		}
		if p.TransB {
			atB = j*p.LDB + k
		}
		sum += element(a, atA, p.In) * element(b, atB, p.In)
	}
	return sum
}

// products calls f with each layout and each pair of types.
func products(f func(p cuda.Product)) {
	for _, p := range []cuda.Product{{}, {TransA: true}, {TransB: true}} {
		for _, types := range [][2]cuda.Type{{cuda.Float32, cuda.Float32}, {cuda.BFloat16, cuda.Float32},
			{cuda.BFloat16, cuda.BFloat16}} {
			p.M, p.N, p.K, p.In, p.Out = 24, 40, 16, types[0], types[1]
			f(p)
		}
	}
}

func TestMultiplyByKernels(t *testing.T) {
	d := cudatest.Open(t)
	products(func(p cuda.Product) {
		multiplyAndCompare(t, d, p, false)
		multiplyAndCompare(t, d, p, true)
		p.Add, p.TF32 = true, true
		multiplyAndCompare(t, d, p, false)
		p.K = 0
		multiplyAndCompare(t, d, p, false)
	})
	before := d.Launches()
	d.Multiply(cuda.Product{N: 4, K: 4, LDA: 4, LDB: 4, LDC: 4})
	if d.Launches() != before {
		t.Error("a product without rows is queued")
	}
}

func TestMultiplyByCublasLt(t *testing.T) {
	d, log := openWithLT(t)
	products(func(p cuda.Product) {
		multiplyAndCompare(t, d, p, false)
		multiplyAndCompare(t, d, p, true)
		p.Add, p.TF32 = true, true
		multiplyAndCompare(t, d, p, false)
	})
	matmuls := 0
	for _, line := range log() {
		if strings.HasPrefix(line, "matmul 24 40 16 ") {
			matmuls++
		}
	}
	if matmuls != 27 {
		t.Errorf("cuBLASLt has made %d products, want 27", matmuls)
	}
	before := d.Launches()
	multiplyAndCompare(t, d, cuda.Product{M: 3, N: 8}, true) // K 0: a kernel, beside copies of A, C and the bias
	if got := log(); len(got) > 0 || d.Launches() != before+5 {
		t.Errorf("a product with K 0: %q, %d operations", got, d.Launches()-before)
	}
}

// For a shape there is one algorithm, which is chosen for 8192 rows, as long as it takes the rows at hand.
func TestOneAlgorithmForAllRows(t *testing.T) {
	d, log := openWithLT(t)
	t.Setenv("JENGA_FAKE_LT_SMALLEST", "3")
	for _, m := range []int{4, 1, 4} {
		multiplyAndCompare(t, d, cuda.Product{M: m, N: 8, K: 16}, false)
	}
	want := []string{"heuristic 8192 8 16 mask 0, 16", "matmul 4 8 16 8", "matmul 1 8 16 8", "matmul 4 8 16 8"}
	if got := log(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q: the algorithm that takes any rows", got, want)
	}

	// sums over rows: for powers of two, with a reduction in order
	for _, k := range []int{4, 100, 130, 4} {
		multiplyAndCompare(t, d, cuda.Product{M: 4, N: 8, K: k, TransA: true}, false)
	}
	want = []string{"heuristic 4 8 64 mask 2, 16", "matmul 4 8 4 7", "heuristic 4 8 128 mask 2, 16", "matmul 4 8 100 7",
		"heuristic 4 8 256 mask 2, 16", "matmul 4 8 130 7", "matmul 4 8 4 7"}
	if got := log(); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// Rows that are not multiples of 16 bytes have algorithms of their own.
func TestAlignmentOfProducts(t *testing.T) {
	d, log := openWithLT(t)
	multiplyAndCompare(t, d, cuda.Product{M: 2, N: 7, K: 16, In: cuda.BFloat16}, false)
	if got := log(); len(got) != 2 || got[0] != "heuristic 8192 7 16 mask 0, 2" {
		t.Errorf("%q", got)
	}
}

func TestFallbacksOfProducts(t *testing.T) {
	d, log := openWithLT(t)
	t.Setenv("JENGA_FAKE_LT_NO_BIAS", "1")
	for _, out := range []cuda.Type{cuda.Float32, cuda.BFloat16} {
		p := cuda.Product{M: 5, N: 8, K: 16, In: out, Out: out}
		before := d.Launches()
		multiplyAndCompare(t, d, p, true)
		if got := log(); got[len(got)-1] != "matmul 5 8 16 7" || d.Launches()-before != 7 {
			t.Errorf("no algorithm adds a bias: %q, %d operations, want 7", got, d.Launches()-before)
		}
	}
	t.Setenv("JENGA_FAKE_LT_NO_BIAS", "")
	t.Setenv("JENGA_FAKE_LT_REFUSES", "1")
	multiplyAndCompare(t, d, cuda.Product{M: 5, N: 16, K: 16}, true)
	t.Setenv("JENGA_FAKE_LT_REFUSES", "")
	log()
	multiplyAndCompare(t, d, cuda.Product{M: 5, N: 16, K: 16}, true)
	if got := log(); len(got) > 0 {
		t.Errorf("a refused product is asked for again: %q", got)
	}
	t.Setenv("JENGA_FAKE_LT_FAILS", "1")
	x, _ := vectors(t, d, 64)
	d.Multiply(cuda.Product{M: 2, N: 8, K: 8, A: x, B: x, C: x, LDA: 8, LDB: 8, LDC: 8})
	wantError(t, d.Synchronize(), "cuBLASLt", "returned 13 for a product [2 8]·[8 8]")
}

func TestNamedCublasLt(t *testing.T) {
	t.Setenv(cuda.ProductsVariable, "/none/libcublasLt.so.12")
	cudatest.Library(t)
	_, err := cuda.Open(0)
	wantError(t, err, "/none/libcublasLt.so.12", cuda.ProductsVariable, "none")
}

func TestMultiplyPanics(t *testing.T) {
	d := cudatest.Open(t)
	good := cuda.Product{M: 2, N: 4, K: 8, LDA: 8, LDB: 8, LDC: 8}
	for _, change := range []func(p *cuda.Product){
		func(p *cuda.Product) { p.LDA = 7 },
		func(p *cuda.Product) { p.LDB = 3 },
		func(p *cuda.Product) { p.LDC = 3 },
		func(p *cuda.Product) { p.TransB, p.LDB = true, 7 },
		func(p *cuda.Product) { p.TransA, p.TransB = true, true },
		func(p *cuda.Product) { p.Out = cuda.BFloat16 },
		func(p *cuda.Product) { p.Add, p.Bias = true, 256 },
		func(p *cuda.Product) { p.M = -1 },
	} {
		p := good
		change(&p)
		func() {
			defer func() { wantError(t, fmt.Errorf("%v", recover()), "cuda: a product") }()
			d.Multiply(p)
		}()
	}
}
