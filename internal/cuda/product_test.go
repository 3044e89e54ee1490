//go:build gpu && linux && (amd64 || arm64)

package cuda_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/jenga-nlp/jenga/internal/cuda"
	"github.com/jenga-nlp/jenga/internal/cuda/cudatest"
)

// productType is one of the types of the kernels product_*.
type productType struct {
	name       string
	in, out    int // bytes of an element
	shared     int // bytes
	round      func(float32) float32
	outEpsilon float64 // relative error of the result's rounding
}

var productTypes = []productType{
	{"f32", 4, 4, 32768, func(x float32) float32 { return x }, 0},
	{"tf32", 4, 4, 81920, productTF32, 0},
	{"bf16_f32", 2, 4, 65536, productBF16, 0},
	{"bf16_bf16", 2, 2, 65536, productBF16, 1.0 / 256},
}

// productTF32 rounds to ten bits of mantissa, ties away from zero.
func productTF32(x float32) float32 {
	return math.Float32frombits((math.Float32bits(x) + 0x1000) &^ 0x1fff)
}

// productBF16 rounds to bfloat16, ties to even; x is not NaN.
func productBF16(x float32) float32 {
	bits := math.Float32bits(x)
	return math.Float32frombits((bits + 0x7fff + bits>>16&1) &^ 0xffff)
}

// productMatrix is a matrix in the device's memory, in rows of ld elements; the first begins `offset` elements after
// an address that is a multiple of 256 bytes.
type productMatrix struct {
	rows, cols, ld, offset int
	size                   int // bytes of an element
	memory, at             cuda.Pointer
}

// productBytes are values as elements of 2 or 4 bytes.
func productBytes(values []float32, size int) []byte {
	var out []byte
	for _, x := range values {
		if size == 4 {
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
		} else {
			out = binary.LittleEndian.AppendUint16(out, uint16(math.Float32bits(x)>>16))
		}
	}
	return out
}

// productUpload puts values [rows cols] into memory; elements outside the rows are NaN.
func productUpload(t *testing.T, d *cuda.Device, values []float32, m productMatrix) productMatrix {
	t.Helper()
	all := make([]float32, m.offset+m.rows*m.ld+m.ld)
	for i := range all {
		all[i] = productOutside
	}
	for i := range m.rows {
		copy(all[m.offset+i*m.ld:], values[i*m.cols:(i+1)*m.cols])
	}
	var err error
	if m.memory, err = d.Alloc(len(all) * m.size); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.FreeMemory(m.memory) })
	d.Upload(m.memory, productBytes(all, m.size))
	m.at = m.memory + cuda.Pointer(m.offset*m.size)
	return m
}

// productOutside is a NaN with bits of its own, in both types.
var productOutside = math.Float32frombits(0x7fad0000)

// productDownload returns the rows, and fails the test if an element outside them has changed.
func productDownload(t *testing.T, d *cuda.Device, m productMatrix) []float32 {
	t.Helper()
	raw := make([]byte, (m.offset+m.rows*m.ld+m.ld)*m.size)
	d.Download(raw, m.memory)
	if err := d.Synchronize(); err != nil {
		t.Fatal(err)
	}
	values := make([]float32, m.rows*m.cols)
	for i := range len(raw) / m.size {
		var x float32
		if m.size == 4 {
			x = math.Float32frombits(binary.LittleEndian.Uint32(raw[i*4:]))
		} else {
			x = math.Float32frombits(uint32(binary.LittleEndian.Uint16(raw[i*2:])) << 16)
		}
		row, col := (i-m.offset)/m.ld, (i-m.offset)%m.ld
		if i >= m.offset && row < m.rows && col < m.cols {
			values[row*m.cols+col] = x
		} else if math.Float32bits(x) != math.Float32bits(productOutside) {
			t.Fatalf("element %d, outside C, was written: %v", i, x)
		}
	}
	return values
}

// productCase is one product: C[m n] = op(A)·op(B) with random elements.
type productCase struct {
	variant        string // nn, nt or tn
	m, n, k        int
	extra, offset  int // elements between rows, and before the first
	extraC         int
	accumulate     bool
	bias           bool
	a, b, c, addTo []float32 // op(A) [m k], op(B) [k n], C before; bias [n]
}

// fill makes the operands.
func (p *productCase) fill(seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	random := func(n int) []float32 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(r.NormFloat64())
		}
		return x
	}
	p.a, p.b, p.c, p.addTo = random(p.m*p.k), random(p.k*p.n), random(p.m*p.n), random(p.n)
}

// productTransposed returns x [rows cols] as [cols rows].
func productTransposed(x []float32, rows, cols int) []float32 {
	out := make([]float32, len(x))
	for i := range rows {
		for j := range cols {
			out[j*rows+i] = x[i*cols+j]
		}
	}
	return out
}

// run computes the product on the device.
func (p *productCase) run(t *testing.T, d *cuda.Device, typ productType) []float32 {
	t.Helper()
	upload := func(x []float32, rows, cols int, transposed bool) productMatrix {
		rounded := productStored(x, typ.in)
		if transposed {
			rounded, rows, cols = productTransposed(rounded, rows, cols), cols, rows
		}
		m := productMatrix{rows: rows, cols: cols, ld: cols + p.extra, offset: p.offset, size: typ.in}
		return productUpload(t, d, rounded, m)
	}
	a := upload(p.a, p.m, p.k, p.variant == "tn")
	b := upload(p.b, p.k, p.n, p.variant == "nt")
	before := productStored(p.c, typ.out)
	if !p.accumulate {
		for i := range before {
			before[i] = productOutside // what is not written will be seen
		}
	}
	c := productUpload(t, d, before, productMatrix{rows: p.m, cols: p.n, ld: p.n + p.extraC, size: typ.out})
	var bias cuda.Pointer
	if p.bias {
		bias = productUpload(t, d, p.addTo, productMatrix{rows: 1, cols: p.n, ld: p.n, size: 4}).at
	}
	add := 0
	if p.accumulate {
		add = 1
	}
	d.Launch("product_"+p.variant+"_"+typ.name, [3]int{(p.n + 127) / 128, (p.m + 127) / 128, 1}, [3]int{256, 1, 1},
		typ.shared, c.at, a.at, b.at, p.m, p.n, p.k, a.ld, b.ld, c.ld, add, bias)
	return productDownload(t, d, c)
}

// productStored returns a copy of x, as it is stored in elements of `size` bytes: bfloat16 if 2.
func productStored(x []float32, size int) []float32 {
	out := slices.Clone(x)
	for i, v := range x {
		if size == 2 && v == v {
			out[i] = productBF16(v)
		} else if v != v {
			out[i] = productOutside
		}
	}
	return out
}

// check compares with sums in float64.
func (p *productCase) check(t *testing.T, typ productType, got []float32) {
	t.Helper()
	before := productStored(p.c, typ.out)
	for i := range p.m {
		for j := range p.n {
			var sum, size float64
			for l := range p.k {
				x := float64(typ.round(p.a[i*p.k+l])) * float64(typ.round(p.b[l*p.n+j]))
				sum += x
				size += math.Abs(x)
			}
			if p.bias {
				sum += float64(p.addTo[j])
				size += math.Abs(float64(p.addTo[j]))
			}
			if p.accumulate {
				before := float64(before[i*p.n+j])
				sum += before
				size += math.Abs(before)
			}
			// Each addition is wrong by half a unit of 2⁻²³ of what it adds up; tensor cores by a whole one.
			bound := float64(p.k+2)*size/(1<<23) + typ.outEpsilon*math.Abs(sum)
			if x := float64(got[i*p.n+j]); !(math.Abs(x-sum) <= bound) {
				t.Fatalf("C[%d %d] = %v, want %v within %v", i, j, x, sum, bound)
			}
		}
	}
}

func productForAll(t *testing.T, f func(t *testing.T, d *cuda.Device, variant string, typ productType)) {
	d := cudatest.Open(t)
	for _, variant := range []string{"nn", "nt", "tn"} {
		for _, typ := range productTypes {
			t.Run(variant+" "+typ.name, func(t *testing.T) { f(t, d, variant, typ) })
		}
	}
}

func TestProduct(t *testing.T) {
	cases := []productCase{
		{m: 1, n: 1, k: 1},
		{m: 3, n: 5, k: 7, extra: 1, accumulate: true},
		{m: 17, n: 33, k: 40, extraC: 3, bias: true},
		{m: 16, n: 24, k: 64, extra: 8, extraC: 8, accumulate: true, bias: true},
		{m: 24, n: 16, k: 196, extra: 4, bias: true},            // rows of tf32 are aligned, of bfloat16 are not
		{m: 130, n: 8, k: 207, extra: 1, accumulate: true},      // more tiles than stages, two blocks of rows
		{m: 9, n: 260, k: 44, offset: 1, extraC: 1, bias: true}, // addresses that are not multiples of 16 bytes
		{m: 136, n: 136, k: 16, extraC: 4, accumulate: true},
		{m: 5, n: 7, k: 0, bias: true},
		{m: 5, n: 8, k: 0, accumulate: true},
	}
	productForAll(t, func(t *testing.T, d *cuda.Device, variant string, typ productType) {
		for i, p := range cases {
			t.Run(fmt.Sprintf("%dx%dx%d", p.m, p.n, p.k), func(t *testing.T) {
				p.variant = variant
				p.fill(uint64(i))
				p.check(t, typ, p.run(t, d, typ))
			})
		}
	})
}

func TestProductOfARowIsThatOfTheBatch(t *testing.T) {
	productForAll(t, func(t *testing.T, d *cuda.Device, variant string, typ productType) {
		p := productCase{variant: variant, m: 131, n: 20, k: 72, bias: true}
		p.fill(7)
		batch := p.run(t, d, typ)

		// Rows and elements elsewhere, read by elements: the same bits too.
		elsewhere := p
		elsewhere.extra, elsewhere.offset, elsewhere.extraC = 3, 5, 1
		productSame(t, "in rows that are not aligned", elsewhere.run(t, d, typ), batch)

		for _, row := range []int{0, 1, 63, 64, 127, 130} {
			alone := p
			alone.m, alone.a, alone.c = 1, p.a[row*p.k:(row+1)*p.k], p.c[row*p.n:(row+1)*p.n]
			productSame(t, fmt.Sprintf("row %d alone", row), alone.run(t, d, typ), batch[row*p.n:(row+1)*p.n])
		}
	})
}

func productSame(t *testing.T, what string, got, want []float32) {
	t.Helper()
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: element %d is %v, in the batch %v", what, i, got[i], want[i])
		}
	}
}

func TestProductKeepsNaNAndInfinity(t *testing.T) {
	nan, infinity := float32(math.NaN()), float32(math.Inf(1))
	productForAll(t, func(t *testing.T, d *cuda.Device, variant string, typ productType) {
		p := productCase{variant: variant, m: 6, n: 9, k: 37}
		p.fill(3)
		p.a[2*p.k+36] = nan   // the last element of row 2
		p.b[5*p.n+8] = nan    // the last column
		p.a[4*p.k] = infinity // row 4
		p.b[0*p.n+3] = 0      // infinity times 0 in column 3
		got := p.run(t, d, typ)
		for i := range p.m {
			for j := range p.n {
				x := float64(got[i*p.n+j])
				wantNaN := i == 2 || j == 8 || i == 4 && j == 3
				wantInfinity := i == 4 && !wantNaN
				if math.IsNaN(x) != wantNaN || math.IsInf(x, 0) != wantInfinity {
					t.Errorf("C[%d %d] = %v; want NaN %v, infinity %v", i, j, x, wantNaN, wantInfinity)
				}
			}
		}
	})
}
